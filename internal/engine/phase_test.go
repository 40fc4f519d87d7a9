package engine_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// equalsCondition returns a strict comparison.
func equalsCondition(name string, value any) *expr.Expr {
	return expr.ParseStrict(map[string]any{"type": "simple", "variable": name, "operator": "==", "value": value})
}

// reviewWorkflow returns a workflow with every part of a phase: actions, steps, a loop, a
// decision, checkpoints and transitions.
func reviewWorkflow() *phases.Workflow {
	step := func(id string) phases.Step { return phases.Step{ID: id, Name: "Do " + id, Required: true} }
	optional := phases.Step{ID: "optional", Name: "Maybe"}
	checked := step("checked")
	checked.Actions = []phases.Action{
		{Action: phases.ActionValidate, Target: "tested", Value: true, HasValue: true, Message: "the tests must pass"},
		{Action: phases.ActionSet, Target: "checkedAt", Value: "now", HasValue: true},
		{Action: phases.ActionEmit, Target: "checked", Value: 1.0, HasValue: true},
	}
	return &phases.Workflow{
		ID: "review", Version: "1.0.0", Title: "Review", InitialPhase: "gather", Rules: []string{"Be fair."},
		Variables: []phases.Variable{
			{Name: "size", Type: phases.TypeString},
			{Name: "tested", Type: phases.TypeBoolean, DefaultValue: false, HasDefault: true},
			{Name: "approved", Type: phases.TypeBoolean},
			{Name: "plan", Type: phases.TypeObject},
		},
		Phases: []phases.Phase{
			{
				ID: "gather", Name: "Gather", Description: "Find out.", Required: true,
				EntryActions: []phases.Action{{Action: phases.ActionLog, Message: "begun"}},
				Steps:        []phases.Step{step("read"), optional},
				Loops: []phases.Loop{{
					ID: "tasks", Name: "Tasks", Type: phases.LoopForEach, Variable: "task", Over: "plan.tasks", MaxIterations: 10,
					Steps: []phases.Step{step("work")}, BreakCondition: equalsCondition("enough", true),
				}},
				Decisions: []phases.Decision{{ID: "path", Name: "Path", Branches: []phases.Branch{
					{ID: "small", Label: "Small", Condition: equalsCondition("size", "small"), TransitionTo: "done"},
					{ID: "large", Label: "Large", Condition: equalsCondition("size", "large"), TransitionTo: "check"},
					{ID: "ask-check", Label: "Check it", TransitionTo: "check"},
					{ID: "ask-done", Label: "Let it be", TransitionTo: "done"},
				}}},
				ExitActions: []phases.Action{{Action: phases.ActionValidate, Target: "the desk", Message: "leave the desk clean"}},
			},
			{
				ID: "check", Name: "Check", Required: true, Steps: []phases.Step{checked},
				Checkpoints: []phases.Checkpoint{
					{ID: "approve", Name: "Approve", Message: "Is it good?", Required: true, Blocking: true, Person: true, Options: []phases.Option{
						{ID: "yes", Label: "Yes", Effect: phases.Effect{SetVariable: []phases.Assignment{{Name: "approved", Value: true}}}},
						{ID: "no", Label: "No", Effect: phases.Effect{TransitionTo: "gather"}},
						{ID: "quick", Label: "Yes, and no polish", Effect: phases.Effect{
							SetVariable: []phases.Assignment{{Name: "approved", Value: true}}, SkipPhases: []string{"polish"},
						}},
					}},
					{ID: "remark", Name: "Remark", Message: "Anything else?", Blocking: true, Options: []phases.Option{{ID: "none", Label: "No"}}},
				},
				Transitions: []phases.Transition{{To: "polish", Condition: equalsCondition("approved", true)}, {To: "gather", IsDefault: true}},
			},
			{ID: "polish", Name: "Polish", Steps: []phases.Step{step("shine")}, Transitions: []phases.Transition{{To: "done"}}},
			{ID: "done", Name: "Done", Required: true, Steps: []phases.Step{step("hand-over")}},
		},
	}
}

// applyCommands applies commands to a flow; it fails the test on a refusal.
func applyCommands(t testing.TB, f engine.Flow, s engine.State, commands ...engine.Command) engine.State {
	t.Helper()
	for i, c := range commands {
		events, refusal := f.Decide(s, c)
		if refusal != nil {
			t.Fatalf("command %d (%+v) refused: %s: %s, at %+v", i, c.Continue, refusal.Rule, refusal.Message, f.PositionOf(s))
		}
		next, err := f.FoldFrom(s, events)
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		s = next
	}
	return s
}

