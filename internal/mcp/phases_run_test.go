package mcp_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
)

// phasesWithRoute returns a workflow whose second phase has the given id.
func phasesWithRoute(second string) string {
	return fmt.Sprintf(`{"id":"routed","version":"1.0.0","title":"Routed","initialPhase":"a","variables":[{"name":"big","type":"boolean","required":false}],
"phases":[
 {"id":"a","name":"A","required":true,"guide":{"path":"00-way.md"},"steps":[{"id":"s","name":"Look","required":true,"guide":{"path":"00-way.md","section":"Two"}}],
  "checkpoints":[{"id":"c","name":"Ask","message":"Shall we?","prerequisite":"Show the list.","required":false,"blocking":true,"options":[{"id":"yes","label":"Yes"}]}],
  "transitions":[{"to":%q,"condition":{"type":"simple","variable":"big","operator":"==","value":true}},{"to":"z","isDefault":true}]},
 {"id":%q,"name":"B","required":true,"steps":[{"id":"t","name":"Do","required":true}]},
 {"id":"z","name":"Z","required":true,"steps":[{"id":"u","name":"End","required":true}]}]}`, second, second)
}

// TestPositionsIncludeGuides checks that a position includes the texts of its guides, for
// agents that cannot read them otherwise. A gate names its prerequisite and whether it can
// be declined.
func TestPositionsIncludeGuides(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
	writeToCatalog(t, r, "routed/guides/00-way.md", "# The way\n\n## One\nslowly\n\n## Two\n"+strings.Repeat("steadily ", 900)+"\n")
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := callText(t, cs, "workflow_start", map[string]any{"workflowId": "routed"})
	if !strings.Contains(started.texts[0], "slowly") || !strings.Contains(started.texts[0], "the full text is the resource guideway://guides/routed/00-way") {
		t.Errorf("the position does not include its guide:\n%s", started.texts[0])
	}
	if first := len(memberAt(started.structure, "position/guides").([]any)); first != 2 {
		t.Errorf("%d guides", first)
	}
	gate := callTool(t, cs, "workflow_continue", map[string]any{"handle": started.structure["handle"], "output": "looked"})
	if memberAt(gate, "position/declinable") != true || memberAt(gate, "position/prompt") != "Before you ask: Show the list." {
		t.Errorf("the gate is %v", gate["position"])
	}
	declined := callTool(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "answer": map[string]any{"decline": true}})
	if memberAt(declined, "position/kind") != "context" {
		t.Errorf("declined: %v", declined)
	}
}

// A section is omitted if the whole guide is included.
func TestPositionsIncludeGuideOnce(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
	writeToCatalog(t, r, "routed/guides/00-way.md", "# The way\n\n## One\nslowly\n\n## Two\nsteadily\n")
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := callText(t, cs, "workflow_start", map[string]any{"workflowId": "routed"})
	if n := strings.Count(started.texts[0], "steadily"); n != 1 || !strings.Contains(started.texts[0], "slowly") {
		t.Errorf("the section is included %d times:\n%s", n, started.texts[0])
	}
}

// A position reports a guide that does not exist, and a section that its guide does not
// have.
func TestPositionsNameMissingGuides(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	if started := callText(t, cs, "workflow_start", map[string]any{"workflowId": "routed"}); !strings.Contains(started.texts[0], "The workflow has no such guide") {
		t.Errorf("without the guide:\n%s", started.texts[0])
	}
	writeToCatalog(t, r, "routed/guides/00-way.md", "# The way\n\n## One\nslowly\n")
	if started := callText(t, cs, "workflow_start", map[string]any{"workflowId": "routed"}); !strings.Contains(started.texts[0], `The guide has no section "Two"`) {
		t.Errorf("without the section:\n%s", started.texts[0])
	}
}

// TestRunTransitionsUsePinnedDefinition checks that validate_transition uses the pinned
// definition of a run if it has a handle, and otherwise the definition in the catalog.
func TestRunTransitionsUsePinnedDefinition(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets = append(mcpserver.DefaultToolsets(), mcpserver.ToolsetPhases) })
	writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("b"))
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "routed", "context": map[string]any{"big": true}})
	writeToCatalog(t, r, "routed/routed.json", phasesWithRoute("other"))
	args := map[string]any{"workflow_id": "routed", "from_phase": "a", "to_phase": "b", "handle": started["handle"]}
	if got := callText(t, cs, "validate_transition", args); got.structure["valid"] != true || got.structure["leads_to"] != "b" {
		t.Errorf("the check with the run returns %v", got.structure)
	}
	delete(args, "handle")
	if got := callText(t, cs, "validate_transition", args); got.structure["valid"] != false {
		t.Errorf("the check with the catalog returns %v", got.structure)
	}
}

