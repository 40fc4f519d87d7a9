package engine_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/guideway-dev/guideway/internal/engine"
	"pgregory.net/rapid"
)

// applyToProgram applies commands and returns the state; it fails the test on a refusal.
func applyToProgram(t testing.TB, p *engine.Program, s engine.State, commands ...engine.Command) engine.State {
	t.Helper()
	for _, c := range commands {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatalf("refused: %s: %s", refusal.Rule, refusal.Message)
		}
		for _, e := range events {
			s = engine.Apply(s, e)
		}
	}
	return s
}

func startCommand(vars map[string]any) engine.Command {
	return engine.Command{Start: &engine.Start{Context: vars}}
}

func outputCommand(text string, vars map[string]any) engine.Command {
	return engine.Command{Continue: &engine.Continue{Output: text, Context: vars}}
}

func answerCommand(id string) engine.Command {
	return engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{OptionID: id}}}
}

const guarded = `[
	{"id":"first","title":"First","prompt":"First.","validationCriteria":[{"type":"contains","value":"DONE","message":"say DONE"}]},
	{"id":"approve","title":"Approve","prompt":"Approve.","requireConfirmation":true},
	{"id":"branch","title":"Branch","prompt":"Branch.","runCondition":{"var":"size","equals":"large"}},
	{"id":"the-loop","type":"loop","title":"Loop","loop":{"type":"forEach","items":"list","itemVar":"thing","maxIterations":5},"requireConfirmation":true,
	 "body":[{"id":"work","title":"Work","prompt":"Work on {{thing}}."}]},
	{"id":"last","title":"Last","prompt":"Last."}]`

const personal = `[
	{"id":"approve","title":"Approve","prompt":"Approve.","approval":"human"},
	{"id":"the-loop","type":"loop","title":"Loop","loop":{"type":"for","count":1,"maxIterations":1},"requireConfirmation":true,"approval":"human",
	 "body":[{"id":"work","title":"Work","prompt":"Work.","requireConfirmation":{"var":"risky","equals":true},"approval":"human"}]}]`

func humanAnswer(id string) engine.Command {
	return engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{OptionID: id}, Person: true}}
}

// TestHumanApprovalGate checks that a gate with human approval is marked as such and
// accepts a person's answer, and that a variable set with an output does not disable the
// gate.
func TestHumanApprovalGate(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, personal)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil), outputCommand("plan", nil))
	if pos := p.PositionOf(s); pos.Kind != engine.PositionGate || !pos.Person {
		t.Fatalf("at %+v", pos)
	}
	s = applyToProgram(t, p, s, humanAnswer(engine.OptionRevise), outputCommand("plan", nil), humanAnswer(engine.OptionConfirm), humanAnswer(engine.OptionConfirm))
	s = applyToProgram(t, p, s, outputCommand("worked", map[string]any{"risky": false}))
	if pos := p.PositionOf(s); pos.Kind != engine.PositionGate || pos.ID != "work" || !pos.Person {
		t.Fatalf("a variable set with the output disabled the gate: the run is at %+v", pos)
	}
	s = applyToProgram(t, p, s, humanAnswer(engine.OptionConfirm))
	if p.Status(s) != engine.StatusCompleted {
		t.Errorf("the run is %s", p.Status(s))
	}
}