func skipCommand() engine.Command {
	return engine.Command{Continue: &engine.Continue{Skip: &engine.Skip{Reason: "no need"}}}
}

func notesCommand(text string) engine.Command {
	return engine.Command{Continue: &engine.Continue{Notes: text}}
}

func taskVars(list ...any) map[string]any {
	return map[string]any{"plan": map[string]any{"tasks": list}}
}

// The parts of a phase run in order, and every legal command advances the run.
func TestPhasesWalk(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	s := applyCommands(t, p, engine.State{}, startCommand(nil))
	moves := []struct {
		kind    engine.PositionKind
		id      string
		status  engine.Status
		command engine.Command
	}{
		{engine.PositionStep, "read", engine.StatusRunning, outputCommand("read it", nil)},
		{engine.PositionStep, "optional", engine.StatusRunning, skipCommand()},
		{engine.PositionContext, "tasks", engine.StatusWaiting, outputCommand("", taskVars("a", "b"))},
		{engine.PositionStep, "work", engine.StatusRunning, outputCommand("a", nil)},
		{engine.PositionStep, "work", engine.StatusRunning, outputCommand("b", nil)},
		{engine.PositionContext, "path", engine.StatusWaiting, outputCommand("", map[string]any{"size": "medium"})},
		{engine.PositionGate, "path", engine.StatusWaiting, answerCommand("ask-check")},
		{engine.PositionStep, "gather", engine.StatusRunning, notesCommand("clean")},
		{engine.PositionStep, "checked", engine.StatusRunning, outputCommand("checked", map[string]any{"tested": true})},
		{engine.PositionGate, "approve", engine.StatusWaiting, humanAnswer("quick")},
		{engine.PositionGate, "remark", engine.StatusWaiting, engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{Decline: true}}}},
		{engine.PositionStep, "hand-over", engine.StatusRunning, outputCommand("there", nil)},
		{engine.PositionEnd, "", engine.StatusCompleted, engine.Command{}},
	}
	for i, m := range moves {
		pos := p.PositionOf(s)
		if pos.Kind != m.kind || pos.ID != m.id || p.Status(s) != m.status {
			t.Fatalf("move %d: at %s %q, %s; want %s %q, %s", i, pos.Kind, pos.ID, p.Status(s), m.kind, m.id, m.status)
		}
		if m.kind != engine.PositionEnd {
			s = applyCommands(t, p, s, m.command)
		}
	}
}

func TestPhasesPosition(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	s := applyCommands(t, p, engine.State{}, startCommand(taskVars(map[string]any{"name": "first"})))
	pos := p.PositionOf(s)
	want := engine.Position{
		Kind: engine.PositionStep, ID: "read", Title: "Do read", Prompt: "Find out.\n\nDo read", MetaGuidance: []string{"Be fair."},
		Phase: &engine.PhasePosition{ID: "gather", Title: "Gather", Number: 1, Of: 4},
	}
	if d := cmp.Diff(want, pos); d != "" {
		t.Errorf("the first position (-want +got):\n%s", d)
	}
	s = applyCommands(t, p, s, outputCommand("read", nil), skipCommand())
	pos = p.PositionOf(s)
	if d := cmp.Diff(&engine.LoopPosition{ID: "tasks", Title: "Tasks", Round: 1, Rounds: 1, Item: map[string]any{"name": "first"}}, pos.Loop); d != "" {
		t.Errorf("the loop (-want +got):\n%s", d)
	}
	s = applyCommands(t, p, s, outputCommand("worked", nil))
	pos = p.PositionOf(s)
	if pos.Kind != engine.PositionContext || len(pos.Needs) != 1 || pos.Needs[0].Variable != "size" {
		t.Errorf("the decision waits for %+v", pos.Needs)
	}
}

