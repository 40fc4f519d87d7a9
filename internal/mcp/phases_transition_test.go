package mcp_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Without variables validate_transition answers as the original server does; with variables
// it names the transition that applies.
func TestValidateTransition(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	type vars = map[string]any
	tests := []struct {
		from, to string
		more     map[string]any
		valid    bool
		reason   string
	}{
		{"a", "b", nil, true, ""},
		{"a", "c", nil, true, ""},
		{"1", "4", nil, true, ""},
		{"a", "e", nil, false, "No valid transition. Valid: b, c, f, d"},
		{"a", "a", nil, false, "No valid transition. Valid: b, c, f, d"},
		{"b", "c", nil, false, "No valid transition. Valid: none"},
		{"a", "ghost", nil, false, "Target phase not found: ghost"},
		{"ghost", "a", nil, false, "Source phase not found: ghost"},
		{"../../a", "a", nil, false, "Source phase not found: ../../a"},
		{"0", "a", nil, false, "Source phase not found: 0"},

		{"a", "b", vars{"variables": vars{"x": true}}, true, "b is next: the transition applies because x is true"},
		{"a", "b", vars{"variables": vars{"x": "true"}}, false, "No condition of a transition or branch holds, and there is no default"}, // Values are not converted.
		{"a", "b", vars{"variables": vars{}}, false, "No condition of a transition or branch holds, and there is no default"},
		{"a", "b", vars{"variables": vars{"x": true, "y": 2}}, false, "The variables lead to c: the branch applies because y > 1"}, // Decisions come before transitions.
		{"a", "c", vars{"variables": vars{"x": true, "y": 2}}, true, "c is next: the branch applies because y > 1"},
		{"a", "c", vars{"variables": vars{"y": "2"}}, false, "No condition of a transition or branch holds, and there is no default"},
		{"a", "d", vars{"variables": vars{"x": true}}, true, "The answer c1/go leads to d"},
		{"a", "e", vars{"variables": vars{"x": true}}, false, "No valid transition. Valid: b, c, f, d"},
		{"d", "e", vars{"variables": vars{}}, true, "e is next: a transition without a condition applies"},
		{"a", "b", vars{"state": vars{"currentPhase": 1, "variables": vars{"x": true}}}, true, "b is next: the transition applies because x is true"},
		{"a", "b", vars{"state": vars{"currentPhase": 2, "variables": vars{"x": true}}}, false, "The current phase is b, not a"},
	}
	for _, tt := range tests {
		args := map[string]any{"workflow_id": "ways", "from_phase": tt.from, "to_phase": tt.to}
		for name, value := range tt.more {
			args[name] = value
		}
		got := callText(t, cs, "validate_transition", args)
		reason, _ := got.structure["reason"].(string)
		if got.isError || got.structure["valid"] != tt.valid || reason != tt.reason {
			t.Errorf("%s to %s with %v: %v", tt.from, tt.to, tt.more, got.structure)
		}
	}
	got := callText(t, cs, "validate_transition", map[string]any{"workflow_id": "ways", "from_phase": "a", "to_phase": "b"})
	if diff := cmp.Diff([]any{map[string]any{"by": "transition", "to": "b", "condition": "x is true"}}, got.structure["ways"]); diff != "" {
		t.Errorf("the answer lacks the condition: %s", diff)
	}
	for _, state := range []vars{
		{},
		{"currentPhase": 0},
		{"currentPhase": "1"},
		{"currentPhase": 1.5},
		{"currentPhase": 7},
		{"currentPhase": 1, "workflowId": "another"},
		{"currentPhase": 1, "completedPhases": "all"},
	} {
		bad := callText(t, cs, "validate_transition", map[string]any{"workflow_id": "ways", "from_phase": "a", "to_phase": "b", "state": state})
		if !bad.isError || bad.structure["field"] != "state" {
			t.Errorf("state %v: %v", state, bad.structure)
		}
	}
	both := callText(t, cs, "validate_transition", map[string]any{
		"workflow_id": "ways", "from_phase": "a", "to_phase": "b", "variables": vars{"x": true}, "state": vars{"currentPhase": 1},
	})
	if !both.isError {
		t.Errorf("a call with two sets of variables returns %v", both.structure)
	}
	ghost := callText(t, cs, "validate_transition", map[string]any{"workflow_id": "ways", "from_phase": "a", "to_phase": "ghost"})
	if diff := cmp.Diff([]any{"a", "b", "c", "d", "e", "f"}, ghost.structure["allowed"]); diff != "" {
		t.Errorf("the answer lacks the phases: %s", diff)
	}
}