// A step that is sent back needs another confirmation, and its output must meet the criteria
// that applied before its first submission, whatever variables the submissions set.
func TestReviseKeepsConfirmationAndCriteria(t *testing.T) {
	t.Parallel()
	const step = `{"id":"work","title":"Work","prompt":"Work.","requireConfirmation":{"var":"risky","equals":true},"approval":"human",
		"validationCriteria":[{"type":"contains","value":"TESTED","message":"say TESTED","condition":{"var":"risky","equals":true}}]}`
	const last = `{"id":"last","title":"Last","prompt":"Last."}`
	for name, document := range map[string]string{
		"a step":           `[` + step + `,` + last + `]`,
		"a step of a loop": `[{"id":"rounds","type":"loop","title":"Rounds","loop":{"type":"for","count":2,"maxIterations":2},"body":[` + step + `]},` + last + `]`,
	} {
		for _, risky := range []bool{true, false} {
			t.Run(fmt.Sprint(name, ", risky ", risky), func(t *testing.T) {
				t.Parallel()
				p := compileSteps(t, document)
				s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"risky": risky}))
				s = applyToProgram(t, p, s, outputCommand("TESTED", map[string]any{"risky": !risky}))
				for _, vars := range []map[string]any{nil, {"risky": false}, nil, {"risky": nil}} {
					s = applyToProgram(t, p, s, humanAnswer(engine.OptionRevise))
					if _, r := p.Decide(s, outputCommand("untested", vars)); risky && (r == nil || r.Rule != engine.RuleCriteria) {
						t.Fatalf("an output without the criterion: %+v, want %s", r, engine.RuleCriteria)
					}
					s = applyToProgram(t, p, s, outputCommand("TESTED again", vars))
					if pos := p.PositionOf(s); pos.Kind != engine.PositionGate || pos.ID != "work" || !pos.Person {
						t.Fatalf("after the repeated step, the run is at %+v", pos)
					}
				}
				s = applyToProgram(t, p, s, humanAnswer(engine.OptionConfirm), outputCommand("without the criterion", nil))
				if pos := p.PositionOf(s); s.Gate != nil || s.Before != nil {
					t.Errorf("the variables from before the step outlive it: the run is at %+v", pos)
				}
			})
		}
	}
}

// Legal commands lead a run through gates, waits and loops to the expected positions.
func TestRunThroughGatesWaitsAndLoops(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, guarded)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil))
	moves := []struct {
		kind    engine.PositionKind
		id      string
		status  engine.Status
		command engine.Command
	}{
		{engine.PositionStep, "first", engine.StatusRunning, outputCommand("DONE", nil)},
		{engine.PositionStep, "approve", engine.StatusRunning, outputCommand("a plan", nil)},
		{engine.PositionGate, "approve", engine.StatusWaiting, answerCommand(engine.OptionRevise)},
		{engine.PositionStep, "approve", engine.StatusRunning, outputCommand("a better plan", nil)},
		{engine.PositionGate, "approve", engine.StatusWaiting, answerCommand(engine.OptionConfirm)},
		{engine.PositionContext, "branch", engine.StatusWaiting, outputCommand("", map[string]any{"size": "small"})},
		{engine.PositionContext, "the-loop", engine.StatusWaiting, outputCommand("", map[string]any{"list": "no list"})},
		{engine.PositionContext, "the-loop", engine.StatusWaiting, outputCommand("", map[string]any{"list": []any{"a", "b"}})},
		{engine.PositionGate, "the-loop", engine.StatusWaiting, answerCommand(engine.OptionConfirm)},
		{engine.PositionStep, "work", engine.StatusRunning, outputCommand("worked", nil)},
		{engine.PositionStep, "work", engine.StatusRunning, outputCommand("worked", nil)},
		{engine.PositionStep, "last", engine.StatusRunning, outputCommand("handed over", nil)},
		{engine.PositionEnd, "", engine.StatusCompleted, engine.Command{}},
	}
	for i, m := range moves {
		pos := p.PositionOf(s)
		if pos.Kind != m.kind || pos.ID != m.id || p.Status(s) != m.status {
			t.Fatalf("move %d: at %s %q, %s; want %s %q, %s", i, pos.Kind, pos.ID, p.Status(s), m.kind, m.id, m.status)
		}
		if m.kind != engine.PositionEnd {
			s = applyToProgram(t, p, s, m.command)
		}
	}
}

