package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// TestPlaceholderOfEachField checks that an agent's output, notes, skip reason and answer
// note are refused if they are a placeholder, and not if they have content. A person's note
// may be a placeholder.
func TestPlaceholderOfEachField(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, guarded)
	step := applyToProgram(t, p, engine.State{}, startCommand(nil), outputCommand("DONE", nil))
	gate := applyToProgram(t, p, step, outputCommand("approve", nil))
	answer := func(note string, person bool) engine.Command {
		return engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{OptionID: engine.OptionConfirm, Note: note}, Person: person}}
	}
	skip := func(reason string) engine.Command {
		return engine.Command{Continue: &engine.Continue{Skip: &engine.Skip{Reason: reason}}}
	}
	const content = "content"
	for name, tt := range map[string]struct {
		state   engine.State
		command func(text string) engine.Command
	}{
		"output": {step, func(text string) engine.Command { return outputCommand(text, nil) }},
		"notes": {step, func(text string) engine.Command {
			return engine.Command{Continue: &engine.Continue{Output: content, Notes: text}}
		}},
		"skip.reason": {step, skip},
		"answer.note": {gate, func(text string) engine.Command { return answer(text, false) }},
	} {
		for _, text := range []string{"TODO", "...", "<the text>", " `the\u200b\nuser's words` "} {
			_, r := p.Decide(tt.state, tt.command(text))
			if r == nil || r.Rule != engine.RulePlaceholder || !strings.HasPrefix(r.Message, name+" is a placeholder") {
				t.Errorf("%s as %q: %+v", name, text, r)
			}
		}
		if _, r := p.Decide(tt.state, tt.command(content)); r != nil && r.Rule == engine.RulePlaceholder {
			t.Errorf("%s with content: %+v", name, r)
		}
	}
	if _, r := p.Decide(gate, answer("TODO", true)); r != nil {
		t.Errorf("the note of a person: %+v", r)
	}
}

// TestPlaceholdersInContext checks which values of variables are refused as placeholders:
// an ellipsis and a text of the position for any variable, and any placeholder for a
// variable that the run asks for. Values that the definition tests for, default values and
// other data of the user are accepted.
func TestPlaceholdersInContext(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(&phases.Workflow{
		ID: "w", InitialPhase: "a",
		Variables: []phases.Variable{
			{Name: "status", Type: phases.TypeString},
			{Name: "who", Type: phases.TypeString, Description: "The name of the owner"},
			{Name: "dir", Type: phases.TypeString, HasDefault: true, DefaultValue: "..."},
		},
		Phases: []phases.Phase{{ID: "a", Name: "A", Required: true, Steps: []phases.Step{{ID: "s", Name: "S", Required: true}}, ExitActions: []phases.Action{
			{Action: phases.ActionValidate, Target: "status", Value: "todo", HasValue: true}, {Action: phases.ActionValidate, Target: "who"},
		}}},
	})
	waits := applyCommands(t, p, engine.State{}, startCommand(nil), outputCommand("x", nil))
	if pos := p.PositionOf(waits); pos.Kind != engine.PositionContext {
		t.Fatalf("at %+v", pos)
	}
	for _, tt := range []struct {
		context map[string]any
		refused bool
	}{
		{map[string]any{"status": "todo"}, false},
		{map[string]any{"status": "TBD"}, true},
		{map[string]any{"status": "the actual value"}, true},
		{map[string]any{"other": "todo", "path": "..", "link": "<https://example.com>", "none": "<none>"}, false},
		{map[string]any{"items": []any{map[string]any{"status": "todo", "text": "."}}}, false},
		{map[string]any{"items": []any{map[string]any{"text": "..."}}}, true},
		{map[string]any{"other": "\u200b…"}, true},
		{map[string]any{"other": "Variables to set"}, true},
		{map[string]any{"dir": "..."}, false}, // the default of the definition
	} {
		_, r := p.Decide(waits, engine.Command{Continue: &engine.Continue{Context: tt.context}})
		if refused := r != nil && r.Rule == engine.RulePlaceholder; refused != tt.refused {
			t.Errorf("%v: %+v", tt.context, r)
		}
	}
	if _, r := p.Decide(engine.State{}, startCommand(map[string]any{"dir": "..."})); r != nil {
		t.Errorf("a run cannot be started with the default: %+v", r)
	}
}

