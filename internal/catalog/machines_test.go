package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
)

const (
	aMachine = `{"workflow_name":"NAME","description":"d","inputs":[],"output":{"name":"o","type":"string","description":"d"},
"contexts":[{"name":"c"}],"agents":[{"agent_role":"r","context":"c","role":"assistant"}],"states":[{"name":"start","agent":"r","post_handler":"keep"}]}`
	aScript   = `export default { keep() {} };`
	someRoles = `{"r": {"systemMessage": "m"}}`
)

// machineFiles writes a machine into the directory of a source.
func machineFiles(t *testing.T, dir, name string) {
	t.Helper()
	putFile(t, filepath.Join(dir, "machines", name, "machine.json"), strings.Replace(aMachine, "NAME", name, 1))
	putFile(t, filepath.Join(dir, "machines", name, "script.js"), aScript)
	putFile(t, filepath.Join(dir, "machines", name, "roles.json"), someRoles)
}

func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func joinCodes(found []guideway.Diagnostic) string {
	var all []string
	for _, d := range found {
		all = append(all, d.Code)
	}
	return strings.Join(all, " ")
}

// Machines come from the same sources as workflows, with the same precedence. A machine of
// a higher rank is served and lists the ones it overrides; a broken machine hides none.
func TestMachinesOfSources(t *testing.T) {
	t.Parallel()
	low, high := t.TempDir(), t.TempDir()
	machineFiles(t, low, "both")
	machineFiles(t, low, "low")
	machineFiles(t, high, "both")
	putFile(t, filepath.Join(high, "machines", "low.json"), strings.Replace(aMachine, "NAME", "low", 1)) // without its script
	putFile(t, filepath.Join(high, "machines", "both", "recording.json"), `[]`)
	putFile(t, filepath.Join(high, "machines", "notes.txt"), "no machine")
	c := catalog.New([]catalog.Source{
		catalog.NewDir(catalog.SourceInfo{Name: "low", Location: low, Rank: 1}, catalog.DirOptions{Revision: "r1"}),
		catalog.NewDir(catalog.SourceInfo{Name: "high", Location: high, Rank: 2}, catalog.DirOptions{Revision: "r2"}),
	}, catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	snap := c.Snapshot()
	both, err := snap.Machine("both")
	if err != nil || both.Source.Name != "high" || len(both.Overrides) != 1 || both.Overrides[0].Source.Name != "low" || !both.HasRecording() {
		t.Fatalf("%+v, %v", both, err)
	}
	if d := both.Definition; d.Source != "high" || d.Revision != "r2" {
		t.Errorf("the source of the machine is %s at %s", d.Source, d.Revision)
	}
	if both.Revision != "r2" || both.Overrides[0].Revision != "r1" {
		t.Errorf("the revisions are %q and %q", both.Revision, both.Overrides[0].Revision)
	}
	if below, err := snap.Machine("both@low"); err != nil || below.Source.Name != "low" || below.Revision != "r1" || below.Definition == nil {
		t.Errorf("the overridden machine is %+v, %v", below, err)
	}
	if same, err := snap.Machine("both@high"); err != nil || same != both {
		t.Errorf("the served machine by its source is %+v, %v", same, err)
	}
	if _, err := snap.Machine("both@nowhere"); guideway.ErrorCode(err) != guideway.CodeNotFound || guideway.ErrorFix(err) != "use both@low, both@high" {
		t.Errorf("the machine of an unknown source returns %v", err)
	}
	if _, err := snap.Machine("low@high"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a machine that does not load returns %v", err)
	}
	kept, err := snap.Machine("low")
	if err != nil || kept.Source.Name != "low" || kept.Definition == nil || kept.HasRecording() {
		t.Errorf("%+v, %v", kept, err)
	}
	if got := joinCodes(snap.Diagnostics()); !strings.Contains(got, "override-broken") || !strings.Contains(got, "script-missing") || !strings.Contains(got, "role-unknown") {
		t.Errorf("the diagnostics are %s", got)
	}
	if _, err := snap.Machine("bot"); guideway.ErrorCode(err) != guideway.CodeNotFound || !strings.Contains(guideway.ErrorFix(err), "both") {
		t.Errorf("an unknown machine returns %v", err)
	}
	if _, err := snap.Get("both"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("a machine is listed as a workflow: %v", err)
	}
	if n := snap.Sources()[1].Served; n != 1 {
		t.Errorf("the higher source serves %d", n)
	}
}

// An edit of a machine's script is detected. After an edit that breaks the machine, its
// last good version stays served.
func TestMachineEdits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	machineFiles(t, dir, "one")
	c := catalog.New([]catalog.Source{catalog.NewDir(catalog.SourceInfo{Name: "dir", Location: dir}, catalog.DirOptions{})}, catalog.Options{})
	var changes int
	defer c.OnChange(func(change catalog.Change) {
		if change.Machines {
			changes++
		}
	})()
	load := func() *catalog.MachineEntry {
		t.Helper()
		if err := c.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		e, err := c.Snapshot().Machine("one")
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	first := load()
	script := filepath.Join(dir, "machines", "one", "script.js")
	putFile(t, script, strings.Replace(aScript, "{}", "{ this.x = 1; }", 1))
	second := load()
	if second.Definition.Hash == first.Definition.Hash || changes != 2 {
		t.Errorf("a different script has the same hash, after %d changes", changes)
	}
	putFile(t, script, "export default { other() {} };")
	third := load()
	if !third.Stale || third.Definition.Hash != second.Definition.Hash || !strings.Contains(joinCodes(c.Diagnostics()), "file-stale") || len(third.Lint()) > 0 {
		t.Errorf("the broken machine is %+v, reported by %s", third, joinCodes(c.Diagnostics()))
	}
	if again := load(); again.Definition != third.Definition || changes != 2 {
		t.Errorf("an unchanged machine was read again, after %d changes", changes)
	}
	putFile(t, script, aScript)
	if repaired := load(); repaired.Stale || repaired.Definition.Hash != first.Definition.Hash {
		t.Errorf("the repaired machine is %+v", repaired)
	}
}