// TestWaitingRunListsAllValues checks the needs and the form of a run that waits for a
// text, a list, a number or a boolean. The texts that the workflow compares a variable with
// are listed but are not choices, because an agent would take the first one.
func TestWaitingRunListsAllValues(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[
		{"id":"look","title":"Look","prompt":"Set size, list, n, retry and done."},
		{"id":"small","title":"Small","prompt":"p","runCondition":{"var":"size","equals":"small"}},
		{"id":"medium","title":"Medium","prompt":"p","runCondition":{"not":{"or":[{"var":"size","equals":"Small"},{"var":"size","not_equals":"medium"}]}}},
		{"id":"large","title":"Large","prompt":"p","runCondition":{"var":"size","equals":"large"},"requireConfirmation":{"var":"done","equals":true}},
		{"id":"each","type":"loop","title":"Each","loop":{"type":"forEach","items":"list","maxIterations":3},"body":[
			{"id":"work","title":"Work","prompt":"p","runCondition":{"and":[{"var":"size","equals":"huge"},{"var":"retry"}]}}]},
		{"id":"count","type":"loop","title":"Count","loop":{"type":"for","count":"n","maxIterations":3},"body":"look-again"},
		{"id":"look-again","title":"Again","prompt":"p"},
		{"id":"last","title":"Last","prompt":"p","runCondition":{"var":"done","equals":false}}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil), outputCommand("looked", nil))
	for _, tt := range []struct {
		name  string
		set   map[string]any
		needs []engine.Need
		field engine.Field
	}{
		{
			"several texts", nil,
			[]engine.Need{{Variable: "size", Allowed: []any{"small", "medium", "large", "huge"}}},
			engine.Field{Name: "context.size", Description: "the actual value; such as small, medium, large, huge, or a different value"},
		},
		{
			"a list",
			map[string]any{"size": "other"},
			[]engine.Need{{Variable: "list", Type: "array", Description: "the list of items"}},
			engine.Field{Name: "context.list", Type: "array", Description: "the list of items"},
		},
		{
			"a number",
			map[string]any{"list": []any{}},
			[]engine.Need{{Variable: "n", Type: "number", Description: "the number of rounds"}},
			engine.Field{Name: "context.n", Type: "number", Description: "the number of rounds"},
		},
		{
			"true or false",
			map[string]any{"n": 0},
			[]engine.Need{{Variable: "done", Type: "boolean", Allowed: []any{true, false}, Exhaustive: true}},
			engine.Field{Name: "context.done", Type: "boolean", Description: "the actual value", Choices: []any{true, false}},
		},
	} {
		if tt.set != nil {
			s = applyToProgram(t, p, s, outputCommand("", tt.set))
		}
		pos := p.PositionOf(s)
		if d := cmp.Diff(tt.needs, pos.Needs, cmpopts.IgnoreFields(engine.Need{}, "Compared")); d != "" {
			t.Errorf("%s: needs (-want +got):\n%s", tt.name, d)
		}
		if d := cmp.Diff([]engine.Field{tt.field}, pos.Fields()); d != "" {
			t.Errorf("%s: fields (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestPositionListsNeeds(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, guarded)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil), outputCommand("DONE", nil), outputCommand("plan", nil), answerCommand(engine.OptionConfirm))
	want := []engine.Need{{Variable: "size", Tests: []string{"compared with large"}}}
	if d := cmp.Diff(want, p.PositionOf(s).Needs, cmpopts.IgnoreFields(engine.Need{}, "Compared")); d != "" {
		t.Errorf("needs (-want +got):\n%s", d)
	}
	s = applyToProgram(t, p, s, outputCommand("", map[string]any{"size": "small", "list": "text"}))
	want = []engine.Need{{Variable: "list", Type: "array", Description: "the list of items", Found: "text"}}
	if d := cmp.Diff(want, p.PositionOf(s).Needs, cmpopts.IgnoreFields(engine.Need{}, "Compared")); d != "" {
		t.Errorf("needs (-want +got):\n%s", d)
	}
	s = applyToProgram(t, p, s, outputCommand("", map[string]any{"list": []any{"a", "b"}}), answerCommand(engine.OptionConfirm), outputCommand("w", nil))
	pos := p.PositionOf(s)
	if d := cmp.Diff(&engine.LoopPosition{ID: "the-loop", Title: "Loop", Round: 2, Rounds: 2}, pos.Loop); d != "" {
		t.Errorf("loop (-want +got):\n%s", d)
	}
	if want := "Work on b."; pos.Prompt[:len(want)] != want {
		t.Errorf("prompt = %q", pos.Prompt)
	}
}

// Each illegal command is refused by its rule and does not change the state.
func TestIllegalCommandsAreRefused(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, guarded)
	fresh := engine.State{}
	atStep := applyToProgram(t, p, fresh, startCommand(nil))
	atGate := applyToProgram(t, p, atStep, outputCommand("DONE", nil), outputCommand("plan", nil))
	atWait := applyToProgram(t, p, atGate, answerCommand(engine.OptionConfirm))
	atLoopGate := applyToProgram(t, p, atWait, outputCommand("", map[string]any{"size": "small", "list": []any{"a"}}))
	inLoop := applyToProgram(t, p, atLoopGate, answerCommand(engine.OptionConfirm))
	ended := applyToProgram(t, p, inLoop, outputCommand("w", nil), outputCommand("l", nil))
	aborted := applyToProgram(t, p, inLoop, engine.Command{Abort: &engine.Abort{Reason: "enough"}})
	byPerson := compileSteps(t, personal)
	atPerson := applyToProgram(t, byPerson, fresh, startCommand(nil), outputCommand("plan", nil))
	atPersonLoop := applyToProgram(t, byPerson, atPerson, humanAnswer(engine.OptionConfirm))
	atStrict := applyToProgram(t, p, fresh, engine.Command{Start: &engine.Start{Person: true}}, outputCommand("DONE", nil), outputCommand("plan", nil))
	big := map[string]any{"big": string(make([]byte, 300_000))}
	tests := []struct {
		name    string
		state   engine.State
		command engine.Command
		rule    string
	}{
		{"continue before start", fresh, outputCommand("DONE", nil), engine.RuleNotStarted},
		{"abort before start", fresh, engine.Command{Abort: &engine.Abort{}}, engine.RuleNotStarted},
		{"start twice", atStep, startCommand(nil), engine.RuleStarted},
		{"start with a loop's variable", fresh, startCommand(map[string]any{"thing": 1.0}), engine.RuleServerVariable},
		{"an empty command", atStep, engine.Command{}, engine.RuleOutputMissing},
		{"output that fails its criteria", atStep, outputCommand("almost", nil), engine.RuleCriteria},
		{"no output for a step with criteria", atStep, engine.Command{Continue: &engine.Continue{Notes: "DONE"}}, engine.RuleCriteria},
		{"an answer without a gate", atStep, answerCommand(engine.OptionConfirm), engine.RuleNoGate},
		{"output at a gate", atGate, outputCommand("more", nil), engine.RuleGateUnanswered},
		{"context at a gate", atGate, outputCommand("", map[string]any{"size": "small"}), engine.RuleGateUnanswered},
		{"an answer together with output", atGate, engine.Command{Continue: &engine.Continue{Output: "x", Answer: &engine.Answer{OptionID: engine.OptionConfirm}}}, engine.RuleGateUnanswered},
		{"nothing at a gate", atGate, engine.Command{Continue: &engine.Continue{}}, engine.RuleGateUnanswered},
		{"an unknown option", atGate, answerCommand("yes"), engine.RuleUnknownOption},
		{"skip at a step's gate", atGate, answerCommand(engine.OptionSkip), engine.RuleUnknownOption},
		{"revise at a loop's gate", atLoopGate, answerCommand(engine.OptionRevise), engine.RuleUnknownOption},
		{"notes at a gate", atGate, engine.Command{Continue: &engine.Continue{Notes: "done"}}, engine.RuleGateUnanswered},
		{"output while variables are missing", atWait, outputCommand("done anyway", nil), engine.RuleContextNeeded},
		{"output along with variables while waiting", atWait, outputCommand("done", map[string]any{"size": "small"}), engine.RuleContextNeeded},
		{"an answer while waiting", atWait, answerCommand(engine.OptionConfirm), engine.RuleNoGate},
		{"the loop's gate left unanswered", atLoopGate, outputCommand("worked", nil), engine.RuleGateUnanswered},
		{"no output and no notes", inLoop, outputCommand("  \n", nil), engine.RuleOutputMissing},
		{"the loop's item rewritten", inLoop, outputCommand("w", map[string]any{"thing": "b"}), engine.RuleServerVariable},
		{"the round rewritten", inLoop, outputCommand("w", map[string]any{"currentIteration": 5.0}), engine.RuleServerVariable},
		{"the engine's state forged", inLoop, outputCommand("w", map[string]any{"_loopState": map[string]any{}}), engine.RuleServerVariable},
		{"too much context", inLoop, outputCommand("w", big), engine.RuleContextTooLarge},
		{"a step that is not reached", inLoop, engine.Command{Continue: &engine.Continue{Step: "last", Output: "w"}}, engine.RuleWrongStep},
		{"a gate named by a later step", atGate, engine.Command{Continue: &engine.Continue{Step: "last", Answer: &engine.Answer{OptionID: engine.OptionConfirm}}}, engine.RuleWrongStep},
		{"skipping a step", inLoop, engine.Command{Continue: &engine.Continue{Skip: &engine.Skip{Reason: "no need"}}}, engine.RuleStepRequired},
		{"skipping a gate", atGate, engine.Command{Continue: &engine.Continue{Skip: &engine.Skip{}}}, engine.RuleGateUnanswered},
		{"declining a gate", atGate, engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{Decline: true}}}, engine.RuleGateRequired},
		{"a human approval answered by an agent", atPerson, answerCommand(engine.OptionConfirm), engine.RulePerson},
		{"a loop with human approval started by an agent", atPersonLoop, answerCommand(engine.OptionConfirm), engine.RulePerson},
		{"a gate of a run that requires human approval", atStrict, answerCommand(engine.OptionConfirm), engine.RulePerson},
		{"continue after the end", ended, outputCommand("again", nil), engine.RuleEnded},
		{"abort after the end", ended, engine.Command{Abort: &engine.Abort{}}, engine.RuleEnded},
		{"continue after abort", aborted, outputCommand("again", nil), engine.RuleEnded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := asJSON(t, tt.state)
			program := p
			if tt.rule == engine.RulePerson {
				program = byPerson
				if tt.state.Person {
					program = p
				}
			}
			events, refusal := program.Decide(tt.state, tt.command)
			if refusal == nil {
				t.Fatalf("legal: %+v", events)
			}
			if refusal.Rule != tt.rule || refusal.Message == "" {
				t.Errorf("refused by %q (%s), want %q", refusal.Rule, refusal.Message, tt.rule)
			}
			if after := asJSON(t, tt.state); before != after {
				t.Errorf("the state changed: %s, was %s", after, before)
			}
		})
	}
}

