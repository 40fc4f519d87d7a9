package admin_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
)

// The test binary is also the script worker.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "script-worker" {
		if err := worker.Main(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// newGraph returns a graph with one hook.
func newGraph(id, script string, more ...string) string {
	text, err := json.Marshal(script)
	if err != nil {
		panic(err)
	}
	return `{"id":"` + id + `","name":"G","workflowType":"tools/call",` + strings.Join(more, "") + `"nodes":[{"id":"start","type":"start"},
		{"id":"h","type":"hook","data":{"hook":{"script":` + string(text) + `}}},{"id":"call","type":"mcp-call"},{"id":"end","type":"end"}],
		"edges":[{"source":"start","target":"h"},{"source":"h","target":"call"},{"source":"call","target":"end"}]}`
}

// fixture is a service with a real catalog, real approvals and the real sandbox.
type fixture struct {
	*hookadmin.Service
	t             *testing.T
	catalog       *catalog.Catalog
	user, project string
	told          int
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	r := &fixture{t: t, user: filepath.Join(dir, "user"), project: filepath.Join(dir, "project", "workflows")}
	writeFile(t, filepath.Join(r.project, "hooks", "theirs.yaml"), theirs)
	r.catalog = catalog.New(catalog.Standard(catalog.Layout{
		Bundled: fstest.MapFS{
			"hooks/given.json":      {Data: []byte(strings.Replace(newGraph("given", "x"), `"script":"x"`, `"hookModuleId":"mark"`, 1))},
			"hooks/modules/mark.js": {Data: []byte("context.request.params.mark = 1;")},
		}, User: r.user, Project: filepath.Join(dir, "project"),
	}), catalog.Options{})
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := approval.Open(approval.Options{Path: filepath.Join(dir, "data", "approvals.json"), Key: []byte("key")})
	if err != nil {
		t.Fatal(err)
	}
	pool, err := sandbox.NewPool(sandbox.Options{Workers: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := pool.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	var mu sync.Mutex
	clock := time.UnixMilli(1_700_000_000_000)
	r.Service = hookadmin.New(hookadmin.Options{
		Catalog: r.catalog, Approvals: store, Scripts: pool, Versions: filepath.Join(dir, "versions"), OnApproval: func() { r.told++ },
		Now: func() time.Time { mu.Lock(); defer mu.Unlock(); clock = clock.Add(time.Minute); return clock },
	})
	return r
}

const theirs = `# What the project guards.
id: theirs
name: Theirs
workflowType: tools/call
bindings: [{ tool: "read*" }] # reading alone
nodes:
  - { id: start, type: start }
  # It marks what it has seen.
  - id: h
    type: hook
    data:
      hook:
        script: |
          context.request.params.mark = 2;
  - { id: call, type: mcp-call }
  - { id: end, type: end }
edges: [{ source: start, target: h }, { source: h, target: call }, { source: call, target: end }]
`

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *fixture) getGraph(id string) *hookadmin.Detail {
	r.t.Helper()
	d, err := r.Get(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// saveGraph saves a graph and returns its new detail.
func (r *fixture) saveGraph(source, base, id, text string) *hookadmin.Detail {
	r.t.Helper()
	d, err := r.Save(r.t.Context(), hookadmin.SaveRequest{ID: id, Source: source, Base: base, Graph: json.RawMessage(text), Who: "ann"})
	if err != nil {
		r.t.Fatal(err)
	}
	return d
}

// checkRefused checks that an error has a code and contains a text.
func (r *fixture) checkRefused(code guideway.Code, says string, err error) {
	r.t.Helper()
	if guideway.ErrorCode(err) != code || !strings.Contains(err.Error(), says) {
		r.t.Errorf("%v (%s), want %s and %q", err, guideway.ErrorCode(err), code, says)
	}
}

func (r *fixture) enableGraph(id, pin string, order ...int) error {
	request := hookadmin.EnableRequest{ID: id, Pin: pin, Who: "ann"}
	if len(order) > 0 {
		request.Order = &order[0]
	}
	return r.Enable(r.t.Context(), request)
}

// chainOf returns the IDs and orders of the graphs of the only chain.
func (r *fixture) chainOf() string {
	r.t.Helper()
	list, err := r.List(r.t.Context())
	if err != nil || len(list.Chains) > 1 {
		r.t.Fatal(list, err)
	}
	var words []string
	for _, c := range list.Chains {
		for _, g := range c.Graphs {
			words = append(words, fmt.Sprint(g.ID, " ", g.Order))
		}
	}
	return strings.Join(words, ", ")
}

// A graph is created, changed, restored to an earlier version, and deleted. A change that
// is based on an old version is refused, and each version is kept.
func TestGraphLifecycle(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	first := r.saveGraph("user", "", "mine", newGraph("mine", "context.variables.a = 1;"))
	if first.Hook.State != hookengine.StateOff || !first.Hook.Writable || first.Hook.Source != "user" || first.Base == "" || len(first.Diagnostics) > 0 {
		t.Fatalf("the saved graph is %+v with the diagnostics %+v", first.Hook, first.Diagnostics)
	}
	second := r.saveGraph("user", first.Base, "mine", newGraph("mine", "context.variables.a = 2;"))
	_, err := r.Save(t.Context(), hookadmin.SaveRequest{ID: "mine", Source: "user", Base: first.Base, Graph: json.RawMessage(newGraph("mine", "lost"))})
	r.checkRefused(guideway.CodeConflict, "was changed after you read it", err)
	_, err = r.Save(t.Context(), hookadmin.SaveRequest{ID: "mine", Source: "user", Graph: json.RawMessage(newGraph("mine", "lost"))})
	r.checkRefused(guideway.CodeConflict, "already", err)

	file := filepath.Join(r.user, "hooks", "mine.json")
	byHand := strings.Replace(second.Text, "a = 2", "a = 3", 1)
	writeFile(t, file, byHand)
	third := r.getGraph("mine")
	if third.Text != byHand || third.Base == second.Base {
		t.Fatalf("the detail does not contain the edit by hand: %s", third.Text)
	}
	r.saveGraph("user", third.Base, "mine", newGraph("mine", "context.variables.a = 4;"))
	list, err := r.Versions(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	notes := []string{}
	for _, v := range list {
		notes = append(notes, v.Who+"/"+v.Note)
	}
	if diff := cmp.Diff([]string{"ann/", "/found in the file", "ann/", "ann/"}, notes); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	if !list[0].Current || list[1].Current {
		t.Errorf("want only the first version marked as current: %+v", list)
	}
	oldest := list[len(list)-1].ID
	text, err := r.Version(t.Context(), "mine", oldest)
	if err != nil || text.Text != first.Text {
		t.Fatalf("Version of the first save returned %v, %v", text, err)
	}
	_, err = r.Restore(t.Context(), "mine", oldest, second.Base, "ann")
	r.checkRefused(guideway.CodeConflict, "was changed after you read it", err)
	back, err := r.Restore(t.Context(), "mine", oldest, r.getGraph("mine").Base, "ann")
	if err != nil || back.Text != first.Text {
		t.Fatalf("restored %v, %v", back, err)
	}
	r.checkRefused(guideway.CodeConflict, "was changed after you read it", r.Remove(t.Context(), "mine", "user", second.Base))
	if err := r.Remove(t.Context(), "mine", "user", back.Base); err != nil {
		t.Fatal(err)
	}
	_, err = r.Get(t.Context(), "mine")
	r.checkRefused(guideway.CodeNotFound, "mine", err)
	if list, err := r.Versions(t.Context(), "mine"); err != nil || len(list) != 5 {
		t.Errorf("a deleted graph has %d versions (%v), want 5", len(list), err)
	}
	if again, err := r.Restore(t.Context(), "mine", oldest, "", "ann"); err != nil || again.Text != first.Text {
		t.Errorf("Restore of a deleted graph returned %v, %v", again, err)
	}
}

// A graph with an integer above 53 bits cannot be saved, in JSON or in YAML, because a
// browser rounds such integers. With the integer as a string it can be saved.
func TestSaveRefusesLongNumbers(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	const long = "9007199254740993"
	mine := newGraph("mine", "1", `"variables":{"owner":`+long+`},`)
	writeFile(t, filepath.Join(r.user, "hooks", "mine.json"), mine)
	writeFile(t, filepath.Join(r.project, "hooks", "theirs.yaml"), theirs+"variables: { owner: -"+long+" } # a person\n")
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for id, source := range map[string]string{"mine": "user", "theirs": "project"} {
		was := r.getGraph(id)
		_, err := r.Save(t.Context(), hookadmin.SaveRequest{ID: id, Source: source, Base: was.Base, Graph: was.Graph, Who: "ann"})
		r.checkRefused(guideway.CodeInvalid, long, err)
		if now := r.getGraph(id); now.Text != was.Text {
			t.Errorf("the text of %s changed to %s", id, now.Text)
		}
	}
	quoted := strings.Replace(mine, long, `"`+long+`"`, 1)
	if _, err := r.Save(t.Context(), hookadmin.SaveRequest{ID: "mine", Source: "user", Base: r.getGraph("mine").Base, Text: quoted, Who: "ann"}); err != nil {
		t.Fatal(err)
	}
	r.saveGraph("user", r.getGraph("mine").Base, "mine", quoted)
}

// A document that breaks a rule, or would load under a different ID, is not written.
func TestSaveRefusesInvalidGraphs(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	cyclic := strings.Replace(newGraph("mine", "1"), `"source":"call","target":"end"`, `"source":"call","target":"h"`, 1)
	for _, tt := range []struct {
		name, id, source, graph string
		code                    guideway.Code
		says                    string
	}{
		{"a circle", "mine", "user", cyclic, guideway.CodeInvalidDefinition, "the document is not valid"},
		{"a script with a syntax error", "mine", "user", newGraph("mine", "if ("), guideway.CodeInvalidDefinition, "the document is not valid"},
		{"an unknown module", "mine", "user", strings.Replace(newGraph("mine", "x"), `"script":"x"`, `"hookModuleId":"none"`, 1), guideway.CodeInvalidDefinition, "Module 'none' does not exist"},
		{"another id", "other", "user", newGraph("mine", "1"), guideway.CodeInvalid, "has the id"},
		{"a path outside of the directory", "../mine", "user", newGraph("../mine", "1"), guideway.CodeInvalidDefinition, "not a valid id"},
		{"a bundled source", "mine", "bundled", newGraph("mine", "1"), guideway.CodeInvalid, "cannot be saved"},
		{"a directory", "mine", "../elsewhere", newGraph("mine", "1"), guideway.CodeInvalid, "cannot be saved"},
		{"a module", "mark", "user", `{"id":"mark","name":"mark","script":"1"}`, guideway.CodeInvalid, "module"},
		{"not JSON", "mine", "user", `{`, guideway.CodeInvalid, "not JSON"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := r.Save(t.Context(), hookadmin.SaveRequest{ID: tt.id, Source: tt.source, Graph: json.RawMessage(tt.graph)})
			r.checkRefused(tt.code, tt.says, err)
		})
	}
	if files, err := os.ReadDir(r.user); err == nil && len(files) > 0 {
		t.Errorf("written: %v", files)
	}
}

// Only the reviewed version of a graph can be enabled, and a changed graph of a project
// requires a new review. A second graph for the same requests joins the chain.
func TestEnableReviewedVersion(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	seen := r.getGraph("theirs")
	r.checkRefused(guideway.CodeInvalid, "has no pin", r.enableGraph("theirs", ""))
	r.checkRefused(guideway.CodeConflict, "is not the one that you reviewed", r.enableGraph("theirs", "sha256:00"))
	if err := r.enableGraph("theirs", seen.Hook.Pin); err != nil {
		t.Fatal(err)
	}
	if got := r.getGraph("theirs").Hook; got.State != hookengine.StateActive || r.told != 1 {
		t.Errorf("the state is %s after %d notifications, want active after 1", got.State, r.told)
	}
	other := strings.Replace(string(seen.Graph), "mark = 2", "mark = 3", 1)
	changed := r.saveGraph("project", seen.Base, "theirs", other)
	if changed.Hook.State != hookengine.StateChanged || changed.Hook.Why == "" || !changed.Hook.Enabled {
		t.Errorf("the row after a change is %+v", changed.Hook)
	}
	r.checkRefused(guideway.CodeConflict, "is not the one that you reviewed", r.enableGraph("theirs", seen.Hook.Pin))
	if err := r.enableGraph("theirs", changed.Hook.Pin); err != nil {
		t.Error(err)
	}

	given := r.getGraph("given").Hook
	r.checkRefused(guideway.CodeInvalid, "out of range", r.enableGraph("given", given.Pin, 101))
	r.checkRefused(guideway.CodeInvalid, "out of range", r.enableGraph("given", given.Pin, -1))
	if err := r.enableGraph("given", given.Pin); err != nil {
		t.Fatal(err)
	}
	if got, want := r.chainOf(), "given 50, theirs 50"; got != want {
		t.Errorf("the chain is %q, want %q", got, want)
	}
	if err := r.enableGraph("given", given.Pin, 60); err != nil {
		t.Fatal(err)
	}
	if got, want := r.chainOf(), "theirs 50, given 60"; got != want || r.getGraph("given").Hook.Order != 60 {
		t.Errorf("the chain is %q, want %q", got, want)
	}
	if err := r.Disable(t.Context(), "given"); err != nil {
		t.Error(err)
	}
	r.checkRefused(guideway.CodeNotFound, "not enabled", r.Disable(t.Context(), "given"))
}

// An active graph can be saved so that it wraps the same requests as another one, and cannot
// be deleted.
func TestChangeActiveGraph(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	bound := func(id, tool string) string { return newGraph(id, "1;", `"bindings":[{"tool":"`+tool+`"}],`) }
	a, b := r.saveGraph("user", "", "a", bound("a", "read*")), r.saveGraph("user", "", "b", bound("b", "write*"))
	for _, d := range []*hookadmin.Detail{a, b} {
		if err := r.enableGraph(d.Hook.ID, d.Hook.Pin); err != nil {
			t.Fatal(err)
		}
	}
	r.checkRefused(guideway.CodeConflict, "is enabled", r.Remove(t.Context(), "b", "user", b.Base))
	on := r.saveGraph("user", b.Base, "b", newGraph("b", "1;", `"bindings":[{"tool":"*"}],"order":7,`))
	if got, want := r.chainOf(), "b 7, a 50"; got != want {
		t.Errorf("the chain is %q, want %q", got, want)
	}
	if on.Hook.State != hookengine.StateActive {
		t.Errorf("the user's own graph is %s after an edit, want active", on.Hook.State)
	}
	if err := os.Remove(filepath.Join(r.user, "hooks", "b.json")); err != nil {
		t.Fatal(err)
	}
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := r.List(t.Context())
	if err != nil || len(list.Missing) != 1 || list.Missing[0].ID != "b" {
		t.Errorf("missing: %+v, %v", list.Missing, err)
	}
	if err := r.Disable(t.Context(), "b"); err != nil {
		t.Error(err)
	}
}

// Diagnostics have the pointer of the node or edge, and for scripts the line.
func TestDiagnosticsHavePositions(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	for _, tt := range []struct {
		name, text, pointer, node string
		line                      int
	}{
		{"a script", newGraph("g", "let a = 1;\nlet b = ;\n"), "/nodes/1/data/hook/script", "h", 2},
		{"an edge to an unknown node", strings.Replace(newGraph("g", "1"), `"target":"end"`, `"target":"edn"`, 1), "/edges/2/target", "call", 3},
		{"a module", strings.Replace(newGraph("g", "x"), `"script":"x"`, `"hookModuleId":"mrk"`, 1), "/nodes/1/data/hook/hookModuleId", "h", 2},
	} {
		v, err := r.Check(t.Context(), hookadmin.CheckRequest{Text: tt.text})
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(v.Diagnostics, func(d guideway.Diagnostic) bool { return d.Pointer == tt.pointer })
		if v.Valid || i < 0 || v.Diagnostics[i].Node != tt.node || v.Diagnostics[i].Line != tt.line {
			t.Errorf("%s: %+v", tt.name, v.Diagnostics)
		}
	}
}

// The user's own graphs cannot use the modules of a project.
func TestProjectModulesAreNotShared(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	writeFile(t, filepath.Join(r.project, "hooks", "modules", "spy.js"), "context.variables.spy = 1;")
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(newGraph("g", "x"), `"script":"x"`, `"hookModuleId":"spy"`, 1)
	for source, valid := range map[string]bool{"user": false, "": false, "project": true, "none": false} {
		v, err := r.Check(t.Context(), hookadmin.CheckRequest{Text: text, Source: source})
		if err != nil || v.Valid != valid {
			t.Errorf("in %q: valid %v, %v", source, v.Valid, err)
		}
	}
}

// A trial returns the changed request, the response, and the input and output of each hook.
// A graph or request that is not valid is refused.
func TestTrialShowsEachNode(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	trial, err := r.Try(t.Context(), hookadmin.TryRequest{
		CheckRequest: hookadmin.CheckRequest{Text: newGraph("g", "console.log('seen'); audit({a: 1}); context.request.params.arguments.x = context.variables.n;", `"variables":{"n":1},`)},
		Sample: hookadmin.Sample{
			Request: json.RawMessage(`{"name":"t","arguments":{}}`), Response: json.RawMessage(`{"content":[1]}`),
			Variables: map[string]json.RawMessage{"n": json.RawMessage("7")}, Detail: true,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if trial.Outcome != hookengine.StatusChanged || string(trial.Request.Params) != `{"name":"t","arguments":{"x":7}}` || string(trial.Response) != `{"content":[1]}` || len(trial.Audit) != 1 {
		t.Errorf("the trial is %+v", trial)
	}
	i := slices.IndexFunc(trial.Nodes, func(n hookadmin.TriedNode) bool { return n.ID == "h" })
	if i < 0 {
		t.Fatalf("no hook in %+v", trial.Nodes)
	}
	n := trial.Nodes[i]
	if len(n.Console) != 1 || len(n.Changes) != 1 || !strings.Contains(string(n.Input), `"arguments":{}`) || !strings.Contains(string(n.Output), `"x":7`) {
		t.Errorf("the trace of the hook is %+v with the input %s and the output %s", n.NodeTrace, n.Input, n.Output)
	}
	_, err = r.Try(t.Context(), hookadmin.TryRequest{CheckRequest: hookadmin.CheckRequest{Text: newGraph("g", "if (")}, Sample: hookadmin.Sample{Request: json.RawMessage(`{}`)}})
	r.checkRefused(guideway.CodeInvalidDefinition, "the document is not valid", err)
	_, err = r.Try(t.Context(), hookadmin.TryRequest{CheckRequest: hookadmin.CheckRequest{Text: newGraph("g", "1")}, Sample: hookadmin.Sample{Request: json.RawMessage(`{"method":"tools/list"}`)}})
	r.checkRefused(guideway.CodeInvalid, "the graph applies to", err)
}

// The script of a module is saved if it is based on the current version and compiles; the
// graphs that use it are listed.
func TestModulesAreSaved(t *testing.T) {
	t.Parallel()
	r := newFixture(t)
	given, err := r.GetModule(t.Context(), "mark")
	if err != nil || given.Writable || !slices.Equal(given.UsedBy, []string{"given"}) {
		t.Fatalf("GetModule of the bundled module returned %+v, %v", given, err)
	}
	save := func(base, text string) (*hookadmin.ModuleText, error) {
		return r.SaveModule(t.Context(), hookadmin.SaveRequest{ID: "mark", Source: "user", Base: base, Text: text})
	}
	mine, err := save("", "context.request.params.mark = 5;")
	if err != nil || !mine.Writable || mine.Base == "" {
		t.Fatalf("SaveModule returned %+v, %v", mine, err)
	}
	if _, err = save(mine.Base, "context.request.params.mark = 6;"); err != nil {
		t.Fatal(err)
	}
	_, err = save(mine.Base, "lost")
	r.checkRefused(guideway.CodeConflict, "was changed after you read it", err)
	_, err = save("", "if (")
	r.checkRefused(guideway.CodeInvalidDefinition, "", err)
	_, err = r.SaveModule(t.Context(), hookadmin.SaveRequest{ID: "../mark", Source: "user", Text: "1"})
	r.checkRefused(guideway.CodeInvalidDefinition, "not a valid id", err)
}