// TestValidateTransitionAfterAnswers checks that once an answer or a decision has chosen
// the next phase, no other phase is valid. An answered checkpoint does not offer its other
// options.
func TestValidateTransitionAfterAnswers(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, libraryFiles())
	at := "2026-01-22T10:00:00Z"
	tests := []struct {
		name  string
		state map[string]any
		to    string
		valid bool
		leads string
	}{
		{"no answer yet", map[string]any{}, "d", true, ""},
		{"answered otherwise", map[string]any{"checkpointResponses": map[string]any{"1-1": map[string]any{"optionId": "skip", "respondedAt": at}}}, "d", false, ""},
		{"an answer has chosen the next phase", map[string]any{"checkpointResponses": map[string]any{
			"1-1": map[string]any{"optionId": "go", "respondedAt": at, "effects": map[string]any{"transitionedTo": 4}},
		}}, "d", true, "d"},
		{"a decision has chosen another phase", map[string]any{"decisionOutcomes": map[string]any{
			"1-1": map[string]any{"branchId": "one", "decidedAt": at, "transitionedTo": 3},
		}}, "b", false, "c"},
		{"the state is in another phase", map[string]any{"checkpointResponses": map[string]any{"2-1": map[string]any{"optionId": "skip", "respondedAt": at}}}, "d", true, ""},
	}
	for _, tt := range tests {
		tt.state["currentPhase"] = 1
		got := callText(t, cs, "validate_transition", map[string]any{"workflow_id": "ways", "from_phase": "a", "to_phase": tt.to, "state": tt.state})
		leads, _ := got.structure["leads_to"].(string)
		if got.isError || got.structure["valid"] != tt.valid || leads != tt.leads {
			t.Errorf("%s: %v", tt.name, got.structure)
		}
	}
}

// offeringDecision is a workflow with a branch without a condition, and with a default
// transition that is not the last of its list.
const offeringDecision = `{"id":"offering","version":"1.0.0","title":"Offering","initialPhase":"a","phases":[
	{"id":"a","name":"A","decisions":[{"id":"d","name":"D","branches":[
		{"id":"one","label":"One","transitionTo":"b","condition":{"type":"simple","variable":"y","operator":"==","value":1}},
		{"id":"free","label":"Free","transitionTo":"c"}]}],"transitions":[{"to":"e","isDefault":true}]},
	{"id":"b","name":"B","transitions":[{"to":"c","isDefault":true,"condition":{"type":"simple","variable":"y","operator":"==","value":5}},
		{"to":"d","condition":{"type":"simple","variable":"y","operator":">","value":1}},{"to":"e","isDefault":true}]},
	{"id":"c","name":"C"},{"id":"d","name":"D"},{"id":"e","name":"E"}]}`

// A branch without a condition is offered, and a default applies at any place in the list.
func TestValidateTransitionDefaults(t *testing.T) {
	t.Parallel()
	cs := phaseServer(t, map[string]string{"offering.json": offeringDecision})
	tests := []struct {
		from, to string
		y        any
		valid    bool
		leads    string
	}{
		{"a", "b", 1, true, "b"},
		{"a", "c", 1, false, "b"},
		{"a", "e", 1, false, "b"},
		{"a", "c", 2, true, ""},
		{"a", "b", 2, false, ""},
		{"a", "e", 2, false, ""},
		{"b", "c", 5, true, "c"},
		{"b", "d", 2, true, "d"},
		{"b", "d", 5, false, "c"},
		{"b", "c", 0, true, "c"},
		{"b", "e", 0, false, "c"},
	}
	for _, tt := range tests {
		got := callText(t, cs, "validate_transition", map[string]any{
			"workflow_id": "offering", "from_phase": tt.from, "to_phase": tt.to, "variables": map[string]any{"y": tt.y},
		})
		leads, _ := got.structure["leads_to"].(string)
		if got.structure["valid"] != tt.valid || leads != tt.leads {
			t.Errorf("%s to %s with y = %v: %v", tt.from, tt.to, tt.y, got.structure)
		}
	}
}