// TestLoopKeepsInitialList checks that later changes of a loop's list do not affect the
// loop.
func TestLoopKeepsInitialList(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"the-loop","type":"loop","title":"L","loop":{"type":"forEach","items":"list","maxIterations":9},"body":[{"id":"work","title":"W","prompt":"w"}]}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"list": []any{"a", "b"}}))
	s = applyToProgram(t, p, s, outputCommand("w", map[string]any{"list": []any{}}))
	if pos := p.PositionOf(s); pos.ID != "work" || pos.Loop.Round != 2 {
		t.Fatalf("at %+v, want the second round", pos)
	}
	s = applyToProgram(t, p, s, outputCommand("w", map[string]any{"list": []any{"x", "y", "z"}}))
	if got := p.Status(s); got != engine.StatusCompleted {
		t.Errorf("status = %s, want completed", got)
	}
}

// TestRandomLegalRunsEnd checks that random runs with legal commands end, that no legal
// command is refused, and that a repeated decision results in the same events.
func TestRandomLegalRunsEnd(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		s := engine.State{}
		var log []engine.Event
		command := startCommand(drawVars(t))
		for range 2*maxWalkLength + 20 {
			events, refusal := p.Decide(s, command)
			if refusal != nil {
				t.Fatalf("refused: %s: %s", refusal.Rule, refusal.Message)
			}
			again, _ := p.Decide(s, command)
			if !reflect.DeepEqual(events, again) {
				t.Fatalf("decided %+v, then %+v", events, again)
			}
			for _, e := range events {
				s = engine.Apply(s, e)
			}
			log = append(log, events...)
			pos := p.PositionOf(s)
			if pos.Kind == engine.PositionEnd {
				checkFolds(t, p, log, s)
				return
			}
			command = legalCommand(t, pos)
			if pos.Kind == engine.PositionContext {
				if _, refusal := p.Decide(s, command); refusal != nil {
					t.Fatalf("the run asks for input that it refuses: %+v: %s", pos, refusal.Message)
				}
			}
		}
		t.Fatalf("the run did not end: %+v", log)
	})
}