func TestPhasesIllegalMoves(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	fresh := engine.State{}
	atStep := applyCommands(t, p, fresh, startCommand(taskVars()))
	atOptional := applyCommands(t, p, atStep, outputCommand("o", nil))
	atDecision := applyCommands(t, p, atOptional, skipCommand())
	atOffer := applyCommands(t, p, atDecision, outputCommand("", map[string]any{"size": "medium"}))
	atAssert := applyCommands(t, p, atOffer, answerCommand("ask-check"))
	atChecked := applyCommands(t, p, atAssert, notesCommand("clean"))
	atPerson := applyCommands(t, p, atChecked, outputCommand("o", map[string]any{"tested": true}))
	atRemark := applyCommands(t, p, atPerson, humanAnswer("yes"))
	tests := []struct {
		name    string
		state   engine.State
		command engine.Command
		rule    string
	}{
		{"continue before start", fresh, outputCommand("o", nil), engine.RuleNotStarted},
		{"start twice", atStep, startCommand(nil), engine.RuleStarted},
		{"start with a variable that an effect sets", fresh, startCommand(map[string]any{"approved": true}), engine.RuleServerVariable},
		{"start with a loop's variable", fresh, startCommand(map[string]any{"task": "x"}), engine.RuleServerVariable},
		{"start with another type", fresh, startCommand(map[string]any{"size": 5.0}), engine.RuleVariableType},
		{"no output and no notes", atStep, outputCommand(" ", nil), engine.RuleOutputMissing},
		{"skip a required step", atStep, skipCommand(), engine.RuleStepRequired},
		{"skip with an output", atOptional, engine.Command{Continue: &engine.Continue{Skip: &engine.Skip{}, Output: "o"}}, engine.RuleStepRequired},
		{"answer without a gate", atStep, answerCommand("yes"), engine.RuleNoGate},
		{"another step", atStep, engine.Command{Continue: &engine.Continue{Step: "hand-over", Output: "o"}}, engine.RuleWrongStep},
		{"set a variable of a set action", atStep, outputCommand("o", map[string]any{"checkedAt": "x"}), engine.RuleServerVariable},
		{"output while a decision waits", atDecision, outputCommand("o", nil), engine.RuleContextNeeded},
		{"skip while a decision waits", atDecision, skipCommand(), engine.RuleStepRequired},
		{"output at an offered decision", atOffer, outputCommand("o", nil), engine.RuleGateUnanswered},
		{"a branch that has a condition", atOffer, answerCommand("small"), engine.RuleUnknownOption},
		{"decline a decision", atOffer, engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{Decline: true}}}, engine.RuleGateRequired},
		{"leave without a note", atAssert, outputCommand("", map[string]any{"x": 1.0}), engine.RuleNoteMissing},
		{"a validate action that fails", atChecked, outputCommand("o", nil), engine.RuleValidate},
		{"a validate action that the call makes fail", atChecked, outputCommand("o", map[string]any{"tested": "yes"}), engine.RuleVariableType},
		{"a human approval answered by an agent", atPerson, answerCommand("yes"), engine.RulePerson},
		{"a human approval bypassed by an output", atPerson, outputCommand("o", nil), engine.RuleGateUnanswered},
		{"decline a required checkpoint", atPerson, engine.Command{Continue: &engine.Continue{Person: true, Answer: &engine.Answer{Decline: true}}}, engine.RuleGateRequired},
		{"an unknown option", atPerson, humanAnswer("maybe"), engine.RuleUnknownOption},
		{"context at a checkpoint", atRemark, outputCommand("", map[string]any{"size": "small"}), engine.RuleGateUnanswered},
	}
	for _, tt := range tests {
		before := asJSON(t, tt.state)
		events, refusal := p.Decide(tt.state, tt.command)
		switch {
		case refusal == nil:
			t.Errorf("%s: legal: %+v", tt.name, events)
		case refusal.Rule != tt.rule || refusal.Message == "":
			t.Errorf("%s: refused by %s (%s), want %s", tt.name, refusal.Rule, refusal.Message, tt.rule)
		}
		if asJSON(t, tt.state) != before {
			t.Errorf("%s: the state changed", tt.name)
		}
	}
}

// A skipped phase leads to its own default target; a phase that an answer returns to
// restarts.
func TestPhasesSkipsAndReturns(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	begin := func() engine.State {
		return applyCommands(t, p, engine.State{}, startCommand(map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{}}}),
			outputCommand("o", nil), skipCommand(), notesCommand("clean"), outputCommand("o", map[string]any{"tested": true}))
	}
	decline := engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{Decline: true}}}
	tests := []struct {
		name     string
		commands []engine.Command
		want     string
	}{
		{"approved", []engine.Command{humanAnswer("yes"), decline}, "shine"},
		{"skipping", []engine.Command{humanAnswer("quick"), decline}, "hand-over"},
		{"back immediately, without the second checkpoint", []engine.Command{humanAnswer("no")}, "read"},
		{"the rest of an optional phase is skipped", []engine.Command{humanAnswer("yes"), decline, skipCommand()}, "hand-over"},
	}
	for _, tt := range tests {
		s := applyCommands(t, p, begin(), tt.commands...)
		if pos := p.PositionOf(s); pos.ID != tt.want {
			t.Errorf("%s: at %+v, want %s", tt.name, pos, tt.want)
		}
	}
}

