package mcp_test

import (
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/validate"
)

// workflow_status returns a run as a state document that matches the published schema.
func TestStatusReturnsStateDocument(t *testing.T) {
	t.Parallel()
	r := newTestServer(t)
	cs := connectClient(t, r.server, "memory", "ann", "2026-07-28", nil)
	started, isError := callRaw(t, cs, "workflow_start", map[string]any{"workflowId": "coding-task", "goal": "tell the state"})
	if isError {
		t.Fatal(started)
	}
	plain, _ := callRaw(t, cs, "workflow_status", map[string]any{"handle": started["handle"]})
	if _, told := plain["state"]; told {
		t.Error("the answer has a state document that was not requested")
	}
	whole, isError := callRaw(t, cs, "workflow_status", map[string]any{"runId": started["runId"], "state": true})
	if isError {
		t.Fatal(whole)
	}
	checked := validate.Safe([]byte(encodeJSON(t, whole["state"])), validate.Options{Dialect: guideway.DialectPhases, Kind: "state"})
	if !checked.Valid() {
		t.Errorf("the state document does not match the schema: %v", checked.Diagnostics)
	}
}