// checkFolds folds the events and a random prefix of them, as read from a journal. The
// prefix must allow a next command.
func checkFolds(t *rapid.T, p *engine.Program, log []engine.Event, want engine.State) {
	stored, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	var back []engine.Event
	if err := json.Unmarshal(stored, &back); err != nil {
		t.Fatal(err)
	}
	folded, err := p.Fold(back)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustJSON(t, folded), mustJSON(t, want); got != want || p.Status(folded) != engine.StatusCompleted {
		t.Fatalf("the fold of the events is %s, the state was %s", got, want)
	}
	cut := rapid.IntRange(1, len(back)).Draw(t, "cut")
	prefix, err := p.Fold(back[:cut])
	if err != nil {
		t.Fatalf("the prefix of %d events: %v", cut, err)
	}
	if pos := p.PositionOf(prefix); pos.Kind != engine.PositionEnd {
		if events, refusal := p.Decide(prefix, legalCommand(t, pos)); refusal != nil {
			t.Fatalf("the prefix of %d events, at %+v, refuses the command: %s", cut, pos, refusal.Message)
		} else if _, err := p.Fold(append(back[:cut:cut], events...)); err != nil {
			t.Fatalf("the prefix of %d events with the next ones: %v", cut, err)
		}
	}
}

func mustJSON(t *rapid.T, v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// legalCommand returns a legal command at a position.
func legalCommand(t *rapid.T, pos engine.Position) engine.Command {
	switch pos.Kind {
	case engine.PositionGate:
		return answerCommand(engine.OptionConfirm)
	case engine.PositionContext:
		vars := map[string]any{}
		for _, n := range pos.Needs {
			switch {
			case n.Variable == "list":
				vars[n.Variable] = []any{"p"}
			case len(n.Allowed) > 0:
				vars[n.Variable] = n.Allowed[0]
			case n.Found != "" || pos.Message != "":
				// The values for the count and the list of a loop result in two rounds.
				vars[n.Variable] = extentFor(pos)
			default:
				vars[n.Variable] = 1.0
			}
		}
		if len(vars) == 0 {
			t.Fatalf("the run waits, but names no variable: %+v", pos)
		}
		return outputCommand("", vars)
	default:
		return outputCommand("done", nil)
	}
}

func extentFor(pos engine.Position) any {
	if pos.Needs[0].Variable == "alpha" {
		return 2.0
	}
	return []any{"p", "q"}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