// TestTextsOfThePositionAreNoOutput checks that the prompt, the description of the output
// field, the criteria and the issues of a refusal are refused as output, although some of
// them contain the text that the criteria require.
func TestTextsOfThePositionAreNoOutput(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"one","title":"One","prompt":"Write DONE when it works.","validationCriteria":[
		{"type":"contains","value":"DONE","message":"Say DONE at the end"}]},
		{"id":"two","title":"Two","prompt":"Write DONE when it works.","validationCriteria":[{"type":"contains","value":"DONE","message":"The output contains DONE."}]}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil))
	for _, id := range []string{"one", "two"} {
		pos := p.PositionOf(s)
		if pos.ID != id {
			t.Fatalf("at %+v", pos)
		}
		_, blank := p.Decide(s, outputCommand("nothing", nil))
		for _, text := range append(append([]string{pos.Prompt, "The step's full output"}, pos.Criteria...), blank.Issues...) {
			if _, r := p.Decide(s, outputCommand(text, nil)); r == nil {
				t.Errorf("%s: %q passes", id, text)
			}
		}
		s = applyToProgram(t, p, s, outputCommand("It works: DONE", nil))
	}
}

// TestHintsNameTheVariablesThatAreRead checks that Hints names the variables that a
// workflow reads in conditions, texts, loops, confirmations and actions, and the variables
// of its loops.
func TestHintsNameTheVariablesThatAreRead(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[
		{"id":"one","title":"For {{who}}","prompt":"Read {{doc.title}}.","guidance":["Mind {{rule}}."],"agentRole":"You are the {{role}}.","runCondition":{"var":"size","equals":"large"},
		 "requireConfirmation":{"var":"risk","equals":"high"}},
		{"id":"each","type":"loop","title":"L","loop":{"type":"forEach","items":"plan.items","itemVar":"item","indexVar":"place","iterationVar":"turn","maxIterations":2},
		 "body":[{"id":"work","title":"W","prompt":"w {{inner}}"}]},
		{"id":"again","type":"loop","title":"L","loop":{"type":"while","condition":{"var":"more","equals":true},"maxIterations":2},"body":[{"id":"rest","title":"R","prompt":"r"}]}]`)
	got := p.Hints().Variables
	for _, name := range []string{"who", "doc", "rule", "role", "size", "risk", "plan", "item", "place", "turn", "inner", "more"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is read, but the hints are %q", name, got)
		}
	}
	if slices.Contains(got, "") || slices.Contains(got, "doc.title") || !slices.IsSorted(got) {
		t.Errorf("the hints are %q", got)
	}
	w := reviewWorkflow()
	w.Variables = append(w.Variables, phases.Variable{Name: "needed", Type: phases.TypeString, Required: true}, phases.Variable{Name: "unread", Type: phases.TypeString})
	w.Phases[2].Loops = []phases.Loop{{ID: "polish", Name: "Polish", Type: phases.LoopWhile, Condition: equalsCondition("dull", true), MaxIterations: 3}}
	w.Phases[2].EntryActions = []phases.Action{{Action: phases.ActionValidate, Target: "lamp.on", Value: true, HasValue: true}}
	w.Phases[2].ExitActions = []phases.Action{{Action: phases.ActionValidate, Target: "door", Value: true, HasValue: true}, {Action: phases.ActionSet, Target: "written", Value: 1.0, HasValue: true}}
	got = engine.CompilePhases(w).Hints().Variables
	for _, name := range []string{"size", "approved", "tested", "plan", "task", "enough", "needed", "dull", "lamp", "door"} {
		if !slices.Contains(got, name) {
			t.Errorf("%s is read, but the hints are %q", name, got)
		}
	}
	if slices.Contains(got, "unread") || slices.Contains(got, "") {
		t.Errorf("the hints are %q", got)
	}
}

// TestFormDescribesDeclaredVariables checks that the form of a step lists each variable
// that fails a validate action of the step, with its declared description and type. The
// form does not offer only the value that would pass.
func TestFormDescribesDeclaredVariables(t *testing.T) {
	t.Parallel()
	validate := func(name string, value any) phases.Action {
		return phases.Action{Action: phases.ActionValidate, Target: name, Value: value, HasValue: value != nil, Message: name}
	}
	w := entryWorkflow(nil, nil)
	w.Variables = []phases.Variable{
		{Name: "ready", Type: phases.TypeBoolean, Description: "Whether all is ready."},
		{Name: "count", Type: phases.TypeNumber, Description: "How many there are."},
		{Name: "owner", Type: phases.TypeString, Description: "Who owns it."},
		{Name: "set", Type: phases.TypeBoolean},
	}
	w.Phases[0].Steps[0].Actions = []phases.Action{validate("ready", true), validate("count", 3.0), validate("owner", nil), validate("set", true)}
	p := engine.CompilePhases(w)
	pos := p.PositionOf(applyCommands(t, p, engine.State{}, startCommand(map[string]any{"set": true})))
	want := []engine.Field{
		{Name: "context.ready", Description: "Whether all is ready.", Type: "boolean", Choices: []any{true, false}},
		{Name: "context.count", Description: "How many there are.", Type: "number"},
		{Name: "context.owner", Description: "Who owns it."},
	}
	if d := cmp.Diff(want, pos.Fields()[1:]); d != "" {
		t.Errorf("the fields (-want +got):\n%s", d)
	}
}

// TestGateShowsItsPrerequisite checks that the prompt of a checkpoint contains its
// prerequisite, and is empty for a checkpoint without one.
func TestGateShowsItsPrerequisite(t *testing.T) {
	t.Parallel()
	w := reviewWorkflow()
	w.InitialPhase = "check"
	w.Phases[1].Checkpoints[0].Prerequisite = "Show the results."
	p := engine.CompilePhases(w)
	s := applyCommands(t, p, engine.State{}, startCommand(nil), outputCommand("checked", map[string]any{"tested": true}))
	if pos := p.PositionOf(s); pos.ID != "approve" || pos.Prompt != "Before you ask: Show the results." {
		t.Errorf("at %s with the prompt %q", pos.ID, pos.Prompt)
	}
	s = applyCommands(t, p, s, humanAnswer("yes"))
	if pos := p.PositionOf(s); pos.ID != "remark" || pos.Prompt != "" {
		t.Errorf("without a prerequisite: at %s with the prompt %q", pos.ID, pos.Prompt)
	}
}

// TestEmptyLoopIsPassed checks that a run skips a loop over an empty list and continues
// with the next loop, the checkpoint or the next phase.
func TestEmptyLoopIsPassed(t *testing.T) {
	t.Parallel()
	loop := func(id, over string) phases.Loop {
		return phases.Loop{
			ID: id, Name: id, Type: phases.LoopForEach, Variable: id + "Item", Over: over, MaxIterations: 5,
			Steps: []phases.Step{{ID: id + "-step", Name: "Work", Required: true}},
		}
	}
	checkpoint := phases.Checkpoint{ID: "ask", Name: "Ask", Message: "Good?", Required: true, Blocking: true, Options: []phases.Option{{ID: "yes", Label: "Yes"}}}
	decision := phases.Decision{ID: "way", Name: "Way", Branches: []phases.Branch{
		{ID: "a", Label: "A", Condition: equalsCondition("way", "a"), TransitionTo: "end"}, {ID: "b", Label: "B", Condition: equalsCondition("way", "b"), TransitionTo: "end"},
	}}
	for name, tt := range map[string]struct {
		phase phases.Phase
		want  string
	}{
		"before a loop":       {phases.Phase{Loops: []phases.Loop{loop("first", "none"), loop("second", "some")}}, "second-step"},
		"before a checkpoint": {phases.Phase{Loops: []phases.Loop{loop("first", "none")}, Checkpoints: []phases.Checkpoint{checkpoint}}, "ask"},
		"before a decision":   {phases.Phase{Loops: []phases.Loop{loop("first", "none")}, Decisions: []phases.Decision{decision}}, "last"},
		"before the end":      {phases.Phase{Loops: []phases.Loop{loop("first", "none")}}, "last"},
	} {
		first := tt.phase
		first.ID, first.Name, first.Required = "begin", "Begin", true
		first.Steps = []phases.Step{{ID: "work", Name: "Work", Required: true}}
		if len(first.Decisions) == 0 {
			first.Transitions = []phases.Transition{{To: "end"}}
		}
		p := engine.CompilePhases(&phases.Workflow{
			ID: "empty", Version: "1.0.0", Title: "Empty", InitialPhase: "begin",
			Variables: []phases.Variable{{Name: "none", Type: phases.TypeArray}, {Name: "some", Type: phases.TypeArray}, {Name: "way", Type: phases.TypeString}},
			Phases:    []phases.Phase{first, {ID: "end", Name: "End", Required: true, Steps: []phases.Step{{ID: "last", Name: "Last", Required: true}}}},
		})
		s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"none": []any{}, "some": []any{"x"}, "way": "b"}), outputCommand("worked", nil))
		if pos := p.PositionOf(s); pos.ID != tt.want {
			t.Errorf("%s: at %s %q, want %q", name, pos.Kind, pos.ID, tt.want)
		}
	}
}

// TestRecheckComparesNumbers checks that Recheck and FoldFrom refuse the events of a legal
// walk if the phase, item, step, round or target of one event is changed.
func TestRecheckComparesNumbers(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	var events []engine.Event
	s := engine.State{}
	for _, c := range []engine.Command{
		startCommand(nil), outputCommand("read it", nil), skipCommand(), outputCommand("", taskVars("a", "b")), outputCommand("a", nil), outputCommand("b", nil),
		outputCommand("", map[string]any{"size": "medium"}), answerCommand("ask-check"), notesCommand("clean"), outputCommand("checked", map[string]any{"tested": true}),
		humanAnswer("yes"), answerCommand("none"), skipCommand(), outputCommand("there", nil),
	} {
		more, r := p.Decide(s, c)
		if r != nil {
			t.Fatalf("%+v: %s", c.Continue, r.Message)
		}
		next, err := p.FoldFrom(s, more)
		if err != nil {
			t.Fatal(err)
		}
		s, events = next, append(events, more...)
	}
	if _, err := engine.Recheck(p, events); err != nil {
		t.Fatal(err)
	}
	checked := map[engine.EventKind]bool{}
	for i, e := range events {
		if slices.Contains([]engine.EventKind{engine.EventRunStarted, engine.EventContextSet}, e.Kind) {
			continue
		}
		checked[e.Kind] = true
		edits := map[string]func(e *engine.Event){"phase": func(e *engine.Event) { e.Phase++ }, "target": func(e *engine.Event) { e.To = 99 }}
		if e.Step != "" {
			edits["step"] = func(e *engine.Event) { e.Step += "x" }
		}
		if e.Kind == engine.EventStepCompleted || e.Kind == engine.EventStepStarted || e.Kind == engine.EventLoopIteration {
			edits["item"] = func(e *engine.Event) { e.Item++ }
			if e.Round > 0 {
				edits["round"] = func(e *engine.Event) { e.Round++ }
			}
		}
		for name, edit := range edits {
			forged := slices.Clone(events)
			edit(&forged[i])
			if _, err := engine.Recheck(p, forged); guideway.ErrorCode(err) != guideway.CodeConflict {
				t.Errorf("event %d (%s) with another %s: %v", i+1, e.Kind, name, err)
			}
			if _, err := p.FoldFrom(engine.State{}, forged[:i+1]); guideway.ErrorCode(err) != guideway.CodeConflict {
				t.Errorf("FoldFrom: event %d (%s) with another %s: %v", i+1, e.Kind, name, err)
			}
		}
	}
	if len(checked) < 12 {
		t.Errorf("the walk has only events of %d kinds", len(checked))
	}
}

// A phase that an answer skips leads to its default target, or else to the target of the
// first condition that holds. If no condition holds, the run waits for the variables of the
// conditions.
func TestTargetOfASkippedPhase(t *testing.T) {
	t.Parallel()
	holds, fails := equalsCondition("size", "large"), equalsCondition("size", "small")
	for name, tt := range map[string]struct {
		polish phases.Phase
		want   string
	}{
		"a default branch":      {phases.Phase{Decisions: []phases.Decision{{Branches: []phases.Branch{{Condition: holds, TransitionTo: "done"}, {IsDefault: true, TransitionTo: "extra"}}}}}, "more"},
		"a branch":              {phases.Phase{Decisions: []phases.Decision{{Branches: []phases.Branch{{Condition: fails, TransitionTo: "done"}, {Condition: holds, TransitionTo: "extra"}}}}}, "more"},
		"no branch":             {phases.Phase{Decisions: []phases.Decision{{Branches: []phases.Branch{{Condition: fails, TransitionTo: "done"}}}}}, ""},
		"a default transition":  {phases.Phase{Transitions: []phases.Transition{{To: "done", Condition: holds}, {To: "extra", IsDefault: true}}}, "more"},
		"a transition":          {phases.Phase{Transitions: []phases.Transition{{To: "done", Condition: fails}, {To: "extra", Condition: holds}}}, "more"},
		"a branch and no other": {phases.Phase{Decisions: []phases.Decision{{Branches: []phases.Branch{{Condition: holds, TransitionTo: "extra"}}}}, Transitions: []phases.Transition{{To: "done", Condition: fails}}}, "more"},
	} {
		w := reviewWorkflow()
		w.InitialPhase = "check"
		polish := tt.polish
		polish.ID, polish.Name, polish.Steps = "polish", "Polish", w.Phases[2].Steps
		w.Phases[2] = polish
		w.Phases = append(w.Phases, phases.Phase{ID: "extra", Name: "Extra", Required: true, Steps: []phases.Step{{ID: "more", Name: "More", Required: true}}})
		p := engine.CompilePhases(w)
		s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"size": "large"}), outputCommand("checked", map[string]any{"tested": true}), humanAnswer("quick"), answerCommand("none"))
		pos := p.PositionOf(s)
		if tt.want == "" && pos.Kind != engine.PositionContext || tt.want != "" && pos.ID != tt.want {
			t.Errorf("%s: at %s %q, want %q", name, pos.Kind, pos.ID, tt.want)
		}
	}
}
