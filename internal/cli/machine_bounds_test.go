package cli

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
)

// agentTools returns the tools that machine runs of a project can use.
func agentTools(t *testing.T, d *hookProject) *server.MachineTools {
	t.Helper()
	a := &app.App{Host: &d.host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.OpenSurface(t.Context(), a, cfg, d.host.LookupProject)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	tools, err := s.Tools.Open()
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// offeredTools returns the names of the tools that a run gets.
func offeredTools(t *testing.T, m *server.MachineTools, f driver.RunScope) []string {
	t.Helper()
	list, err := m.Tools(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, each := range list {
		names = append(names, each.Definition.Name)
	}
	return names
}

// A tool that is quarantined until a person approves it is not offered to an agent. If the
// agent calls it anyway, the machine and the gateway refuse the call.
func TestAgentCallsHeldTool(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	f := driver.RunScope{User: "anna", Run: "r", Machine: "helper"}
	if names := offeredTools(t, agentTools(t, d), f); !slices.Contains(names, "one__count") {
		t.Fatalf("at first use, the tools are %v", names)
	}
	a := &app.App{Host: &d.host, Flags: &app.SettingFlags{}}
	cfg, err := a.Load()
	if err != nil {
		t.Fatal(err)
	}
	// The approved version of the tool differs from the version that the server offers.
	if err := server.NewPinStore(a, cfg).Approve("one", map[string]pins.Pin{"count": {Hash: "another"}}); err != nil {
		t.Fatal(err)
	}
	m := agentTools(t, d)
	if names := offeredTools(t, m, f); slices.Contains(names, "one__count") || !slices.Contains(names, "one__echo") {
		t.Errorf("the offered tools are %v", names)
	}
	call := engine.ToolCall{ID: "c", Name: "one__count", Arguments: `{"text":"x"}`}
	if r, err := m.Call(t.Context(), f, call); err != nil || !r.Error || !strings.Contains(r.Content, "waits for approval") {
		t.Errorf("the gateway returned %+v, %v", r, err)
	}
	var told, tools []string
	url := serveScriptedModel(t, func(last modelMessage, names []string) (text, name, arguments string) {
		tools = names
		if last.Role == "user" {
			return "", "one__count", `{"text":"x"}`
		}
		told = append(told, last.Content)
		return "done", "", ""
	})
	environment := d.host.Getenv
	d.host.Getenv = func(name string) string {
		if name == "OPENAI_BASE_URL" {
			return url
		}
		return environment(name)
	}
	machine := machineOf(t, t.TempDir(), `["one__c*", "one__echo"]`)
	d.wantCommand(app.ExitOK, `"status": "completed"`, "machine run "+machine+" --input task=go --model openai:m --json")
	if slices.Contains(tools, "one__count") || len(told) != 1 || !strings.Contains(told[0], `The tool "one__count" is not available`) {
		t.Errorf("the agent has the tools %v and got the results %q", tools, told)
	}
	if _, err := os.Stat(count); !os.IsNotExist(err) {
		t.Errorf("the tool was called: %v", err)
	}
}

// The permissions of a token limit the agents of the runs that were started with it: other
// tools are neither offered to them nor called.
func TestTokenLimitsAgents(t *testing.T) {
	t.Parallel()
	d, count := newGatewayProject(t)
	m := agentTools(t, d)
	bound := func(allow auth.Allow) driver.RunScope {
		text, err := json.Marshal(allow)
		if err != nil {
			t.Fatal(err)
		}
		return driver.RunScope{User: "anna", Run: "r", Machine: "helper", Allow: text}
	}
	for _, tt := range []struct {
		name  string
		allow auth.Allow
		want  []string
	}{
		{"one tool", auth.Allow{Tools: []string{"one__echo"}}, []string{"one__echo"}},
		{"another upstream", auth.Allow{Upstreams: []string{"two"}}, nil},
		{"nothing", auth.Allow{}, nil},
	} {
		f := bound(tt.allow)
		if names := offeredTools(t, m, f); !slices.Equal(names, tt.want) {
			t.Errorf("%s: the offered tools are %v", tt.name, names)
		}
		for _, name := range []string{"one__count", "workflow_list"} {
			if _, err := m.Call(t.Context(), f, engine.ToolCall{ID: "c", Name: name, Arguments: `{"text":"x"}`}); !errors.Is(err, driver.ErrNotCalled) {
				t.Errorf("%s: %s: %v", tt.name, name, err)
			}
		}
	}
	if _, err := os.Stat(count); !os.IsNotExist(err) {
		t.Errorf("the tool was called: %v", err)
	}
	if r, err := m.Call(t.Context(), bound(auth.Allow{Tools: []string{"one__echo"}}), engine.ToolCall{ID: "c", Name: "one__echo", Arguments: `{"text":"x"}`}); err != nil || r.Content != "x" {
		t.Errorf("a call of the allowed tool returned %+v, %v", r, err)
	}
}
