package httpapi_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
)

const hookText = `{"id":"mine","name":"Mine","workflowType":"tools/call","nodes":[{"id":"start","type":"start"},
	{"id":"h","type":"hook","data":{"hook":{"script":"context.request.params.mark = 1;"}}},{"id":"call","type":"mcp-call"},{"id":"end","type":"end"}],
	"edges":[{"source":"start","target":"h"},{"source":"h","target":"call"},{"source":"call","target":"end"}]}`

// emptyApprovals is a store that is always empty.
type emptyApprovals struct{}

func (emptyApprovals) List() (approval.Records, error) { return nil, nil }

func (emptyApprovals) Change(context.Context, func(approval.Records) (approval.Records, error)) error {
	return guideway.Errorf(guideway.CodeUnavailable, "nothing can be approved here")
}

// emptyService returns a service without hook graphs.
func emptyService() *hookadmin.Service {
	return hookadmin.New(hookadmin.Options{Catalog: catalog.New(nil, catalog.Options{}), Approvals: emptyApprovals{}})
}

// newHooks returns a rig with a bundled workflow, a bundled hook graph and one of a project.
// It uses the real sandbox.
func newHooks(t *testing.T, change ...func(*httpapi.Options)) (s *rig, user, project string) {
	t.Helper()
	dir := t.TempDir()
	user, project = filepath.Join(dir, "user"), filepath.Join(dir, "project", "workflows")
	if err := os.MkdirAll(filepath.Join(project, "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	theirs := strings.Replace(hookText, `"id":"mine"`, `"id":"theirs"`, 1)
	if err := os.WriteFile(filepath.Join(project, "hooks", "theirs.json"), []byte(theirs), 0o644); err != nil {
		t.Fatal(err)
	}
	c := catalog.New(catalog.Standard(catalog.Layout{Bundled: fstest.MapFS{
		"hooks/given.json":      {Data: []byte(strings.NewReplacer(`"id":"mine"`, `"id":"given"`, `"script":"context.request.params.mark = 1;"`, `"hookModuleId":"mark"`).Replace(hookText))},
		"flow.json":             {Data: []byte(flowText)},
		"hooks/modules/mark.js": {Data: []byte("context.request.params.mark = 2;")},
	}, User: user, Project: filepath.Join(dir, "project")}), catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	store, err := approval.Open(approval.Options{Path: filepath.Join(dir, "approvals.json"), Key: []byte("key")})
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
	desk := hookadmin.New(hookadmin.Options{Catalog: c, Approvals: store, Scripts: pool, Versions: filepath.Join(dir, "versions")})
	change = append(change, func(o *httpapi.Options) { o.Catalog, o.Hooks = c, desk })
	return newRig(t, change...), user, project
}

type hookAnswer struct {
	Hook struct {
		State, Source, Pin, Why string
		Enabled, Writable, Own  bool
	}
	Base, Text  string
	Graph       json.RawMessage
	Diagnostics []guideway.Diagnostic
}

// saveHookJSON returns the body of a request that saves a graph.
func saveHookJSON(source, base, graph string) string {
	return `{"source":"` + source + `","base":"` + base + `","graph":` + graph + `}`
}

// TestHookGraphLifecycle checks that a person can save, test, enable, change, restore,
// disable and delete a graph through the API. The rig compares each answer with the OpenAPI
// document.
func TestHookGraphLifecycle(t *testing.T) {
	t.Parallel()
	s, user, _ := newHooks(t)
	_, person := s.loginBrowser(t, "ann")
	var list struct {
		Graphs  []struct{ ID, State string }
		Modules []struct{ ID string }
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/hooks", "").decodeInto(t, &list)
	if len(list.Graphs) != 2 || len(list.Modules) != 1 {
		t.Fatalf("the graphs are %+v", list)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/hook-types", "")
	s.wantStatus(t, 200, asAgent, "POST", "/api/hook-check", `{"text":"{}"}`)
	var verdict struct {
		Valid bool
		Pin   string
	}
	s.wantStatus(t, 200, person, "POST", "/api/hook-check", `{"graph":`+hookText+`,"source":"user"}`).decodeInto(t, &verdict)
	var saved hookAnswer
	s.wantStatus(t, 200, person, "PUT", "/api/hooks/mine", saveHookJSON("user", "", hookText)).decodeInto(t, &saved)
	if !verdict.Valid || saved.Hook.Pin != verdict.Pin || saved.Hook.State != "off" || saved.Hook.Source != "user" {
		t.Fatalf("the check returned %+v, the save %+v", verdict, saved.Hook)
	}
	if _, err := os.Stat(filepath.Join(user, "hooks", "mine.json")); err != nil {
		t.Error(err)
	}
	var trial struct {
		Outcome string
		Nodes   []struct{ Input, Output json.RawMessage }
	}
	s.wantStatus(t, 200, person, "POST", "/api/hook-test", `{"graph":`+hookText+`,"request":{"name":"t","arguments":{}},"client":"c","server":"s"}`).decodeInto(t, &trial)
	if trial.Outcome != "changed" || len(trial.Nodes) != 4 || trial.Nodes[1].Input == nil {
		t.Errorf("the trial returned %+v", trial)
	}
	s.wantStatus(t, 200, person, "POST", "/api/hooks/mine/enable", `{"pin":"`+saved.Hook.Pin+`"}`)
	other := strings.Replace(hookText, "mark = 1", "mark = 3", 1)
	s.wantStatus(t, 200, person, "PUT", "/api/hooks/mine", saveHookJSON("user", saved.Base, other)).decodeInto(t, &saved)
	if saved.Hook.State != "active" {
		t.Errorf("after a change the graph is %+v", saved.Hook)
	}
	var versions struct{ Versions []struct{ ID string } }
	s.wantStatus(t, 200, asAgent, "GET", "/api/hooks/mine/versions", "").decodeInto(t, &versions)
	if len(versions.Versions) != 2 {
		t.Fatalf("versions: %+v", versions)
	}
	first := "/api/hooks/mine/versions/" + versions.Versions[1].ID
	s.wantStatus(t, 200, asAgent, "GET", first, "")
	s.wantStatus(t, 200, person, "POST", first+"/restore", `{"base":"`+saved.Base+`"}`).decodeInto(t, &saved)
	if !strings.Contains(saved.Text, "mark = 1") {
		t.Errorf("the restored text is %s", saved.Text)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/hooks/mine/export", "")
	s.wantStatus(t, 200, person, "POST", "/api/hooks/mine/disable", "")
	s.wantStatus(t, 200, person, "DELETE", "/api/hooks/mine?source=user&base="+saved.Base, "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/hook-modules/mark", "")
	s.wantStatus(t, 200, person, "PUT", "/api/hook-modules/mark", `{"source":"user","script":"context.variables.a = 1;"}`)
}

// The token of /mcp and a token of scope approve cannot save, delete, test, enable, disable
// or restore a graph, and cannot save a module.
func TestHookGraphsRequireAPerson(t *testing.T) {
	t.Parallel()
	s, user, _ := newHooks(t)
	_, person := s.loginBrowser(t, "ann")
	approve, err := s.tokens.Create(auth.NamedToken{Name: "phone", User: "ann", Scopes: []auth.Scope{auth.ScopeApprove}})
	if err != nil {
		t.Fatal(err)
	}
	var theirs hookAnswer
	s.wantStatus(t, 200, person, "GET", "/api/hooks/theirs", "").decodeInto(t, &theirs)
	s.wantStatus(t, 200, person, "PUT", "/api/hooks/mine", saveHookJSON("user", "", hookText))
	before, err := os.ReadFile(filepath.Join(user, "hooks", "mine.json"))
	if err != nil {
		t.Fatal(err)
	}
	for name, who := range map[string]credential{"the token of /mcp": asAgent, "a token of scope approve": withBearer(approve)} {
		for _, move := range []struct{ method, path, body string }{
			{"PUT", "/api/hooks/new", saveHookJSON("user", "", strings.Replace(hookText, "mine", "new", 1))},
			{"PUT", "/api/hooks/mine", saveHookJSON("user", "", hookText)},
			{"DELETE", "/api/hooks/mine?source=user&base=x", ""},
			{"POST", "/api/hooks/theirs/enable", `{"pin":"` + theirs.Hook.Pin + `"}`},
			{"POST", "/api/hooks/theirs/disable", ""},
			{"POST", "/api/hooks/mine/versions/1700000000000-000000000000/restore", `{"base":""}`},
			{"PUT", "/api/hook-modules/mark", `{"source":"user","script":"1"}`},
			{"POST", "/api/hook-test", `{"graph":` + hookText + `,"request":{}}`},
		} {
			if p := s.wantCode(t, 403, guideway.CodeForbidden, who, move.method, move.path, move.body); p.Fix == "" {
				t.Errorf("%s %s for %s has no fix", move.method, move.path, name)
			}
		}
	}
	s.wantStatus(t, 200, person, "GET", "/api/hooks/theirs", "").decodeInto(t, &theirs)
	after, err := os.ReadFile(filepath.Join(user, "hooks", "mine.json"))
	if err != nil || string(after) != string(before) || theirs.Hook.Enabled {
		t.Errorf("a refused request changed the graph: %s, %v, %+v", after, err, theirs.Hook)
	}
}

// A graph of a project can be enabled only with the pin of its current content. After a
// change its state is "changed", and the old pin is refused.
func TestProjectGraphsRequireTheirPin(t *testing.T) {
	t.Parallel()
	s, _, project := newHooks(t)
	_, person := s.loginBrowser(t, "ann")
	var got hookAnswer
	s.wantStatus(t, 200, person, "GET", "/api/hooks/theirs", "").decodeInto(t, &got)
	s.wantCode(t, 400, guideway.CodeInvalid, person, "POST", "/api/hooks/theirs/enable", `{"order":3}`)
	for _, pin := range []string{"sha256:0", got.Base} {
		s.wantCode(t, 409, guideway.CodeConflict, person, "POST", "/api/hooks/theirs/enable", `{"pin":"`+pin+`","order":3}`)
	}
	seen := got.Hook.Pin
	s.wantStatus(t, 200, person, "POST", "/api/hooks/theirs/enable", `{"pin":"`+seen+`"}`)
	text := strings.Replace(got.Text, "mark = 1", "mark = 9", 1)
	s.wantStatus(t, 200, person, "PUT", "/api/hooks/theirs", saveHookJSON("project", got.Base, text)).decodeInto(t, &got)
	if got.Hook.State != "changed" || got.Hook.Own {
		t.Errorf("after a change the graph is %+v", got.Hook)
	}
	s.wantCode(t, 409, guideway.CodeConflict, person, "POST", "/api/hooks/theirs/enable", `{"pin":"`+seen+`"}`)
	if left, err := filepath.Glob(filepath.Join(project, "hooks", ".*")); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
}

// An invalid request is refused with a reason, and nothing is written.
func TestInvalidHookRequests(t *testing.T) {
	t.Parallel()
	s, user, _ := newHooks(t)
	_, person := s.loginBrowser(t, "ann")
	for _, tt := range []struct {
		method, path, body string
		status             int
		code               guideway.Code
	}{
		{"GET", "/api/hooks/none", "", 404, guideway.CodeNotFound},
		{"GET", "/api/hooks/none/export", "", 404, guideway.CodeNotFound},
		{"GET", "/api/hook-modules/none", "", 404, guideway.CodeNotFound},
		{"GET", "/api/hooks/given/versions/..%2f..%2fx", "", 404, guideway.CodeNotFound},
		{"PUT", "/api/hooks/mine", `{"source":"user"}`, 400, guideway.CodeInvalid},
		{"PUT", "/api/hooks/mine", `{"source":"user","text":"{}","graph":{}}`, 400, guideway.CodeInvalid},
		{"PUT", "/api/hooks/mine", `{"source":"user","text":"{}","more":1}`, 400, guideway.CodeInvalid},
		{"PUT", "/api/hooks/mine", saveHookJSON("user", "", `{}`), 422, guideway.CodeInvalidDefinition},
		{"PUT", "/api/hooks/other", saveHookJSON("user", "", hookText), 400, guideway.CodeInvalid},
		{"PUT", "/api/hooks/mine", saveHookJSON("bundled", "", hookText), 400, guideway.CodeInvalid},
		{"PUT", "/api/hooks/mine", saveHookJSON("user", "sha256:1", hookText), 409, guideway.CodeConflict},
		{"PUT", "/api/hooks/mine", `{"source":"user","text":"` + strings.Repeat("x", 1<<20) + `"}`, 413, guideway.CodeTooLarge},
		{"DELETE", "/api/hooks/given?source=bundled&base=x", "", 400, guideway.CodeInvalid},
		{"POST", "/api/hooks/given/disable", "", 404, guideway.CodeNotFound},
		{"POST", "/api/hooks/none/enable", `{"pin":"x"}`, 404, guideway.CodeNotFound},
		{"POST", "/api/hook-test", `{"graph":{},"request":{}}`, 422, guideway.CodeInvalidDefinition},
		{"POST", "/api/hook-test", `{"graph":` + hookText + `,"request":{"method":"tools/list"}}`, 400, guideway.CodeInvalid},
		{"POST", "/api/hook-test", `{"graph":` + hookText + `,"request":{},"variables":{"none":1}}`, 400, guideway.CodeInvalid},
		{"PUT", "/api/hook-modules/mark", `{"source":"user","script":"if ("}`, 422, guideway.CodeInvalidDefinition},
	} {
		s.wantCode(t, tt.status, tt.code, person, tt.method, tt.path, tt.body)
	}
	if files, err := os.ReadDir(user); err == nil && len(files) > 0 {
		t.Errorf("written: %v", files)
	}
}
