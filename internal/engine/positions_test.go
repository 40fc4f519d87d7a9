package engine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// TestImportedPosition checks where the import of a state document places a run: before the
// first phase, at the entry of a phase, at a step, in a loop, or at a checkpoint.
func TestImportedPosition(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	const at = "2026-01-22T10:00:00Z"
	type members = map[string]any
	started := members{"type": "workflow_started", "phase": 1, "timestamp": at}
	entered := members{"type": "phase_entered", "phase": 1, "timestamp": at}
	loop := []members{{"phaseIndex": 1, "loopIndex": 1, "currentIteration": 2, "startedAt": at}}
	for name, tt := range map[string]struct {
		more  members
		phase int
		part  engine.Part
		index int
	}{
		"started, no phase entered": {members{"history": []members{started}}, 0, "", 0},
		"entered":                   {members{"history": []members{started, entered}}, 1, engine.PartEntry, 0},
		"no history":                {members{}, 1, engine.PartEntry, 0},
		"no history, at step 1":     {members{"currentStep": 1}, 1, engine.PartEntry, 0},
		"no history, at step 2":     {members{"currentStep": 2}, 1, engine.PartSteps, 1},
		"started, at step 2":        {members{"currentStep": 2, "history": []members{started}}, 1, engine.PartSteps, 1},
		"step 1 is completed":       {members{"completedSteps": members{"1": []int{1}}}, 1, engine.PartSteps, 1},
		"started, step 1 completed": {members{"completedSteps": members{"1": []int{1}}, "history": []members{started}}, 1, engine.PartSteps, 1},
		"both steps are completed":  {members{"completedSteps": members{"1": []int{1, 2}}}, 1, engine.PartLoops, 0},
		"in the loop":               {members{"activeLoops": loop, "variables": taskVars("a", "b")}, 1, engine.PartLoops, 0},
		"a later phase, nothing done": {
			members{"currentPhase": 2, "completedPhases": []int{1}, "history": []members{started}}, 2, engine.PartEntry, 0,
		},
		"a later phase, its step done": {members{"currentPhase": 2, "completedSteps": members{"2": []int{1}}}, 2, engine.PartCheckpoints, 0},
	} {
		d := members{"workflowId": "review", "workflowVersion": "1.0.0", "startedAt": at, "updatedAt": at, "currentPhase": 1}
		maps.Copy(d, tt.more)
		text, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		e, err := p.Import(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if e.State.Phase != tt.phase || e.State.Part != tt.part || e.State.Index != tt.index {
			t.Errorf("%s: the run is in phase %d at %q %d, want %d at %q %d", name, e.State.Phase, e.State.Part, e.State.Index, tt.phase, tt.part, tt.index)
		}
	}
}

// entryWorkflow returns a workflow of one phase with actions at its entry and exit.
func entryWorkflow(entry, exit []phases.Action) *phases.Workflow {
	return &phases.Workflow{
		ID: "doors", Version: "1.0.0", Title: "Doors", InitialPhase: "room",
		Variables: []phases.Variable{{Name: "ready", Type: phases.TypeBoolean}, {Name: "owner", Type: phases.TypeString}},
		Phases: []phases.Phase{{
			ID: "room", Name: "the room", Required: true, EntryActions: entry, ExitActions: exit,
			Steps: []phases.Step{{ID: "work", Name: "Work", Required: true}},
		}},
	}
}

// TestConditionsOfEntryAndExit checks that a run asks in one step for consecutive entry or
// exit conditions that the engine cannot evaluate, and that it waits for the variable of a
// condition on a variable. The title of the step states whether the phase is entered or
// left.
func TestConditionsOfEntryAndExit(t *testing.T) {
	t.Parallel()
	ask := func(what string) phases.Action {
		return phases.Action{Action: phases.ActionValidate, Target: what, Message: what + " is tidy"}
	}
	variable := phases.Action{Action: phases.ActionValidate, Target: "ready", Value: true, HasValue: true, Message: "be ready"}
	p := engine.CompilePhases(entryWorkflow([]phases.Action{ask("the desk"), ask("the floor"), variable, ask("the wall")}, []phases.Action{ask("the door")}))
	s := applyCommands(t, p, engine.State{}, startCommand(nil))
	for _, want := range []struct {
		title    string
		criteria []string
	}{
		{"Enter the room", []string{"the desk", "the floor"}},
		{"", nil},
		{"Enter the room", []string{"the wall"}},
		{"Work", nil},
		{"Leave the room", []string{"the door"}},
	} {
		pos := p.PositionOf(s)
		if want.title == "" {
			if pos.Kind != engine.PositionContext {
				t.Fatalf("at %+v, want a wait for the variable", pos)
			}
			s = applyCommands(t, p, s, outputCommand("", map[string]any{"ready": true}))
			continue
		}
		if pos.Title != want.title || len(pos.Criteria) != len(want.criteria) {
			t.Fatalf("at %q with %q, want %q with %q", pos.Title, pos.Criteria, want.title, want.criteria)
		}
		for i, text := range want.criteria {
			if !strings.Contains(pos.Criteria[i], text) {
				t.Errorf("criterion %d is %q, want %q", i, pos.Criteria[i], text)
			}
		}
		s = applyCommands(t, p, s, engine.Command{Continue: &engine.Continue{Output: "done", Notes: "seen"}})
	}
	if p.Status(s) != engine.StatusCompleted {
		t.Errorf("the run is %s", p.Status(s))
	}
}

// TestConditionWithoutAValue checks that a validate action without a value requires any
// value except null, and that one with a value requires that value.
func TestConditionWithoutAValue(t *testing.T) {
	t.Parallel()
	exists := phases.Action{Action: phases.ActionValidate, Target: "owner", Message: "somebody owns it"}
	equals := phases.Action{Action: phases.ActionValidate, Target: "owner", Value: "ann", HasValue: true, Message: "ann owns it"}
	for name, tt := range map[string]struct {
		action phases.Action
		value  any
		passes bool
	}{
		"any value":     {exists, "bob", true},
		"an empty text": {exists, "", true},
		"null":          {exists, nil, false},
		"the value":     {equals, "ann", true},
		"another value": {equals, "bob", false},
	} {
		p := engine.CompilePhases(entryWorkflow([]phases.Action{tt.action}, nil))
		s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"owner": tt.value}))
		if pos := p.PositionOf(s); (pos.Kind == engine.PositionStep && pos.ID == "work") != tt.passes {
			t.Errorf("%s: at %s %q", name, pos.Kind, pos.ID)
		}
	}
}

