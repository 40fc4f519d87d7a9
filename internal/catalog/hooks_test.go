package catalog_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// hookGraph is a graph that runs the module redact.
func hookGraph(id, name string) string {
	return fmt.Sprintf(`{"id": %q, "name": %q, "workflowType": "tools/call", "nodes": [{"id": "s", "type": "start"}, {"id": "c", "type": "mcp-call"},
		{"id": "h", "type": "hook", "data": {"hook": {"hookModuleId": "redact"}}}, {"id": "e", "type": "end"}],
		"edges": [{"source": "s", "target": "c"}, {"source": "c", "target": "h"}, {"source": "h", "target": "e"}]}`, id, name)
}

// hookSource returns a source with a level of trust.
func hookSource(name string, rank int, trust catalog.Trust, files map[string]string) *fakeSource {
	f := newFake(name, rank, files)
	f.info.Trust = trust
	return f
}

// loadSnapshot makes a snapshot of sources.
func loadSnapshot(t *testing.T, sources ...catalog.Source) *catalog.Snapshot {
	t.Helper()
	c := catalog.New(sources, catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c.Snapshot()
}

// hasDiagnostic reports whether a file has a diagnostic with a code.
func hasDiagnostic(snap *catalog.Snapshot, code, file string) bool {
	for _, d := range snap.Diagnostics() {
		if d.Code == code && strings.HasSuffix(d.File, file) {
			return true
		}
	}
	return false
}

// The scripts of a hook graph come from its own source and from lower ranks, so that write
// access to a project changes neither the user's graphs nor their scripts.
func TestProjectHooks(t *testing.T) {
	t.Parallel()
	bundled := hookSource("bundled", 0, catalog.TrustBundled, map[string]string{
		"hooks/modules/redact.js": "bundled", "hooks/base.json": hookGraph("base", "Base"),
	})
	user := hookSource("user", 10, catalog.TrustUser, map[string]string{
		"hooks/mine.json": hookGraph("mine", "Mine"), "hooks/base.json": hookGraph("base", "My base"),
	})
	project := hookSource("project", 20, catalog.TrustProject, map[string]string{
		"hooks/modules/redact.js": "project", "hooks/mine.json": hookGraph("mine", "Theirs"), "hooks/theirs.json": hookGraph("theirs", "Theirs"),
	})
	snap := loadSnapshot(t, bundled, user, project)
	for id, want := range map[string]string{"mine": "Mine user bundled", "base": "My base user bundled", "theirs": "Theirs project project"} {
		e, err := snap.Hook(id)
		if err != nil || e.Linked == nil {
			t.Fatal(id, err, e.Problem)
		}
		if got := e.Graph.Name + " " + e.Source.Name + " " + e.Linked.Scripts["h"].Text; got != want {
			t.Errorf("%s is %s", id, got)
		}
	}
	if !hasDiagnostic(snap, "hook-id-taken", "/project/hooks/mine.json") {
		t.Errorf("the graph that is not served is not reported: %v", snap.Diagnostics())
	}
	if base, _ := snap.Hook("base"); len(base.Overrides) != 1 || base.Overrides[0].Source.Name != "bundled" {
		t.Errorf("the overridden graphs are %+v", base.Overrides)
	}
	for id, want := range map[string]string{"base@bundled": "Base", "base@user": "My base", "mine@project": "Theirs"} {
		if e, err := snap.HookOf(id); err != nil || e.Graph.Name != want {
			t.Errorf("%s: %+v, %v", id, e, err)
		}
		if _, err := snap.Hook(id); guideway.ErrorCode(err) != guideway.CodeNotFound {
			t.Errorf("%s can be activated: %v", id, err)
		}
	}
	if _, err := snap.HookOf("base@project"); guideway.ErrorCode(err) != guideway.CodeNotFound || guideway.ErrorFix(err) != "use base@bundled, base@user" {
		t.Errorf("a graph of a source that has none returns %v", err)
	}
	if len(snap.List(catalog.Filter{})) != 0 || len(snap.HookModules()) != 2 {
		t.Error("a graph is among the workflows, or a module is missing")
	}
}

// A graph of a project that is a copy of the served one is not reported, unless its scripts
// differ.
func TestCopiedProjectHooks(t *testing.T) {
	t.Parallel()
	files := map[string]string{"hooks/modules/redact.js": "same", "hooks/base.json": hookGraph("base", "Base")}
	bundled := hookSource("bundled", 0, catalog.TrustBundled, files)
	for script, want := range map[string]bool{"same": false, "other": true} {
		project := hookSource("project", 20, catalog.TrustProject, map[string]string{
			"hooks/modules/redact.js": script, "hooks/base.json": hookGraph("base", "Base"),
		})
		snap := loadSnapshot(t, bundled, project)
		if got := hasDiagnostic(snap, "hook-id-taken", "/project/hooks/base.json"); got != want {
			t.Errorf("with the script %q, a copy is reported: %t", script, got)
		}
		if e, err := snap.Hook("base"); err != nil || e.Source.Name != "bundled" {
			t.Errorf("with the script %q: %+v, %v", script, e, err)
		}
	}
}

// A broken graph is reported and hides no other graph. If an edit breaks a graph, its last
// good version is served.
func TestBrokenHooks(t *testing.T) {
	t.Parallel()
	user := hookSource("user", 0, catalog.TrustUser, map[string]string{
		"hooks/broken.json": `{"id": "broken", "nodes": []}`, "hooks/lost.json": hookGraph("lost", "Lost"),
		"hooks/good.json": strings.ReplaceAll(hookGraph("good", "Good"), `"hookModuleId": "redact"`, `"script": "1"`),
		"hooks/twin.json": hookGraph("good", "Twin"), "hooks/sub/deep.json": hookGraph("deep", "Deep"), "notes.json": `{"id": "x"}`,
	})
	c := catalog.New([]catalog.Source{user}, catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	broken, err := snap.Hook("broken")
	if err != nil || broken.Graph != nil || !strings.Contains(broken.Problem, "line 1: ") || !hasDiagnostic(snap, "field-missing", "broken.json") {
		t.Errorf("%+v, %v", broken, err)
	}
	lost, err := snap.Hook("lost")
	if err != nil || lost.Linked != nil || !strings.Contains(lost.Problem, "Module 'redact' does not exist") || !hasDiagnostic(snap, hookdef.CodeModuleUnknown, "lost.json") {
		t.Errorf("%+v, %v", lost, err)
	}
	if good, err := snap.Hook("good"); err != nil || good.Graph.Name != "Good" || !hasDiagnostic(snap, "id-duplicate", "twin.json") {
		t.Errorf("%+v, %v", good, err)
	}
	if _, err := snap.Hook("deep"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a graph in a subfolder is served: %v", err)
	}
	change := make(chan catalog.Change, 1)
	defer c.OnChange(func(ch catalog.Change) { change <- ch })()
	user.setFile("hooks/good.json", "{")
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-change
	if good, err := c.Snapshot().Hook("good"); err != nil || good.Graph.Name != "Good" || !good.Stale || !hasDiagnostic(c.Snapshot(), "file-stale", "good.json") {
		t.Errorf("%+v, %v", good, err)
	}
	user.setFile("hooks/good.json", hookGraph("good", "Other"))
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ch := <-change; !ch.Hooks {
		t.Error("the change of a hook graph was not reported")
	}
}

// Only graphs and module scripts of a directory are read.
func TestDirectoryHooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"hooks/a.json": hookGraph("a", "A"), "hooks/modules/redact.mjs": "export default () => {}", "hooks/other.js": "x", "other.js": "x",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	snap := loadSnapshot(t, catalog.NewDir(catalog.SourceInfo{Name: "d", Location: dir, Trust: catalog.TrustUser}, catalog.DirOptions{}))
	e, err := snap.Hook("a")
	if err != nil || e.Linked == nil || e.Linked.Scripts["h"].Name != "redact.js" || len(snap.Diagnostics()) > 0 {
		t.Errorf("%+v, %v, %v", e, err, snap.Diagnostics())
	}
	if got := e.Source.Key(); got != "d:"+dir {
		t.Errorf("the key of the source is %s", got)
	}
}
