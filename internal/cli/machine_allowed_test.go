package cli

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// The agents of a run that a client with a named token has started have the permissions of
// that token: they are offered, and may call, only the tools of upstreams and of Guideway
// that it lists. After the token is revoked, they have none.
func TestAgentsUseTokenPermissions(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	host := d.host
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.OpenSurface(t.Context(), a, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	m, err := s.Tools.Open()
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := app.OpenTokens(cfg)
	if err != nil {
		t.Fatal(err)
	}
	allow := auth.Allow{Tools: []string{"one__echo"}, Toolsets: []string{"steps"}}
	secret, err := tokens.Create(auth.NamedToken{Name: "laptop", User: "ann", Scopes: []auth.Scope{auth.ScopeMCP}, Allow: &allow})
	if err != nil {
		t.Fatal(err)
	}
	bearer, err := server.NewBearer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	var text []byte
	door := &auth.Authenticator{Bearer: bearer, Tokens: tokens}
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp", nil)
	request.Header.Set("Authorization", "Bearer "+secret)
	door.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		text, _ = json.Marshal(auth.Delegate(r.Context()))
	})).ServeHTTP(httptest.NewRecorder(), request)
	narrow := driver.RunScope{User: "ann", Run: "m_1", Machine: "helper", Allow: text}
	offered := func(f driver.RunScope) (names []string) {
		list, err := m.Tools(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range list {
			names = append(names, tool.Name)
		}
		return names
	}
	call := func(f driver.RunScope, name string) string {
		result, err := m.Call(t.Context(), f, engine.ToolCall{Name: name, Arguments: `{"text":"hi"}`})
		if errors.Is(err, driver.ErrNotCalled) {
			return "not called"
		}
		if err != nil {
			t.Fatal(err)
		}
		return result.Content
	}
	if all := offered(driver.RunScope{User: "ann", Run: "m_2", Machine: "helper"}); !slices.Contains(all, "one__count") || !slices.Contains(all, "workflow_start") {
		t.Fatalf("a run without limits is offered %v", all)
	}
	names := offered(narrow)
	if !slices.Contains(names, "one__echo") || !slices.Contains(names, "workflow_list") || slices.ContainsFunc(names, func(name string) bool {
		return strings.HasPrefix(name, "one__") && name != "one__echo" || name == "workflow_start"
	}) {
		t.Errorf("the run is offered %v", names)
	}
	if got := call(narrow, "one__echo"); got != "hi" {
		t.Errorf("a call of the allowed tool returned %s", got)
	}
	for _, name := range []string{"one__count", "workflow_start", "tool_call", "ONE__echo"} {
		if got := call(narrow, name); got != "not called" {
			t.Errorf("%s: %s", name, got)
		}
	}
	permit, err := server.NewMachinePermit(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if why, err := permit(t.Context(), narrow); why != "" || err != nil {
		t.Errorf("permission with a valid token: %q, %v", why, err)
	}
	if err := tokens.Revoke("ann", "laptop"); err != nil {
		t.Fatal(err)
	}
	if why, err := permit(t.Context(), narrow); !strings.Contains(why, "revoked") || err != nil {
		t.Errorf("permission with a revoked token: %q, %v", why, err)
	}
	if names := offered(narrow); len(names) != 0 {
		t.Errorf("with a revoked token, the run is offered %v", names)
	}
	for _, name := range []string{"one__echo", "workflow_list"} {
		if got := call(narrow, name); got != "not called" {
			t.Errorf("a call of %s with a revoked token returned %s", name, got)
		}
	}
}

// TestClientsCannotStartFiles checks that a client cannot start a machine that is not in
// the catalog by its name or path, not even in the working directory.
func TestClientsCannotStartFiles(t *testing.T) {
	t.Parallel()
	d, _ := newGatewayProject(t)
	host := d.host
	a := &app.App{Host: &host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.OpenSurface(t.Context(), a, cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	dir := machineOf(t, t.TempDir(), `["*"]`)
	machineOf(t, host.Dir, `["*"]`)
	caller := run.Caller{Principal: guideway.Principal{User: "ann", Client: "laptop"}}
	inputs := map[string]json.RawMessage{"task": json.RawMessage(`"x"`)}
	for _, name := range []string{dir, filepath.Join(dir, "machine.json"), "./helper", "helper/machine.json", "helper", "../" + filepath.Base(host.Dir) + "/helper", "file://" + dir} {
		for _, demo := range []bool{false, true} {
			status, err := s.Machines.Start(t.Context(), caller, driver.StartRequest{Machine: name, Inputs: inputs, Demo: demo})
			if guideway.ErrorCode(err) != guideway.CodeNotFound {
				t.Errorf("%s, demo %v: %+v, %v", name, demo, status, err)
			}
		}
	}
}