// TestPhasesLoops checks how many rounds a loop has, depending on its condition, its list,
// its maximum and its break condition.
func TestPhasesLoops(t *testing.T) {
	t.Parallel()
	loop := func(l phases.Loop) *engine.PhaseProgram {
		l.ID, l.Name, l.Steps = "l", "L", []phases.Step{{ID: "work", Name: "Work", Required: true}}
		if l.MaxIterations == 0 {
			l.MaxIterations = 3
		}
		return engine.CompilePhases(&phases.Workflow{ID: "w", Title: "W", InitialPhase: "p", Phases: []phases.Phase{
			{ID: "p", Name: "P", Required: true, Loops: []phases.Loop{l}},
		}})
	}
	tests := []struct {
		name   string
		loop   phases.Loop
		start  map[string]any
		each   map[string]any
		rounds int
	}{
		{"while to the maximum", phases.Loop{Type: phases.LoopWhile, Condition: equalsCondition("go", true)}, map[string]any{"go": true}, nil, 3},
		{"while without a round", phases.Loop{Type: phases.LoopWhile, Condition: equalsCondition("go", true)}, map[string]any{"go": false}, nil, 0},
		{"while once", phases.Loop{Type: phases.LoopWhile, Condition: equalsCondition("go", true)}, map[string]any{"go": true}, map[string]any{"go": false}, 1},
		{"doWhile at least once", phases.Loop{Type: phases.LoopDoWhile, Condition: equalsCondition("go", true)}, map[string]any{"go": false}, nil, 1},
		{"forEach", phases.Loop{Type: phases.LoopForEach, Over: "list"}, map[string]any{"list": []any{1.0, 2.0}}, nil, 2},
		{"forEach over an empty list", phases.Loop{Type: phases.LoopForEach, Over: "list"}, map[string]any{"list": []any{}}, nil, 0},
		{"forEach to the maximum", phases.Loop{Type: phases.LoopForEach, Over: "list"}, map[string]any{"list": []any{1.0, 2.0, 3.0, 4.0}}, nil, 3},
		{"break", phases.Loop{Type: phases.LoopForEach, Over: "list", BreakCondition: equalsCondition("stop", true)}, map[string]any{"list": []any{1.0, 2.0}}, map[string]any{"stop": true}, 1},
	}
	for _, tt := range tests {
		p := loop(tt.loop)
		s := applyCommands(t, p, engine.State{}, startCommand(tt.start))
		rounds := 0
		for p.PositionOf(s).Kind == engine.PositionStep {
			rounds++
			s = applyCommands(t, p, s, outputCommand("o", tt.each))
		}
		if rounds != tt.rounds || p.Status(s) != engine.StatusCompleted {
			t.Errorf("%s: %d rounds, %s; want %d", tt.name, rounds, p.Status(s), tt.rounds)
		}
	}
}

