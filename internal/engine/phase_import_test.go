package engine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Everything that a state document names must exist in the workflow; the error names the
// missing item.
func TestImportRejectsUnknownItems(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	const at = "2026-01-22T10:00:00Z"
	type members = map[string]any
	answer := func(id string, effects members) members {
		r := members{"optionId": id, "respondedAt": at}
		if effects != nil {
			r["effects"] = effects
		}
		return r
	}
	outcome := func(id string, to int) members { return members{"branchId": id, "decidedAt": at, "transitionedTo": to} }
	tests := []struct {
		name   string
		more   members
		reason string // "" for a valid document
	}{
		{"nothing more", members{}, ""},
		{"every valid item", members{
			"completedPhases": []int{1}, "completedSteps": members{"1": []int{1, 2}},
			"checkpointResponses": members{"2-1": answer("quick", members{"phasesSkipped": []int{3}}), "2-2": answer("declined", nil)},
			"decisionOutcomes":    members{"1-1": outcome("large", 2)},
		}, ""},
		{"phase", members{"completedPhases": []int{5}}, "phase 5 does not exist: the workflow has 4 phases"},
		{"current step", members{"currentStep": 4}, "step 4 of phase 2 is current, but the phase has 1 step"},
		{"completed step", members{"completedSteps": members{"2": []int{2}}}, "step 2 of phase 2 is completed, but the phase has 1 step"},
		{"completed step of a missing phase", members{"completedSteps": members{"9": []int{1}}}, "phase 9 does not exist: the workflow has 4 phases"},
		{"loop", members{"activeLoops": []members{{"phaseIndex": 1, "loopIndex": 2, "currentIteration": 1, "startedAt": at}}}, "loop 2 of phase 1 is active, but the phase has 1 loop"},
		{"loop of a missing phase", members{"activeLoops": []members{{"phaseIndex": 9, "loopIndex": 1, "currentIteration": 1, "startedAt": at}}}, "a loop of phase 9 is active, but the workflow has 4 phases"},
		{"checkpoint", members{"checkpointResponses": members{"2-3": answer("yes", nil)}}, "checkpointResponses has the checkpoint 2-3, which does not exist in the workflow"},
		{"option", members{"checkpointResponses": members{"2-1": answer("perhaps", nil)}}, `checkpoint 2-1 is answered with "perhaps", but 'approve' accepts only yes, no, quick`},
		{"required and declined", members{"checkpointResponses": members{"2-1": answer("declined", nil)}}, `checkpoint 2-1 is answered with "declined", but 'approve' accepts only yes, no, quick`},
		{"effect", members{"checkpointResponses": members{"2-1": answer("no", members{"transitionedTo": 9})}}, "the answer to checkpoint 2-1 leads to or skips a phase that does not exist: the workflow has 4 phases"},
		{"decision", members{"decisionOutcomes": members{"2-1": outcome("large", 2)}}, "decisionOutcomes has the decision 2-1, which does not exist in the workflow"},
		{"branch", members{"decisionOutcomes": members{"1-1": outcome("huge", 2)}}, `decision 1-1 takes the branch "huge", but 'path' has only the branches small, large, ask-check, ask-done`},
		{"target", members{"decisionOutcomes": members{"1-1": outcome("large", 9)}}, "decision 1-1 leads to phase 9, which does not exist: the workflow has 4 phases"},
		{"type", members{"variables": members{"plan": []any{}}}, "the variable 'plan' is an array, not an object"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := members{"workflowId": "review", "workflowVersion": "1.0.0", "startedAt": at, "updatedAt": at, "currentPhase": 2}
			maps.Copy(d, tt.more)
			text, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Import(text)
			if tt.reason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if guideway.ErrorCode(err) != guideway.CodeInvalid || !strings.HasSuffix(err.Error(), tt.reason) {
				t.Errorf("%v, want %s", err, tt.reason)
			}
		})
	}
}

