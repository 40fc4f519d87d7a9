package mcpserver_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/mcpserver"
	"github.com/guideway-dev/guideway/workflows"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func tools(t *testing.T, cs *mcp.ClientSession) []*mcp.Tool {
	t.Helper()
	res, err := cs.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.Tools
}

func toolNames(t *testing.T, cs *mcp.ClientSession) []string {
	t.Helper()
	var names []string
	for _, tool := range tools(t, cs) {
		names = append(names, tool.Name)
	}
	return names
}

// All of tools/list for the default toolsets leaves room for the context toolset
// below the 20 kB of DESIGN 5.
func TestTheDefaultToolsAreSmall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	list := tools(t, dial(t, r.server, "memory", "ann", "2026-07-28", nil))
	if size := len(asJSON(t, list)); size > 14_500 {
		t.Errorf("tools/list has %d bytes", size)
	}
	if len(list) != 16 {
		t.Errorf("%d tools, want 6 + 6 + 4", len(list))
	}
}

// Clients ask the person before calls that destroy, and repeat those that may be
// repeated: the hints say which.
func TestHints(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	type hints struct{ readOnly, idempotent, destructive bool }
	want := map[string]hints{
		"workflow_start": {}, "workflow_fork": {}, "workrail_create_session": {},
		"workflow_continue": {idempotent: true}, "workrail_open_dashboard": {idempotent: true},
		"workflow_abort": {idempotent: true, destructive: true}, "workrail_update_session": {idempotent: true, destructive: true},
	}
	for _, tool := range tools(t, dial(t, r.server, "memory", "ann", "2025-11-25", nil)) {
		expected, ok := want[tool.Name]
		if !ok {
			expected = hints{readOnly: true, idempotent: true}
		}
		a := tool.Annotations
		got := hints{a.ReadOnlyHint, a.IdempotentHint, a.DestructiveHint != nil && *a.DestructiveHint}
		if got != expected || !a.ReadOnlyHint && a.DestructiveHint == nil || a.OpenWorldHint == nil || *a.OpenWorldHint {
			t.Errorf("%s: %+v, want %+v", tool.Name, got, expected)
		}
	}
}

// A position stays below 4 kB besides its prompt, for every bundled workflow on
// the way through it (DESIGN 5).
func TestPositionsAreSmall(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cs := dial(t, r.server, "memory", "ann", "2026-07-28", nil)
	cat := catalog.New(catalog.Standard(catalog.Layout{Bundled: workflows.FS()}), catalog.Options{})
	if err := cat.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cat.Close)
	entries := cat.Snapshot().List(catalog.Filter{})
	if len(entries) == 0 {
		t.Fatal("there are no bundled workflows")
	}
	for _, e := range entries {
		a := good(t, cs, "workflow_start", map[string]any{"workflowId": e.Definition.ID})
		for range 5 {
			position := a["position"].(map[string]any)
			prompt, _ := position["prompt"].(string)
			if size := len(asJSON(t, a)) - len(asJSON(t, prompt)); size > 4096 {
				t.Errorf("%s at %s: %d bytes besides the prompt", e.Definition.ID, at(a), size)
			}
			tool, args := nextOf(t, a)
			res, isError := call(t, cs, tool, args)
			if isError {
				break // the example output fails the step's criteria
			}
			a = res
		}
	}
}

// Prompts and instructions name the tools that are there.
func TestPromptsNameTheToolsThatAreThere(t *testing.T) {
	t.Parallel()
	stepsOnly := func(o *mcpserver.Options) { o.Toolsets = []string{mcpserver.ToolsetSteps} }
	noService := func(o *mcpserver.Options) { o.Runs = nil }
	for name, tt := range map[string]struct {
		change       func(*mcpserver.Options)
		named, else_ string
	}{
		"all":            {func(*mcpserver.Options) {}, "workflow_start", "workflow_next"},
		"steps alone":    {stepsOnly, "workflow_next", "workflow_start"},
		"no run service": {noService, "workflow_next", "workflow_start"},
	} {
		r := newRig(t, tt.change)
		cs := dial(t, r.server, "memory", "ann", "2025-11-25", nil)
		prompt, err := cs.GetPrompt(t.Context(), &mcp.GetPromptParams{Name: "guarded", Arguments: map[string]string{"goal": `ship "it"`}})
		if err != nil {
			t.Fatal(err)
		}
		var listed string
		for _, tool := range tools(t, cs) {
			if tool.Name == "workflow_list" {
				listed = tool.Description
			}
		}
		said := prompt.Messages[0].Content.(*mcp.TextContent).Text
		for place, words := range map[string]string{"prompt": said, "instructions": cs.InitializeResult().Instructions, "workflow_list": listed} {
			if !strings.Contains(words, tt.named) || strings.Contains(words, tt.else_) {
				t.Errorf("%s: the %s: %s", name, place, words)
			}
		}
		if tt.named == "workflow_start" {
			_, call, _ := strings.Cut(said, "workflow_start ")
			var args map[string]any
			if err := json.NewDecoder(strings.NewReader(call)).Decode(&args); err != nil {
				t.Fatalf("%s: %v", said, err)
			}
			if d := cmp.Diff(map[string]any{"workflowId": "guarded", "goal": `ship "it"`}, args); d != "" {
				t.Errorf("the call in the prompt (-want +got):\n%s", d)
			}
			good(t, cs, "workflow_start", args)
		}
		if slices.Contains(toolNames(t, cs), "workflow_start") != (tt.named == "workflow_start") {
			t.Errorf("%s: tools %v", name, toolNames(t, cs))
		}
	}
}
