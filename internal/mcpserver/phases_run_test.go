package mcpserver_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/mcpserver"
)

// routed is a workflow whose second phase is named by the caller.
func routed(second string) string {
	return fmt.Sprintf(`{"id":"routed","version":"1.0.0","title":"Routed","initialPhase":"a","variables":[{"name":"big","type":"boolean","required":false}],
"phases":[
 {"id":"a","name":"A","required":true,"guide":{"path":"00-way.md"},"steps":[{"id":"s","name":"Look","required":true,"guide":{"path":"00-way.md","section":"Two"}}],
  "checkpoints":[{"id":"c","name":"Ask","message":"Shall we?","prerequisite":"Show the list.","required":false,"blocking":true,"options":[{"id":"yes","label":"Yes"}]}],
  "transitions":[{"to":%q,"condition":{"type":"simple","variable":"big","operator":"==","value":true}},{"to":"z","isDefault":true}]},
 {"id":%q,"name":"B","required":true,"steps":[{"id":"t","name":"Do","required":true}]},
 {"id":"z","name":"Z","required":true,"steps":[{"id":"u","name":"End","required":true}]}]}`, second, second)
}

// A guide that a position names comes with it, for whoever has no other way to read
// it; a gate says what must be done before it and whether it can be declined.
func TestPositionsBringTheirGuides(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	put(t, r, "routed/routed.json", routed("b"))
	put(t, r, "routed/guides/00-way.md", "# The way\n\n## One\nslowly\n\n## Two\n"+strings.Repeat("steadily ", 900)+"\n")
	cs := dial(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := ask(t, cs, "workflow_start", map[string]any{"workflowId": "routed"})
	if !strings.Contains(started.texts[0], "slowly") || !strings.Contains(started.texts[0], "the whole is the resource guideway://guides/routed/00-way") {
		t.Errorf("the position does not bring its guide:\n%s", started.texts[0])
	}
	if first := len(dig(started.structure, "position/guides").([]any)); first != 2 {
		t.Errorf("%d guides", first)
	}
	gate := good(t, cs, "workflow_continue", map[string]any{"handle": started.structure["handle"], "output": "looked"})
	if dig(gate, "position/declinable") != true || dig(gate, "position/prompt") != "Before you ask: Show the list." {
		t.Errorf("the gate: %v", gate["position"])
	}
	declined := good(t, cs, "workflow_continue", map[string]any{"handle": gate["handle"], "answer": map[string]any{"decline": true}})
	if dig(declined, "position/kind") != "context" {
		t.Errorf("declined: %v", declined)
	}
}

// A section is not brought beside the whole guide that it is of.
func TestPositionsBringAGuideOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	put(t, r, "routed/routed.json", routed("b"))
	put(t, r, "routed/guides/00-way.md", "# The way\n\n## One\nslowly\n\n## Two\nsteadily\n")
	cs := dial(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := ask(t, cs, "workflow_start", map[string]any{"workflowId": "routed"})
	if n := strings.Count(started.texts[0], "steadily"); n != 1 || !strings.Contains(started.texts[0], "slowly") {
		t.Errorf("the section comes %d times:\n%s", n, started.texts[0])
	}
}

// A run is judged by the definition that it has pinned, whatever is in the catalog
// by now.
func TestTransitionsOfARunAreThoseOfItsDefinition(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(o *mcpserver.Options) { o.Toolsets = append(mcpserver.DefaultToolsets(), mcpserver.ToolsetPhases) })
	put(t, r, "routed/routed.json", routed("b"))
	cs := dial(t, r.server, "memory", "ann", "2025-11-25", nil)
	started := good(t, cs, "workflow_start", map[string]any{"workflowId": "routed", "context": map[string]any{"big": true}})
	put(t, r, "routed/routed.json", routed("other"))
	args := map[string]any{"workflow_id": "routed", "from_phase": "a", "to_phase": "b", "handle": started["handle"]}
	if got := ask(t, cs, "validate_transition", args); got.structure["valid"] != true || got.structure["leads_to"] != "b" {
		t.Errorf("by the run: %v", got.structure)
	}
	delete(args, "handle")
	if got := ask(t, cs, "validate_transition", args); got.structure["valid"] != false {
		t.Errorf("by the catalog: %v", got.structure)
	}
}

// put writes a file of the catalog's custom source and has it loaded.
func put(t *testing.T, r *rig, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, filepath.Dir(name)), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, r.dir, name, text)
	if err := r.catalog.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
}