// TestDocumentBeforeFirstPhase checks that the state document of a run before its first
// phase has the number of the initial phase, which is not the first phase of the list here.
func TestDocumentBeforeFirstPhase(t *testing.T) {
	t.Parallel()
	w := reviewWorkflow()
	w.InitialPhase = "check"
	w.Variables[0].Required = true
	p := engine.CompilePhases(w)
	events, refusal := p.Decide(engine.State{}, startCommand(nil))
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	var timed []engine.TimedEvent
	for _, e := range events {
		timed = append(timed, engine.TimedEvent{Event: e})
	}
	doc := p.Document(timed)
	if doc.CurrentPhase != 2 || doc.History[0].Type != "workflow_started" || doc.History[0].Phase != 2 {
		t.Errorf("current phase %d, history %+v", doc.CurrentPhase, doc.History)
	}
}

// importDocument is a state document of the review workflow in its second phase.
const importDocument = `{"workflowId":"review","workflowVersion":"1.0.0","startedAt":"2026-01-22T10:00:00Z","updatedAt":"2026-01-22T10:00:00Z",
	"currentPhase":2,"completedPhases":[1],"completedSteps":{"1":[1,2]},"variables":{"size":"large"}}`

// In an import, the variables of the document take precedence over the defaults, and the
// completed steps of the document are counted.
func TestImportKeepsVariablesAndCount(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	e, err := p.Import([]byte(importDocument))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"size":"large","tested":false}`; asJSON(t, e.Vars) != want {
		t.Errorf("the variables are %s, want %s", asJSON(t, e.Vars), want)
	}
	if e.Kind != engine.EventStateImported || e.Count != 2 || e.State == nil || e.State.Phase != 2 {
		t.Errorf("the event is %s", asJSON(t, e))
	}
	s := engine.Apply(engine.State{}, e)
	if asJSON(t, s.Vars) != asJSON(t, e.Vars) {
		t.Errorf("the state has the variables %s", asJSON(t, s.Vars))
	}
}

// Recheck accepts an import only as the first event, and only if the import of its document
// results in the same event.
func TestRecheckOfImports(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	e, err := p.Import([]byte(importDocument))
	if err != nil {
		t.Fatal(err)
	}
	for _, person := range []bool{false, true} {
		legal := e
		legal.Person = person
		s, err := engine.Recheck(p, []engine.Event{legal})
		if err != nil || asJSON(t, s.Vars) != asJSON(t, e.Vars) {
			t.Errorf("Recheck of an import returned the variables %s, %v", asJSON(t, s.Vars), err)
		}
	}
	for name, edit := range map[string]func(e *engine.Event){
		"other variables":  func(e *engine.Event) { e.Vars = map[string]any{"size": "large", "tested": true} },
		"no variables":     func(e *engine.Event) { e.Vars = nil },
		"another count":    func(e *engine.Event) { e.Count++ },
		"no count":         func(e *engine.Event) { e.Count = 0 },
		"another position": func(e *engine.Event) { e.State = &engine.PhaseState{Phase: 4, Part: engine.PartSteps} },
		"no position":      func(e *engine.Event) { e.State = nil },
		"no document":      func(e *engine.Event) { e.Value = nil },
		"another workflow": func(e *engine.Event) { e.Value = map[string]any{"workflowId": "other", "currentPhase": 2.0} },
		"another document": func(e *engine.Event) { e.Value = map[string]any{"workflowId": "review", "currentPhase": 4.0} },
		"not a document":   func(e *engine.Event) { e.Value = "review" },
		"no JSON":          func(e *engine.Event) { e.Value = func() {} },
	} {
		forged := e
		edit(&forged)
		if _, err := engine.Recheck(p, []engine.Event{forged}); guideway.ErrorCode(err) != guideway.CodeConflict || !strings.Contains(err.Error(), "event 1 ") {
			t.Errorf("with %s: %v", name, err)
		}
	}
	started, refusal := p.Decide(engine.State{}, startCommand(nil))
	if refusal != nil {
		t.Fatal(refusal.Message)
	}
	for name, before := range map[string][]engine.Event{"a start": started[:1], "a start and its phase": started, "an import": {e}} {
		_, err := engine.Recheck(p, append(slices.Clone(before), e))
		if guideway.ErrorCode(err) != guideway.CodeConflict {
			t.Errorf("Recheck of an import after %s returned %v", name, err)
		}
	}
}
