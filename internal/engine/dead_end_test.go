package engine_test

import (
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// TestStepDeadEnd checks that a required step is a dead end if its validate action requires
// a different value of a variable that only the workflow sets. The step is not a dead end
// if the variable has the required value or the step is optional.
func TestStepDeadEnd(t *testing.T) {
	t.Parallel()
	w := func(agreed, required bool) engine.Position {
		p := engine.CompilePhases(&phases.Workflow{ID: "w", InitialPhase: "a", Phases: []phases.Phase{{
			ID: "a", Name: "A", Required: true,
			EntryActions: []phases.Action{{Action: phases.ActionSet, Target: "agreed", Value: agreed, HasValue: true}},
			Steps: []phases.Step{{
				ID: "s", Name: "S", Required: required,
				Actions: []phases.Action{{Action: phases.ActionValidate, Target: "agreed", Value: true, HasValue: true}},
			}},
		}}})
		return p.PositionOf(applyCommands(t, p, engine.State{}, startCommand(nil)))
	}
	if pos := w(false, true); !pos.DeadEnd || len(pos.Fields()) > 0 || pos.Message == "" {
		t.Errorf("with another value: %+v", pos)
	}
	for _, pos := range []engine.Position{w(true, true), w(false, false)} {
		if pos.DeadEnd {
			t.Errorf("with the value, or for an optional step: %+v", pos)
		}
	}
}

// TestOptionalPhaseDeadEnd checks a step of an optional phase that no output completes. The
// step is a dead end, and all calls are refused, only if no transition of the phase is
// decided.
func TestOptionalPhaseDeadEnd(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		transition phases.Transition
		start      map[string]any
		want       bool
	}{
		"undecided": {phases.Transition{To: "b", Condition: equalsCondition("go", true)}, nil, true},
		"decided":   {phases.Transition{To: "b", Condition: equalsCondition("go", true)}, map[string]any{"go": true}, false},
		"default":   {phases.Transition{To: "b"}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := engine.CompilePhases(&phases.Workflow{ID: "w", InitialPhase: "a", Phases: []phases.Phase{
				{
					ID: "a", Name: "A",
					EntryActions: []phases.Action{{Action: phases.ActionSet, Target: "agreed", Value: false, HasValue: true}},
					Steps: []phases.Step{{
						ID: "s", Name: "S", Required: true,
						Actions: []phases.Action{{Action: phases.ActionValidate, Target: "agreed", Value: true, HasValue: true}},
					}},
					Transitions: []phases.Transition{tt.transition},
				},
				{ID: "b", Name: "B", Required: true, Steps: []phases.Step{{ID: "t", Name: "T", Required: true}}},
			}})
			s := applyCommands(t, p, engine.State{}, startCommand(tt.start))
			pos := p.PositionOf(s)
			if pos.DeadEnd != tt.want || strings.Contains(pos.Prompt, "skip the rest") == tt.want || (len(pos.Fields()) == 0) != tt.want {
				t.Errorf("the position is %+v", pos)
			}
			legal := 0
			for _, c := range []engine.Continue{
				{Output: "done", Context: map[string]any{"go": true}},
				{Context: map[string]any{"go": true}},
				{Skip: &engine.Skip{Reason: "n/a"}},
				{Skip: &engine.Skip{Reason: "n/a"}, Context: map[string]any{"go": true}},
			} {
				if _, refusal := p.Decide(s, engine.Command{Continue: &c}); refusal == nil {
					legal++
				}
			}
			if (legal == 0) != tt.want {
				t.Errorf("%d calls are legal", legal)
			}
		})
	}
}

// TestExitDeadEnd checks that the exit of a phase is a dead end if its transition requires
// a value that does not have the declared type of the variable.
func TestExitDeadEnd(t *testing.T) {
	t.Parallel()
	for value, want := range map[any]bool{"done": false, true: true} {
		for _, withNull := range []bool{false, true} { // a default of null permits no other types
			p := engine.CompilePhases(&phases.Workflow{
				ID: "w", InitialPhase: "a", Variables: []phases.Variable{{Name: "status", Type: phases.TypeString, HasDefault: withNull}},
				Phases: []phases.Phase{
					{ID: "a", Name: "A", Required: true, Transitions: []phases.Transition{{To: "b", Condition: equalsCondition("status", value)}}},
					{ID: "b", Name: "B", Required: true},
				},
			})
			s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"status": "open"}))
			if pos := p.PositionOf(s); pos.Kind != engine.PositionContext || pos.DeadEnd != want {
				t.Errorf("%v, default null %t: %+v", value, withNull, pos)
			}
		}
	}
}

// TestExitDeadEndAfterDecisions checks that a branch that could apply does not hide a dead
// end: after the decisions of a phase, only its transitions lead out.
func TestExitDeadEndAfterDecisions(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(&phases.Workflow{
		ID: "w", InitialPhase: "a", Variables: []phases.Variable{{Name: "status", Type: phases.TypeString}},
		Phases: []phases.Phase{
			{
				ID: "a", Name: "A", Required: true,
				Decisions:   []phases.Decision{{ID: "d", Name: "D", Branches: []phases.Branch{{ID: "x", Condition: equalsCondition("status", "late"), TransitionTo: "b"}}}},
				Transitions: []phases.Transition{{To: "b", Condition: equalsCondition("status", true)}},
			},
			{ID: "b", Name: "B", Required: true},
		},
	})
	s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"status": "open"}))
	if pos := p.PositionOf(s); pos.Kind != engine.PositionContext || !pos.DeadEnd {
		t.Errorf("the position is %+v", pos)
	}
}