// writeToCatalog writes a file to the catalog's custom source, and loads the source.
func writeToCatalog(t *testing.T, r *testServer, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, filepath.Dir(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, r.dir, name, text)
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// skippingPhases is a workflow with two checkpoints in its first phase. Answers to the
// first skip different phases.
const skippingPhases = `{"id":"skipping","version":"1.0.0","title":"Skipping","initialPhase":"a","variables":[{"name":"big","type":"boolean","required":false}],
"phases":[
 {"id":"a","name":"A","required":true,
  "checkpoints":[
   {"id":"size","name":"Size","message":"How much?","required":true,"blocking":true,"options":[
    {"id":"all","label":"All"},{"id":"quick","label":"Quick","effect":{"skipPhases":["b"]}},
    {"id":"least","label":"Least","effect":{"skipPhases":["b","c"]}},{"id":"open","label":"Open","effect":{"skipPhases":["x"]}}]},
   {"id":"go","name":"Go","message":"Go?","required":true,"blocking":true,"options":[{"id":"yes","label":"Yes"},{"id":"other","label":"Other","effect":{"transitionTo":"x"}}]}],
  "transitions":[{"to":"b","isDefault":true}]},
 {"id":"b","name":"B","required":true,"transitions":[{"to":"c","isDefault":true}]},
 {"id":"c","name":"C","required":true,"steps":[{"id":"u","name":"End","required":true}]},
 {"id":"x","name":"X","required":true,"transitions":[{"to":"c","condition":{"type":"simple","variable":"big","operator":"==","value":true}}]}]}`

// validate_transition passes over the phases that an answer has skipped, as a run does.
func TestTransitionsPassSkippedPhases(t *testing.T) {
	t.Parallel()
	r := newTestServer(t, func(o *mcpserver.Options) { o.Toolsets = append(mcpserver.DefaultToolsets(), mcpserver.ToolsetPhases) })
	writeToCatalog(t, r, "skipping/skipping.json", skippingPhases)
	cs := connectClient(t, r.server, "memory", "ann", "2025-11-25", nil)
	tests := []struct {
		answer, to string
		valid      bool
		leads      string
		reason     string
	}{
		{"all", "b", true, "b", "b is next: the default transition applies"},
		{"all", "c", false, "", "No valid transition. Valid: b, x"},
		{"quick", "c", true, "c", "c is next: the default transition applies"},
		{"quick", "b", false, "", "No valid transition. Valid: c, x"},
		{"quick", "x", true, "c", "The answer go/other leads to x"},
		{"least", "c", false, "", "No valid transition. Valid: x"},
		{"open", "x", false, "", "No valid transition. Valid: b"},
		{"open", "b", true, "b", "b is next: the default transition applies"},
	}
	for _, tt := range tests {
		started := callTool(t, cs, "workflow_start", map[string]any{"workflowId": "skipping"})
		asked := callTool(t, cs, "workflow_continue", map[string]any{"handle": started["handle"], "answer": map[string]any{"optionId": tt.answer}})
		got := callText(t, cs, "validate_transition", map[string]any{
			"workflow_id": "skipping", "from_phase": "a", "to_phase": tt.to, "handle": asked["handle"],
		})
		leads, _ := got.structure["leads_to"].(string)
		reason, _ := got.structure["reason"].(string)
		if got.isError || got.structure["valid"] != tt.valid || leads != tt.leads || !strings.HasPrefix(reason, tt.reason) {
			t.Errorf("%s, to %s: %v", tt.answer, tt.to, got.structure)
		}
		if tt.answer != "quick" || tt.to != "c" {
			continue
		}
		left := callTool(t, cs, "workflow_continue", map[string]any{"handle": asked["handle"], "answer": map[string]any{"optionId": "yes"}})
		if memberAt(left, "position/phase/id") != tt.to {
			t.Errorf("the run is at %v, but the tool returned %s", memberAt(left, "position/phase"), tt.to)
		}
	}

	state := map[string]any{
		"currentPhase": 1,
		"checkpointResponses": map[string]any{"1-1": map[string]any{
			"optionId": "least", "respondedAt": "2026-01-22T10:00:00Z", "effects": map[string]any{"phasesSkipped": []int{2, 3}},
		}, "1-2": map[string]any{
			"optionId": "other", "respondedAt": "2026-01-22T10:00:00Z", "effects": map[string]any{"transitionedTo": 4},
		}},
	}
	got := callText(t, cs, "validate_transition", map[string]any{"workflow_id": "skipping", "from_phase": "a", "to_phase": "x", "state": state})
	if got.structure["valid"] != true || got.structure["leads_to"] != "x" {
		t.Errorf("the check with a state document returns %v", got.structure)
	}
}
