package guide_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/guide"
)

// equals is a strict condition.
func equals(name string, value any) *condition.Expr {
	return condition.ParseStrict(map[string]any{"type": "simple", "variable": name, "operator": "==", "value": value})
}

// review is a workflow with every construct of the dialect.
func review() *phases.Workflow {
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
					Steps: []phases.Step{step("work")}, BreakCondition: equals("enough", true),
				}},
				Decisions: []phases.Decision{{ID: "path", Name: "Path", Branches: []phases.Branch{
					{ID: "small", Label: "Small", Condition: equals("size", "small"), TransitionTo: "done"},
					{ID: "large", Label: "Large", Condition: equals("size", "large"), TransitionTo: "check"},
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
				Transitions: []phases.Transition{{To: "polish", Condition: equals("approved", true)}, {To: "gather", IsDefault: true}},
			},
			{ID: "polish", Name: "Polish", Steps: []phases.Step{step("shine")}, Transitions: []phases.Transition{{To: "done"}}},
			{ID: "done", Name: "Done", Required: true, Steps: []phases.Step{step("hand-over")}},
		},
	}
}

// flowDrive applies commands to a flow; it fails the test on a refusal.
func flowDrive(t testing.TB, f guide.Flow, s guide.State, commands ...guide.Command) guide.State {
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

func skip() guide.Command {
	return guide.Command{Continue: &guide.Continue{Skip: &guide.Skip{Reason: "no need"}}}
}

func notes(text string) guide.Command {
	return guide.Command{Continue: &guide.Continue{Notes: text}}
}

func tasks(list ...any) map[string]any { return map[string]any{"plan": map[string]any{"tasks": list}} }

// Every part of a phase comes in its order, and every legal move leads on.
func TestPhasesWalk(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(review())
	s := flowDrive(t, p, guide.State{}, start(nil))
	moves := []struct {
		kind    guide.PositionKind
		id      string
		status  guide.Status
		command guide.Command
	}{
		{guide.PositionStep, "read", guide.StatusRunning, output("read it", nil)},
		{guide.PositionStep, "optional", guide.StatusRunning, skip()},
		{guide.PositionContext, "tasks", guide.StatusWaiting, output("", tasks("a", "b"))},
		{guide.PositionStep, "work", guide.StatusRunning, output("a", nil)},
		{guide.PositionStep, "work", guide.StatusRunning, output("b", nil)},
		{guide.PositionContext, "path", guide.StatusWaiting, output("", map[string]any{"size": "medium"})},
		{guide.PositionGate, "path", guide.StatusWaiting, answer("ask-check")},
		{guide.PositionStep, "gather", guide.StatusRunning, notes("clean")},
		{guide.PositionStep, "checked", guide.StatusRunning, output("checked", map[string]any{"tested": true})},
		{guide.PositionGate, "approve", guide.StatusWaiting, person("quick")},
		{guide.PositionGate, "remark", guide.StatusWaiting, guide.Command{Continue: &guide.Continue{Answer: &guide.Answer{Decline: true}}}},
		{guide.PositionStep, "hand-over", guide.StatusRunning, output("there", nil)},
		{guide.PositionEnd, "", guide.StatusCompleted, guide.Command{}},
	}
	for i, m := range moves {
		pos := p.PositionOf(s)
		if pos.Kind != m.kind || pos.ID != m.id || p.Status(s) != m.status {
			t.Fatalf("move %d: at %s %q, %s; want %s %q, %s", i, pos.Kind, pos.ID, p.Status(s), m.kind, m.id, m.status)
		}
		if m.kind != guide.PositionEnd {
			s = flowDrive(t, p, s, m.command)
		}
	}
}

func TestPhasesPosition(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(review())
	s := flowDrive(t, p, guide.State{}, start(tasks(map[string]any{"name": "first"})))
	pos := p.PositionOf(s)
	want := guide.Position{
		Kind: guide.PositionStep, ID: "read", Title: "Do read", Prompt: "Find out.\n\nDo read", MetaGuidance: []string{"Be fair."},
		Phase: &guide.PhasePosition{ID: "gather", Title: "Gather", Number: 1, Of: 4},
	}
	if d := cmp.Diff(want, pos); d != "" {
		t.Errorf("the first position (-want +got):\n%s", d)
	}
	s = flowDrive(t, p, s, output("read", nil), skip())
	pos = p.PositionOf(s)
	if d := cmp.Diff(&guide.LoopPosition{ID: "tasks", Title: "Tasks", Round: 1, Rounds: 1, Item: map[string]any{"name": "first"}}, pos.Loop); d != "" {
		t.Errorf("the loop (-want +got):\n%s", d)
	}
	s = flowDrive(t, p, s, output("worked", nil))
	pos = p.PositionOf(s)
	if pos.Kind != guide.PositionContext || len(pos.Needs) != 1 || pos.Needs[0].Variable != "size" {
		t.Errorf("the decision waits for %+v", pos.Needs)
	}
}

func TestPhasesIllegalMoves(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(review())
	fresh := guide.State{}
	atStep := flowDrive(t, p, fresh, start(tasks()))
	atOptional := flowDrive(t, p, atStep, output("o", nil))
	atDecision := flowDrive(t, p, atOptional, skip())
	atOffer := flowDrive(t, p, atDecision, output("", map[string]any{"size": "medium"}))
	atAssert := flowDrive(t, p, atOffer, answer("ask-check"))
	atChecked := flowDrive(t, p, atAssert, notes("clean"))
	atPerson := flowDrive(t, p, atChecked, output("o", map[string]any{"tested": true}))
	atRemark := flowDrive(t, p, atPerson, person("yes"))
	tests := []struct {
		name    string
		state   guide.State
		command guide.Command
		rule    string
	}{
		{"continue before start", fresh, output("o", nil), guide.RuleNotStarted},
		{"start twice", atStep, start(nil), guide.RuleStarted},
		{"start with what an effect sets", fresh, start(map[string]any{"approved": true}), guide.RuleServerVariable},
		{"start with a loop's variable", fresh, start(map[string]any{"task": "x"}), guide.RuleServerVariable},
		{"start with another type", fresh, start(map[string]any{"size": 5.0}), guide.RuleVariableType},
		{"nothing handed in", atStep, output(" ", nil), guide.RuleOutputMissing},
		{"skip a required step", atStep, skip(), guide.RuleStepRequired},
		{"skip with an output", atOptional, guide.Command{Continue: &guide.Continue{Skip: &guide.Skip{}, Output: "o"}}, guide.RuleStepRequired},
		{"answer without a gate", atStep, answer("yes"), guide.RuleNoGate},
		{"another step", atStep, guide.Command{Continue: &guide.Continue{Step: "hand-over", Output: "o"}}, guide.RuleWrongStep},
		{"set what a set action sets", atStep, output("o", map[string]any{"checkedAt": "x"}), guide.RuleServerVariable},
		{"output while a decision waits", atDecision, output("o", nil), guide.RuleContextNeeded},
		{"skip while a decision waits", atDecision, skip(), guide.RuleStepRequired},
		{"output at an offered decision", atOffer, output("o", nil), guide.RuleGateUnanswered},
		{"a branch that has a condition", atOffer, answer("small"), guide.RuleUnknownOption},
		{"decline a decision", atOffer, guide.Command{Continue: &guide.Continue{Answer: &guide.Answer{Decline: true}}}, guide.RuleGateRequired},
		{"leave without a note", atAssert, output("", map[string]any{"x": 1.0}), guide.RuleNoteMissing},
		{"a validate action that fails", atChecked, output("o", nil), guide.RuleValidate},
		{"a validate action that the call makes fail", atChecked, output("o", map[string]any{"tested": "yes"}), guide.RuleVariableType},
		{"a person's checkpoint by an agent", atPerson, answer("yes"), guide.RulePerson},
		{"a person's checkpoint passed by an output", atPerson, output("o", nil), guide.RuleGateUnanswered},
		{"decline a required checkpoint", atPerson, guide.Command{Continue: &guide.Continue{Person: true, Answer: &guide.Answer{Decline: true}}}, guide.RuleGateRequired},
		{"an unknown option", atPerson, person("maybe"), guide.RuleUnknownOption},
		{"context at a checkpoint", atRemark, output("", map[string]any{"size": "small"}), guide.RuleGateUnanswered},
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

// A skipped phase is passed through by its own way; one that an answer leads
// back to begins anew.
func TestPhasesWays(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(review())
	begin := func() guide.State {
		return flowDrive(t, p, guide.State{}, start(map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{}}}),
			output("o", nil), skip(), notes("clean"), output("o", map[string]any{"tested": true}))
	}
	decline := guide.Command{Continue: &guide.Continue{Answer: &guide.Answer{Decline: true}}}
	tests := []struct {
		name     string
		commands []guide.Command
		want     string
	}{
		{"approved", []guide.Command{person("yes"), decline}, "shine"},
		{"skipping", []guide.Command{person("quick"), decline}, "hand-over"},
		{"back at once, past the second checkpoint", []guide.Command{person("no")}, "read"},
		{"an optional phase is left", []guide.Command{person("yes"), decline, skip()}, "hand-over"},
	}
	for _, tt := range tests {
		s := flowDrive(t, p, begin(), tt.commands...)
		if pos := p.PositionOf(s); pos.ID != tt.want {
			t.Errorf("%s: at %+v, want %s", tt.name, pos, tt.want)
		}
	}
}

// A break ends a loop between two rounds; the maximum ends it whatever its
// condition says.
func TestPhasesLoops(t *testing.T) {
	t.Parallel()
	loop := func(l phases.Loop) *guide.PhaseProgram {
		l.ID, l.Name, l.Steps = "l", "L", []phases.Step{{ID: "work", Name: "Work", Required: true}}
		if l.MaxIterations == 0 {
			l.MaxIterations = 3
		}
		return guide.CompilePhases(&phases.Workflow{ID: "w", Title: "W", InitialPhase: "p", Phases: []phases.Phase{
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
		{"while to the maximum", phases.Loop{Type: phases.LoopWhile, Condition: equals("go", true)}, map[string]any{"go": true}, nil, 3},
		{"while not at all", phases.Loop{Type: phases.LoopWhile, Condition: equals("go", true)}, map[string]any{"go": false}, nil, 0},
		{"while once", phases.Loop{Type: phases.LoopWhile, Condition: equals("go", true)}, map[string]any{"go": true}, map[string]any{"go": false}, 1},
		{"doWhile at least once", phases.Loop{Type: phases.LoopDoWhile, Condition: equals("go", true)}, map[string]any{"go": false}, nil, 1},
		{"forEach", phases.Loop{Type: phases.LoopForEach, Over: "list"}, map[string]any{"list": []any{1.0, 2.0}}, nil, 2},
		{"forEach over nothing", phases.Loop{Type: phases.LoopForEach, Over: "list"}, map[string]any{"list": []any{}}, nil, 0},
		{"forEach to the maximum", phases.Loop{Type: phases.LoopForEach, Over: "list"}, map[string]any{"list": []any{1.0, 2.0, 3.0, 4.0}}, nil, 3},
		{"break", phases.Loop{Type: phases.LoopForEach, Over: "list", BreakCondition: equals("stop", true)}, map[string]any{"list": []any{1.0, 2.0}}, map[string]any{"stop": true}, 1},
	}
	for _, tt := range tests {
		p := loop(tt.loop)
		s := flowDrive(t, p, guide.State{}, start(tt.start))
		rounds := 0
		for p.PositionOf(s).Kind == guide.PositionStep {
			rounds++
			s = flowDrive(t, p, s, output("o", tt.each))
		}
		if rounds != tt.rounds || p.Status(s) != guide.StatusCompleted {
			t.Errorf("%s: %d rounds, %s; want %d", tt.name, rounds, p.Status(s), tt.rounds)
		}
	}
}

// A run can be followed event by event: at every prefix the position is that of
// the whole command, and the document of the run can be imported and stands at
// the same place.
func TestPhasesPrefixesAndDocuments(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(review())
	commands := []guide.Command{
		start(map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{"a", "b"}}}),
		output("o", nil), skip(), output("a", nil), output("b", nil), notes("clean"),
		output("o", map[string]any{"tested": true}), person("quick"), answer("none"), output("there", nil),
	}
	var s guide.State
	var all []guide.TimedEvent
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i, c := range commands {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatalf("command %d: %+v", i, refusal)
		}
		half := guide.Apply(s, events[0])
		for _, e := range events {
			s = guide.Apply(s, e)
			at = at.Add(time.Second)
			all = append(all, guide.TimedEvent{At: at, Event: e})
		}
		if d := cmp.Diff(p.PositionOf(s), p.PositionOf(half)); d != "" {
			t.Errorf("command %d: a prefix is elsewhere (-whole +prefix):\n%s", i, d)
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
		again, err := p.FoldFrom(guide.State{}, []guide.Event{e})
		if err != nil {
			t.Fatalf("command %d: %v", i, err)
		}
		want, got := p.PositionOf(s), p.PositionOf(again)
		want.MetaGuidance, got.MetaGuidance = nil, nil
		if want.ID != got.ID || want.Kind != got.Kind {
			t.Errorf("command %d: imported, the run is at %s %s, not %s %s", i, got.Kind, got.ID, want.Kind, want.ID)
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

// Whatever legal answers are given, a run ends or waits for something that it
// names; it never loops by itself.
func TestPhasesEveryWalkEnds(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(review())
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := flowDrive(t, p, guide.State{}, start(tasks("a", "b")))
		for range 200 {
			pos := p.PositionOf(s)
			var c guide.Command
			switch pos.Kind {
			case guide.PositionStep:
				c = output("o", map[string]any{"tested": true})
				c.Continue.Notes = "n"
			case guide.PositionGate:
				c = person(pos.Options[r.IntN(len(pos.Options))].ID)
			case guide.PositionContext:
				if len(pos.Needs) == 0 {
					t.Fatalf("seed %d: the run waits for nothing: %+v", seed, pos)
				}
				c = output("", map[string]any{"size": []any{"small", "large", "medium"}[r.IntN(3)]})
			}
			if pos.Kind == guide.PositionEnd {
				break
			}
			s = flowDrive(t, p, s, c)
		}
		if pos := p.PositionOf(s); pos.Kind != guide.PositionEnd {
			t.Logf("seed %d: after 200 moves at %+v", seed, pos) // an answer may lead back again and again
		}
	}
}

// A run of a step workflow is told in the same form: one phase, its items by
// number.
func TestStepsDocument(t *testing.T) {
	t.Parallel()
	p := compile(t, guarded)
	var s guide.State
	var all []guide.TimedEvent
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, c := range []guide.Command{
		start(map[string]any{"size": "small", "list": []any{"a", "b"}}), output("DONE", nil), output("plan", nil),
		answer(guide.OptionConfirm), answer(guide.OptionConfirm), output("worked", nil),
	} {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatal(refusal)
		}
		for _, e := range events {
			s = guide.Apply(s, e)
			all = append(all, guide.TimedEvent{At: at, Event: e})
		}
	}
	d := p.Document(all)
	if diff := cmp.Diff(map[string][]int{"1": {1, 2}}, d.CompletedSteps); diff != "" || d.Status != "running" || d.CurrentStep != 4 {
		t.Errorf("status %s at step %d; completed (-want +got):\n%s", d.Status, d.CurrentStep, diff)
	}
	two := 2
	want := []guide.ActiveLoop{{PhaseIndex: 1, LoopIndex: 4, CurrentIteration: 2, TotalItems: &two, CurrentItem: "b", StartedAt: at}}
	if diff := cmp.Diff(want, d.ActiveLoops); diff != "" {
		t.Errorf("loops (-want +got):\n%s", diff)
	}
}

// Events that nobody has authenticated are decided again: one that was edited is
// found, whatever was edited in it.
func TestRecheckBelievesNothing(t *testing.T) {
	t.Parallel()
	walks := map[string]struct {
		flow     guide.Flow
		commands []guide.Command
	}{
		"phases": {guide.CompilePhases(review()), []guide.Command{
			start(map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{"a", "b"}}}),
			output("o", nil), skip(), output("a", nil), output("b", nil), notes("clean"),
			output("o", map[string]any{"tested": true}), person("quick"), answer("none"), output("there", nil),
		}},
		"steps": {compile(t, guarded), []guide.Command{
			start(map[string]any{"size": "small", "list": []any{"a", "b"}}), output("DONE", nil), output("plan", nil), answer(guide.OptionRevise),
			output("plan", nil), answer(guide.OptionConfirm), answer(guide.OptionConfirm), output("w", nil), output("w", nil), output("last", nil),
		}},
	}
	for name, walk := range walks {
		var s guide.State
		var events []guide.Event
		for _, c := range walk.commands {
			more, refusal := walk.flow.Decide(s, c)
			if refusal != nil {
				t.Fatalf("%s: %+v", name, refusal)
			}
			for _, e := range more {
				s = guide.Apply(s, e)
			}
			events = append(events, more...)
		}
		for n := range len(events) + 1 {
			if _, err := guide.Recheck(walk.flow, events[:n]); err != nil {
				t.Fatalf("%s: the first %d events: %v", name, n, err)
			}
		}
		for i := range events {
			for what, edit := range map[string]func(e *guide.Event){
				"kind":   func(e *guide.Event) { e.Kind = guide.EventStepCompleted; e.Step = "report" },
				"step":   func(e *guide.Event) { e.Step = "other" },
				"to":     func(e *guide.Event) { e.To = 99 },
				"end":    func(e *guide.Event) { e.To++ },
				"item":   func(e *guide.Event) { e.Item += 7 },
				"gate":   func(e *guide.Event) { e.Gate = !e.Gate },
				"person": func(e *guide.Event) { e.Person = !e.Person },
				"vars":   func(e *guide.Event) { e.Vars = map[string]any{"approved": true, "thing": 1.0} },
				"list":   func(e *guide.Event) { e.List = []any{"x"} },
				"part":   func(e *guide.Event) { e.Part = guide.PartExit + "x" },
			} {
				forged := slices.Clone(events)
				edit(&forged[i])
				if what == "person" && i == 0 {
					continue // a run may be stricter from its beginning
				}
				if asJSON(t, forged[i]) == asJSON(t, events[i]) {
					continue
				}
				if _, err := guide.Recheck(walk.flow, forged); err == nil {
					t.Errorf("%s: event %d (%s) with another %s is taken", name, i+1, events[i].Kind, what)
				}
			}
			if i > 0 {
				if _, err := guide.Recheck(walk.flow, slices.Delete(slices.Clone(events), i-1, i)); err == nil {
					t.Errorf("%s: without event %d (%s) it is taken", name, i, events[i-1].Kind)
				}
			}
		}
	}
}

// Phases that lead in a circle with nothing to do stop the run instead of the
// server.
func TestPhasesInACircle(t *testing.T) {
	t.Parallel()
	p := guide.CompilePhases(&phases.Workflow{ID: "w", Title: "W", InitialPhase: "a", Phases: []phases.Phase{
		{ID: "a", Name: "A", Required: true, Transitions: []phases.Transition{{To: "c", Condition: equals("out", true)}, {To: "b", IsDefault: true}}},
		{ID: "b", Name: "B", Required: true, Transitions: []phases.Transition{{To: "a"}}},
		{ID: "c", Name: "C", Required: true, Steps: []phases.Step{{ID: "end", Name: "End", Required: true}}},
	}})
	s := flowDrive(t, p, guide.State{}, start(map[string]any{"out": false}))
	pos := p.PositionOf(s)
	if pos.Kind != guide.PositionContext || len(pos.Needs) != 1 || pos.Needs[0].Variable != "out" {
		t.Fatalf("the run is at %+v", pos)
	}
	s = flowDrive(t, p, s, output("", map[string]any{"out": true}))
	if pos := p.PositionOf(s); pos.ID != "end" {
		t.Errorf("led out of the circle, the run is at %+v", pos)
	}
}
