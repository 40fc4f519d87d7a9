package httpapi_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi"
)

const flowText = `{"id":"flow","name":"Flow","description":"d","version":"1.0.0","steps":[{"id":"one","title":"One","prompt":"Do it."}]}`

// newSources returns a rig with a real catalog: one bundled definition and the directories
// of a user and a project.
func newSources(t *testing.T) (s *rig, user, project string) {
	t.Helper()
	dir := t.TempDir()
	user, project = filepath.Join(dir, "user"), filepath.Join(dir, "project")
	c := catalog.New(catalog.Standard(catalog.Layout{
		Bundled: fstest.MapFS{"flow.json": {Data: []byte(flowText)}}, User: user, Project: project,
	}), catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return newRig(t, func(o *httpapi.Options) { o.Catalog = c }), user, project
}

type sourceAnswer struct {
	Text, Base, Format string
	Writable           bool
	Workflow           struct{ Source, Path, Version string }
	Diagnostics        []guideway.Diagnostic
}

func saveRequestJSON(t *testing.T, source, text, base string) string {
	t.Helper()
	body, err := json.Marshal(map[string]string{"source": source, "text": text, "base": base})
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A person copies a bundled definition into the user's directory and changes it there. A
// save never overwrites another person's change.
func TestSaveWorkflow(t *testing.T) {
	t.Parallel()
	s, user, _ := newSources(t)
	_, person := s.loginBrowser(t, "ann")
	var got sourceAnswer
	s.wantStatus(t, 200, person, "GET", "/api/workflows/flow/source", "").decodeInto(t, &got)
	if got.Text != flowText || got.Writable || got.Format != "json" || got.Workflow.Source != "bundled" {
		t.Fatalf("the source is %+v", got)
	}
	changed := strings.Replace(flowText, "1.0.0", "1.1.0", 1)
	s.wantStatus(t, 200, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", changed, "")).decodeInto(t, &got)
	if got.Text != changed || !got.Writable || got.Workflow.Source != "user" || got.Workflow.Version != "1.1.0" {
		t.Fatalf("the saved definition is %+v", got)
	}
	file := filepath.Join(user, "flow.json")
	if text, err := os.ReadFile(file); err != nil || string(text) != changed {
		t.Fatalf("the file has %s, %v", text, err)
	}
	// Of two saves with the same base, the second is refused.
	again := strings.Replace(flowText, "1.0.0", "1.2.0", 1)
	s.wantStatus(t, 200, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", again, got.Base))
	s.wantCode(t, 409, guideway.CodeConflict, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", changed, got.Base))
	s.wantCode(t, 409, guideway.CodeConflict, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", changed, ""))
	if text, err := os.ReadFile(file); err != nil || string(text) != again {
		t.Fatalf("after a conflict the file has %s, %v", text, err)
	}
	s.wantStatus(t, 200, person, "GET", "/api/workflows/flow/source", "").decodeInto(t, &got)
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	s.wantCode(t, 409, guideway.CodeConflict, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", changed, got.Base))
	if left, err := filepath.Glob(filepath.Join(user, ".*")); err != nil || len(left) > 0 {
		t.Errorf("remaining files: %v, %v", left, err)
	}
}

// A saved text must load under its own id, and its source must be writable.
func TestSaveRefuses(t *testing.T) {
	t.Parallel()
	s, user, project := newSources(t)
	cookie, person := s.loginBrowser(t, "ann")
	const path = "/api/workflows/flow/source"
	s.wantCode(t, 403, guideway.CodeForbidden, asAgent, "PUT", path, saveRequestJSON(t, "user", flowText, ""))
	s.wantCode(t, 401, guideway.CodeUnauthorized, cookie, "PUT", path, saveRequestJSON(t, "user", flowText, ""))
	s.wantCode(t, 400, guideway.CodeInvalid, person, "PUT", path, saveRequestJSON(t, "bundled", flowText, ""))
	s.wantCode(t, 400, guideway.CodeInvalid, person, "PUT", path, saveRequestJSON(t, "../elsewhere", flowText, ""))
	s.wantCode(t, 400, guideway.CodeInvalid, person, "PUT", "/api/workflows/other/source", saveRequestJSON(t, "user", flowText, ""))
	s.wantCode(t, 422, guideway.CodeInvalidDefinition, person, "PUT", path, saveRequestJSON(t, "user", `{"id":"flow"}`, ""))
	s.wantCode(t, 422, guideway.CodeInvalidDefinition, person, "PUT", path, saveRequestJSON(t, "user", `{`, ""))
	for _, dir := range []string{user, filepath.Join(project, "workflows")} {
		if files, err := os.ReadDir(dir); err == nil && len(files) > 0 {
			t.Errorf("%s has %v", dir, files)
		}
	}
}

// A refused save lists the sources that accept it, or states that there is none.
func TestRefusedSaveNamesSources(t *testing.T) {
	t.Parallel()
	const path = "/api/workflows/flow/source"
	s, _, _ := newSources(t)
	_, person := s.loginBrowser(t, "ann")
	if p := s.wantCode(t, 400, guideway.CodeInvalid, person, "PUT", path, saveRequestJSON(t, "bundled", flowText, "")); p.Fix != "choose one of these sources: user, project, project-guideway" {
		t.Errorf("with sources: %q", p.Fix)
	}
	c := catalog.New(catalog.Standard(catalog.Layout{Bundled: fstest.MapFS{"flow.json": {Data: []byte(flowText)}}}), catalog.Options{})
	if err := c.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	s = newRig(t, func(o *httpapi.Options) { o.Catalog = c })
	_, person = s.loginBrowser(t, "ann")
	if p := s.wantCode(t, 400, guideway.CodeInvalid, person, "PUT", path, saveRequestJSON(t, "bundled", flowText, "")); !strings.HasPrefix(p.Fix, "no source is writable") {
		t.Errorf("without sources: %q", p.Fix)
	}
}

// A save does not follow a symbolic link out of the directory.
func TestSaveDoesNotFollowLinksOut(t *testing.T) {
	t.Parallel()
	s, user, _ := newSources(t)
	_, person := s.loginBrowser(t, "ann")
	outside := filepath.Join(t.TempDir(), "flow.json")
	if err := os.WriteFile(outside, []byte(flowText), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(user, "flow.json")); err != nil {
		t.Skip("the system does not allow symbolic links")
	}
	changed := strings.Replace(flowText, "1.0.0", "6.6.6", 1)
	s.wantCode(t, 503, guideway.CodeUnavailable, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", changed, ""))
	if text, err := os.ReadFile(outside); err != nil || string(text) != flowText {
		t.Errorf("the file outside the directory is now %s, %v", text, err)
	}
}

func TestCatalogState(t *testing.T) {
	t.Parallel()
	s, user, _ := newSources(t)
	_, person := s.loginBrowser(t, "ann")
	if err := os.MkdirAll(user, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(user, "broken.json"), []byte(`{"id":"broken"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	// A save reads the sources again.
	s.wantStatus(t, 200, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "project", flowText, ""))
	var got struct {
		Sources []struct {
			Name            string
			Writable        bool
			Broken, Served  int
			State, Location string
		}
		Diagnostics []guideway.Diagnostic
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/catalog", "").decodeInto(t, &got)
	writable := map[string]bool{}
	broken := 0
	for _, source := range got.Sources {
		writable[source.Name] = source.Writable
		broken += source.Broken
	}
	if writable["bundled"] || !writable["user"] || !writable["project"] || broken != 1 || len(got.Diagnostics) == 0 {
		t.Errorf("the catalog is %+v", got)
	}
	s.wantStatus(t, 200, asAgent, "GET", "/api/schemas/steps", "")
	s.wantStatus(t, 200, asAgent, "GET", "/api/schemas/phases", "")
	s.wantCode(t, 404, guideway.CodeNotFound, asAgent, "GET", "/api/schemas/none", "")
}

func TestValidate(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	tests := []struct {
		name, text string
		valid      bool
		line       int
		id         string
	}{
		{"good", flowText, true, 0, "flow"},
		{"yaml", "id: flow\nname: Flow\ndescription: d\nversion: 1.0.0\nsteps:\n- id: one\n  title: One\n  prompt: Do it.\n", true, 0, "flow"},
		{"without a prompt", "{\"id\":\"flow\",\"name\":\"F\",\"description\":\"d\",\"version\":\"1.0.0\",\"steps\":[\n{\"id\":\"one\",\"title\":\"One\"}]}", false, 2, ""},
		{"cut", "{\n", false, 2, ""},
		{"nothing", "", false, 0, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			body, err := json.Marshal(map[string]string{"text": tt.text})
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Valid       bool
				ID          string
				Diagnostics []guideway.Diagnostic
				Definition  json.RawMessage
			}
			s.wantStatus(t, 200, asAgent, "POST", "/api/validate", string(body)).decodeInto(t, &got)
			if got.Valid != tt.valid || got.ID != tt.id || (got.Definition == nil) == tt.valid {
				t.Errorf("valid %v, id %q, %v, %s", got.Valid, got.ID, got.Diagnostics, got.Definition)
			}
			if !tt.valid && (len(got.Diagnostics) == 0 || got.Diagnostics[0].Line != tt.line) {
				t.Errorf("found %+v, want line %d", got.Diagnostics, tt.line)
			}
		})
	}
}

// A trial follows the rules of a run: the engine decides on gates, conditions and refusals.
func TestTry(t *testing.T) {
	t.Parallel()
	s := newRig(t)
	text := newFakeCatalog(t)[1].Definition.Canonical // The definition "plain" has a gate, a condition and a loop.
	trial := func(moves string) (got struct {
		Status   string
		Position struct{ Kind, ID string }
		Refused  *struct{ Rule string }
		Events   []struct{ Kind string }
	},
	) {
		t.Helper()
		body, err := json.Marshal(map[string]any{"text": text, "context": map[string]any{"size": "small"}, "moves": json.RawMessage(moves)})
		if err != nil {
			t.Fatal(err)
		}
		s.wantStatus(t, 200, asAgent, "POST", "/api/try", string(body)).decodeInto(t, &got)
		return got
	}
	if got := trial(`[]`); got.Status != "running" || got.Position.ID != "plan" {
		t.Errorf("the trial starts at %+v", got)
	}
	if got := trial(`[{"output":"Planned."}]`); got.Status != "waiting" || got.Position.Kind != "gate" {
		t.Errorf("after the plan the trial is at %+v", got)
	}
	if got := trial(`[{"output":"Planned."},{"output":"On."}]`); got.Refused == nil || got.Position.Kind != "gate" {
		t.Errorf("after the gate the trial is at %+v", got)
	}
	end := trial(`[{"output":"Planned."},{"optionId":"confirm"},{"output":"a"},{"output":"b"}]`)
	if end.Status != "completed" || end.Position.Kind != "end" || len(end.Events) < 6 {
		t.Errorf("the trial ends at %+v", end)
	}
	bad := func(status int, code guideway.Code, body string) {
		t.Helper()
		s.wantCode(t, status, code, asAgent, "POST", "/api/try", body)
	}
	bad(422, guideway.CodeInvalidDefinition, `{"text":"{}","moves":[]}`)
	bad(400, guideway.CodeInvalid, `{"text":"`+strings.ReplaceAll(flowText, `"`, `\"`)+`","moves":[{"output":"a"},{"output":"b"},{"output":"c"}]}`)
	bad(413, guideway.CodeTooLarge, `{"text":"{}","moves":[`+strings.Repeat(`{},`, 500)+`{}]}`)
}

// A stream reports that a definition was saved.
func TestDefinitionsEvent(t *testing.T) {
	t.Parallel()
	s, _, _ := newSources(t)
	_, person := s.loginBrowser(t, "ann")
	read := readStream(t, s)
	if text := read("event: connected"); strings.Contains(text, "event: definitions") {
		t.Errorf("an event arrived before a change: %s", text)
	}
	changed := strings.Replace(flowText, "1.0.0", "1.1.0", 1)
	s.wantStatus(t, 200, person, "PUT", "/api/workflows/flow/source", saveRequestJSON(t, "user", changed, ""))
	read(`data: {"type":"definitions","pos":0}`)
}