// TestRunBeforeItsStart checks that the position of a run that has not started has the kind
// of the end and no other fields.
func TestRunBeforeItsStart(t *testing.T) {
	t.Parallel()
	for name, p := range map[string]engine.Flow{"steps": compileSteps(t, threeSteps), "phases": engine.CompilePhases(reviewWorkflow())} {
		if d := cmp.Diff(engine.Position{Kind: engine.PositionEnd}, p.PositionOf(engine.State{})); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestEachFunctionIsDefinedOnce checks that an answer defines a function once, even if a
// step names it several times. workflow_next returns a step's own functions with the step
// and the others as guidance; the position of a run contains all of them.
func TestEachFunctionIsDefinedOnce(t *testing.T) {
	t.Parallel()
	p := compileAll(t, `{"id":"probe","name":"P","description":"d","version":"1.0.0",
		"functionDefinitions":[{"name":"measure","definition":"Measure."},{"name":"cut","definition":"Cut."},{"name":"own","definition":"Another."}],
		"steps":[{"id":"work","title":"W","prompt":"w","functionReferences":["own()","measure()","measure()"],
			"functionDefinitions":[{"name":"own","definition":"Own."}],
			"functionCalls":[{"name":"measure","args":{}},{"name":"cut","args":{}},{"name":"cut","args":{}}]}]}`)
	res := callNext(t, p, nil, `{}`)
	var guidance, own, position []string
	for _, f := range res.Guidance.Functions {
		guidance = append(guidance, f.Definition)
	}
	for _, f := range res.Step.FunctionDefinitions {
		own = append(own, f.Definition)
	}
	for _, f := range p.PositionOf(applyToProgram(t, p, engine.State{}, startCommand(nil))).Functions {
		position = append(position, f.Definition)
	}
	if !slices.Equal(own, []string{"Own."}) || !slices.Equal(guidance, []string{"Measure.", "Cut."}) || !slices.Equal(position, []string{"Own.", "Measure.", "Cut."}) {
		t.Errorf("the step has %q, its guidance %q, the position %q", own, guidance, position)
	}
}

// TestCompletedStepsBelongToTheirRound checks that Next assigns completed steps to the
// rounds of a loop in the order of the list. The condition of one step reads the round
// number and a variable of the caller.
func TestCompletedStepsBelongToTheirRound(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[
		{"id":"the-loop","type":"loop","title":"L","loop":{"type":"for","count":3,"maxIterations":3,"iterationVar":"round"},"body":[
			{"id":"always","title":"A","prompt":"a"},
			{"id":"mixed","title":"M","prompt":"m","runCondition":{"and":[{"var":"round","gte":2},{"var":"big","equals":true}]}}]},
		{"id":"after","title":"After","prompt":"After."}]`)
	want := []string{"always", "always", "mixed", "always", "mixed", "after"}
	for n := range want {
		if got := stepID(callNext(t, p, want[:n], `{"big":true}`)); got != want[n] {
			t.Errorf("after %q comes %q, want %q", want[:n], got, want[n])
		}
	}
	for n, want := 0, []string{"always", "always", "always", "after"}; n < len(want); n++ {
		if got := stepID(callNext(t, p, want[:n], `{"big":false}`)); got != want[n] {
			t.Errorf("without the variable, after %q comes %q, want %q", want[:n], got, want[n])
		}
	}
}