// TestPhasesPrefixesAndDocuments checks that a run that is cut off after the first event of
// a command has the same position as after the whole command. The import of the run's state
// document leads to the same position, and the history of the document has the expected
// kinds of events.
func TestPhasesPrefixesAndDocuments(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	commands := []engine.Command{
		startCommand(map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{"a", "b"}}}),
		outputCommand("o", nil), skipCommand(), outputCommand("a", nil), outputCommand("b", nil), notesCommand("clean"),
		outputCommand("o", map[string]any{"tested": true}), humanAnswer("quick"), answerCommand("none"), outputCommand("there", nil),
	}
	var s engine.State
	var all []engine.TimedEvent
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, c := range commands {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatalf("command %d: %+v", i, refusal)
		}
		half := engine.Apply(s, events[0])
		for _, e := range events {
			s = engine.Apply(s, e)
			at = at.Add(time.Second)
			all = append(all, engine.TimedEvent{At: at, Event: e})
		}
		if d := cmp.Diff(p.PositionOf(s), p.PositionOf(half)); d != "" {
			t.Errorf("command %d: the position of a prefix differs (-whole +prefix):\n%s", i, d)
		}
		doc := p.Document(all)
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if doc.Status == "completed" {
			continue
		}
		e, err := p.Import(text)
		if err != nil {
			t.Fatalf("command %d: %v\n%s", i, err, text)
		}
		again, err := p.FoldFrom(engine.State{}, []engine.Event{e})
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		want, got := p.PositionOf(s), p.PositionOf(again)
		want.MetaGuidance, got.MetaGuidance = nil, nil
		if want.ID != got.ID || want.Kind != got.Kind {
			t.Errorf("command %d: after an import, the run is at %s %s, want %s %s", i, got.Kind, got.ID, want.Kind, want.ID)
		}
	}
	doc := p.Document(all)
	kinds := []string{}
	for _, h := range doc.History {
		if !slices.Contains(kinds, h.Type) {
			kinds = append(kinds, h.Type)
		}
	}
	want := []string{
		"workflow_started", "variable_set", "phase_entered", "step_started", "step_completed", "loop_started", "loop_iteration",
		"loop_completed", "decision_reached", "decision_branch_taken", "phase_exited", "checkpoint_reached", "checkpoint_response",
		"phase_skipped", "workflow_completed",
	}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("history (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{1, 2, 4}, doc.CompletedPhases); d != "" {
		t.Errorf("completed phases (-want +got):\n%s", d)
	}
	if d := cmp.Diff([]int{3}, doc.SkippedPhases); d != "" {
		t.Errorf("skipped phases (-want +got):\n%s", d)
	}
}

// TestPhasesRandomWalksEnd checks that no random legal command is refused, and that a
// waiting run names the variables that it needs.
func TestPhasesRandomWalksEnd(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(reviewWorkflow())
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := applyCommands(t, p, engine.State{}, startCommand(taskVars("a", "b")))
		for range 200 {
			pos := p.PositionOf(s)
			var c engine.Command
			switch pos.Kind {
			case engine.PositionStep:
				c = outputCommand("o", map[string]any{"tested": true})
				c.Continue.Notes = "n"
			case engine.PositionGate:
				c = humanAnswer(pos.Options[r.IntN(len(pos.Options))].ID)
			case engine.PositionContext:
				if len(pos.Needs) == 0 {
					t.Fatalf("seed %d: the run waits, but names no variable: %+v", seed, pos)
				}
				c = outputCommand("", map[string]any{"size": []any{"small", "large", "medium"}[r.IntN(3)]})
			}
			if pos.Kind == engine.PositionEnd {
				break
			}
			s = applyCommands(t, p, s, c)
		}
		if pos := p.PositionOf(s); pos.Kind != engine.PositionEnd {
			t.Logf("seed %d: after 200 moves, the run is at %+v", seed, pos) // the answers may form a cycle
		}
	}
}

// TestStepsDocument checks that the state document of a step workflow has one phase, in
// which steps and loops are numbered together.
func TestStepsDocument(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, guarded)
	var s engine.State
	var all []engine.TimedEvent
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []engine.Command{
		startCommand(map[string]any{"size": "small", "list": []any{"a", "b"}}), outputCommand("DONE", nil), outputCommand("plan", nil),
		answerCommand(engine.OptionConfirm), answerCommand(engine.OptionConfirm), outputCommand("worked", nil),
	} {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		for _, e := range events {
			s = engine.Apply(s, e)
			all = append(all, engine.TimedEvent{At: at, Event: e})
		}
	}
	d := p.Document(all)
	if diff := cmp.Diff(map[string][]int{"1": {1, 2}}, d.CompletedSteps); diff != "" || d.Status != "running" || d.CurrentStep != 4 {
		t.Errorf("status %s at step %d; completed (-want +got):\n%s", d.Status, d.CurrentStep, diff)
	}
	two := 2
	want := []engine.ActiveLoop{{PhaseIndex: 1, LoopIndex: 4, CurrentIteration: 2, TotalItems: &two, CurrentItem: "b", StartedAt: at}}
	if diff := cmp.Diff(want, d.ActiveLoops); diff != "" {
		t.Errorf("loops (-want +got):\n%s", diff)
	}
}

