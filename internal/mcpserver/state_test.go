package mcpserver_test

import (
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/validate"
)

// A run is told as a state document that fits the published schema, by the tool
// that tells where it stands.
func TestStatusTellsTheStateDocument(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	cs := dial(t, r.server, "memory", "ann", "2026-07-28", nil)
	started, isError := call(t, cs, "workflow_start", map[string]any{"workflowId": "coding-task", "goal": "tell the state"})
	if isError {
		t.Fatal(started)
	}
	plain, _ := call(t, cs, "workflow_status", map[string]any{"handle": started["handle"]})
	if _, told := plain["state"]; told {
		t.Error("the state is told unasked")
	}
	whole, isError := call(t, cs, "workflow_status", map[string]any{"runId": started["runId"], "state": true})
	if isError {
		t.Fatal(whole)
	}
	checked := validate.Safe([]byte(asJSON(t, whole["state"])), validate.Options{Dialect: guideway.DialectPhases, Kind: "state"})
	if !checked.Valid() {
		t.Errorf("the state document: %v", checked.Diagnostics)
	}
}