// TestRecheckDetectsForgedEvents checks that Recheck accepts every prefix of the events of
// a legal run, and refuses the events if one of them is edited or one before the last is
// removed.
func TestRecheckDetectsForgedEvents(t *testing.T) {
	t.Parallel()
	walks := map[string]struct {
		flow     engine.Flow
		commands []engine.Command
	}{
		"phases": {engine.CompilePhases(reviewWorkflow()), []engine.Command{
			startCommand(map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{"a", "b"}}}),
			outputCommand("o", nil), skipCommand(), outputCommand("a", nil), outputCommand("b", nil), notesCommand("clean"),
			outputCommand("o", map[string]any{"tested": true}), humanAnswer("quick"), answerCommand("none"), outputCommand("there", nil),
		}},
		"steps": {compileSteps(t, guarded), []engine.Command{
			startCommand(map[string]any{"size": "small", "list": []any{"a", "b"}}), outputCommand("DONE", nil), outputCommand("plan", nil), answerCommand(engine.OptionRevise),
			outputCommand("plan", nil), answerCommand(engine.OptionConfirm), answerCommand(engine.OptionConfirm), outputCommand("w", nil), outputCommand("w", nil), outputCommand("last", nil),
		}},
	}
	for name, walk := range walks {
		var s engine.State
		var events []engine.Event
		for _, c := range walk.commands {
			more, refusal := walk.flow.Decide(s, c)
			if refusal != nil {
				t.Fatalf("%s: %+v", name, refusal)
			}
			for _, e := range more {
				s = engine.Apply(s, e)
			}
			events = append(events, more...)
		}
		for n := range len(events) + 1 {
			if _, err := engine.Recheck(walk.flow, events[:n]); err != nil {
				t.Fatalf("%s: Recheck of the first %d events returned %v", name, n, err)
			}
		}
		for i := range events {
			for what, edit := range map[string]func(e *engine.Event){
				"kind":   func(e *engine.Event) { e.Kind = engine.EventStepCompleted; e.Step = "report" },
				"step":   func(e *engine.Event) { e.Step = "other" },
				"to":     func(e *engine.Event) { e.To = 99 },
				"end":    func(e *engine.Event) { e.To++ },
				"item":   func(e *engine.Event) { e.Item += 7 },
				"gate":   func(e *engine.Event) { e.Gate = !e.Gate },
				"person": func(e *engine.Event) { e.Person = !e.Person },
				"vars":   func(e *engine.Event) { e.Vars = map[string]any{"approved": true, "thing": 1.0} },
				"list":   func(e *engine.Event) { e.List = []any{"x"} },
				"part":   func(e *engine.Event) { e.Part = engine.PartExit + "x" },
			} {
				forged := slices.Clone(events)
				edit(&forged[i])
				if what == "person" && i == 0 {
					continue // the start event of a run may require approval
				}
				if asJSON(t, forged[i]) == asJSON(t, events[i]) {
					continue
				}
				if _, err := engine.Recheck(walk.flow, forged); err == nil {
					t.Errorf("%s: event %d (%s) with a different %s is accepted", name, i+1, events[i].Kind, what)
				}
			}
			if i > 0 {
				if _, err := engine.Recheck(walk.flow, slices.Delete(slices.Clone(events), i-1, i)); err == nil {
					t.Errorf("%s: Recheck accepted the run without event %d (%s)", name, i, events[i-1].Kind)
				}
			}
		}
	}
}

// TestPhasesCycleWithoutWorkStops checks that a run in a cycle of phases without steps
// waits for the variable that ends the cycle.
func TestPhasesCycleWithoutWorkStops(t *testing.T) {
	t.Parallel()
	p := engine.CompilePhases(&phases.Workflow{ID: "w", Title: "W", InitialPhase: "a", Phases: []phases.Phase{
		{ID: "a", Name: "A", Required: true, Transitions: []phases.Transition{{To: "c", Condition: equalsCondition("out", true)}, {To: "b", IsDefault: true}}},
		{ID: "b", Name: "B", Required: true, Transitions: []phases.Transition{{To: "a"}}},
		{ID: "c", Name: "C", Required: true, Steps: []phases.Step{{ID: "end", Name: "End", Required: true}}},
	}})
	s := applyCommands(t, p, engine.State{}, startCommand(map[string]any{"out": false}))
	pos := p.PositionOf(s)
	if pos.Kind != engine.PositionContext || len(pos.Needs) != 1 || pos.Needs[0].Variable != "out" {
		t.Fatalf("the run is at %+v", pos)
	}
	s = applyCommands(t, p, s, outputCommand("", map[string]any{"out": true}))
	if pos := p.PositionOf(s); pos.ID != "end" {
		t.Errorf("after the cycle, the run is at %+v", pos)
	}
}
