package guide_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/guide"
	"pgregory.net/rapid"
)

// drive applies commands and gives the state; it fails the test on a refusal.
func drive(t testing.TB, p *guide.Program, s guide.State, commands ...guide.Command) guide.State {
	t.Helper()
	for _, c := range commands {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatalf("refused: %s: %s", refusal.Rule, refusal.Message)
		}
		for _, e := range events {
			s = guide.Apply(s, e)
		}
	}
	return s
}

func start(vars map[string]any) guide.Command {
	return guide.Command{Start: &guide.Start{Context: vars}}
}

func output(text string, vars map[string]any) guide.Command {
	return guide.Command{Continue: &guide.Continue{Output: text, Context: vars}}
}

func answer(id string) guide.Command {
	return guide.Command{Continue: &guide.Continue{Answer: &guide.Answer{OptionID: id}}}
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

func person(id string) guide.Command {
	return guide.Command{Continue: &guide.Continue{Answer: &guide.Answer{OptionID: id}, Person: true}}
}

// A gate that only a person opens says so, and opens for one.
func TestAPersonsGate(t *testing.T) {
	t.Parallel()
	p := compile(t, personal)
	s := drive(t, p, guide.State{}, start(nil), output("plan", nil))
	if pos := p.PositionOf(s); pos.Kind != guide.PositionGate || !pos.Person {
		t.Fatalf("at %+v", pos)
	}
	s = drive(t, p, s, person(guide.OptionRevise), output("plan", nil), person(guide.OptionConfirm), person(guide.OptionConfirm))
	s = drive(t, p, s, output("worked", map[string]any{"risky": false}))
	if pos := p.PositionOf(s); pos.Kind != guide.PositionGate || pos.ID != "work" || !pos.Person {
		t.Fatalf("a claim that comes with the output has switched off the gate: at %+v", pos)
	}
	s = drive(t, p, s, person(guide.OptionConfirm))
	if p.Status(s) != guide.StatusCompleted {
		t.Errorf("the run is %s", p.Status(s))
	}
}

// Every legal move through gates, waits and loops, with the position that it
// leads to.
func TestRunWalksThroughGatesWaitsAndLoops(t *testing.T) {
	t.Parallel()
	p := compile(t, guarded)
	s := drive(t, p, guide.State{}, start(nil))
	moves := []struct {
		kind    guide.PositionKind
		id      string
		status  guide.Status
		command guide.Command
	}{
		{guide.PositionStep, "first", guide.StatusRunning, output("DONE", nil)},
		{guide.PositionStep, "approve", guide.StatusRunning, output("a plan", nil)},
		{guide.PositionGate, "approve", guide.StatusWaiting, answer(guide.OptionRevise)},
		{guide.PositionStep, "approve", guide.StatusRunning, output("a better plan", nil)},
		{guide.PositionGate, "approve", guide.StatusWaiting, answer(guide.OptionConfirm)},
		{guide.PositionContext, "branch", guide.StatusWaiting, output("", map[string]any{"size": "small"})},
		{guide.PositionContext, "the-loop", guide.StatusWaiting, output("", map[string]any{"list": "no list"})},
		{guide.PositionContext, "the-loop", guide.StatusWaiting, output("", map[string]any{"list": []any{"a", "b"}})},
		{guide.PositionGate, "the-loop", guide.StatusWaiting, answer(guide.OptionConfirm)},
		{guide.PositionStep, "work", guide.StatusRunning, output("worked", nil)},
		{guide.PositionStep, "work", guide.StatusRunning, output("worked", nil)},
		{guide.PositionStep, "last", guide.StatusRunning, output("handed over", nil)},
		{guide.PositionEnd, "", guide.StatusCompleted, guide.Command{}},
	}
	for i, m := range moves {
		pos := p.PositionOf(s)
		if pos.Kind != m.kind || pos.ID != m.id || p.Status(s) != m.status {
			t.Fatalf("move %d: at %s %q, %s; want %s %q, %s", i, pos.Kind, pos.ID, p.Status(s), m.kind, m.id, m.status)
		}
		if m.kind != guide.PositionEnd {
			s = drive(t, p, s, m.command)
		}
	}
}

// A run that waits tells all values by which the workflow knows the variable, and
// suggests none of several: the first one alone would be taken for the answer.
func TestAWaitingRunTellsEveryValue(t *testing.T) {
	t.Parallel()
	p := compile(t, `[
		{"id":"look","title":"Look","prompt":"Set size, list, n, retry and done."},
		{"id":"small","title":"Small","prompt":"p","runCondition":{"var":"size","equals":"small"}},
		{"id":"medium","title":"Medium","prompt":"p","runCondition":{"not":{"or":[{"var":"size","equals":"Small"},{"var":"size","not_equals":"medium"}]}}},
		{"id":"large","title":"Large","prompt":"p","runCondition":{"var":"size","equals":"large"},"requireConfirmation":{"var":"done","equals":true}},
		{"id":"each","type":"loop","title":"Each","loop":{"type":"forEach","items":"list","maxIterations":3},"body":[
			{"id":"work","title":"Work","prompt":"p","runCondition":{"and":[{"var":"size","equals":"huge"},{"var":"retry"}]}}]},
		{"id":"count","type":"loop","title":"Count","loop":{"type":"for","count":"n","maxIterations":3},"body":"look-again"},
		{"id":"look-again","title":"Again","prompt":"p"},
		{"id":"last","title":"Last","prompt":"p","runCondition":{"var":"done","equals":false}}]`)
	s := drive(t, p, guide.State{}, start(nil), output("looked", nil))
	for _, tt := range []struct {
		name   string
		set    map[string]any
		needs  []guide.Need
		values map[string]any
	}{
		{"several texts", nil, []guide.Need{{Variable: "size", Allowed: []any{"small", "medium", "large", "huge"}}}, map[string]any{"size": "..."}},
		{"a list", map[string]any{"size": "other"}, []guide.Need{{Variable: "list", Example: []any{"..."}}}, map[string]any{"list": []any{"..."}}},
		{"a number", map[string]any{"list": []any{}}, []guide.Need{{Variable: "n", Example: 1}}, map[string]any{"n": 1}},
		{"true or false", map[string]any{"n": 0}, []guide.Need{{Variable: "done", Allowed: []any{false, true}}}, map[string]any{"done": false}},
	} {
		if tt.set != nil {
			s = drive(t, p, s, output("", tt.set))
		}
		needs := p.PositionOf(s).Needs
		if d := cmp.Diff(tt.needs, needs); d != "" {
			t.Errorf("%s: needs (-want +got):\n%s", tt.name, d)
		}
		if d := cmp.Diff(tt.values, guide.Values(needs)); d != "" {
			t.Errorf("%s: values (-want +got):\n%s", tt.name, d)
		}
	}
}

func TestPositionSaysWhatARunWaitsFor(t *testing.T) {
	t.Parallel()
	p := compile(t, guarded)
	s := drive(t, p, guide.State{}, start(nil), output("DONE", nil), output("plan", nil), answer(guide.OptionConfirm))
	want := []guide.Need{{Variable: "size", Allowed: []any{"large"}}}
	if d := cmp.Diff(want, p.PositionOf(s).Needs); d != "" {
		t.Errorf("needs (-want +got):\n%s", d)
	}
	s = drive(t, p, s, output("", map[string]any{"size": "small", "list": "text"}))
	want = []guide.Need{{Variable: "list", Found: "string", Example: []any{"..."}}}
	if d := cmp.Diff(want, p.PositionOf(s).Needs); d != "" {
		t.Errorf("needs (-want +got):\n%s", d)
	}
	s = drive(t, p, s, output("", map[string]any{"list": []any{"a", "b"}}), answer(guide.OptionConfirm), output("w", nil))
	pos := p.PositionOf(s)
	if d := cmp.Diff(&guide.LoopPosition{ID: "the-loop", Title: "Loop", Round: 2, Rounds: 2}, pos.Loop); d != "" {
		t.Errorf("loop (-want +got):\n%s", d)
	}
	if want := "Work on b."; pos.Prompt[:len(want)] != want {
		t.Errorf("prompt = %q", pos.Prompt)
	}
}

// The illegal moves: each is refused by its rule, and leaves the state alone.
func TestIllegalMovesAreRefused(t *testing.T) {
	t.Parallel()
	p := compile(t, guarded)
	fresh := guide.State{}
	atStep := drive(t, p, fresh, start(nil))
	atGate := drive(t, p, atStep, output("DONE", nil), output("plan", nil))
	atWait := drive(t, p, atGate, answer(guide.OptionConfirm))
	atLoopGate := drive(t, p, atWait, output("", map[string]any{"size": "small", "list": []any{"a"}}))
	inLoop := drive(t, p, atLoopGate, answer(guide.OptionConfirm))
	ended := drive(t, p, inLoop, output("w", nil), output("l", nil))
	aborted := drive(t, p, inLoop, guide.Command{Abort: &guide.Abort{Reason: "enough"}})
	byPerson := compile(t, personal)
	atPerson := drive(t, byPerson, fresh, start(nil), output("plan", nil))
	atPersonLoop := drive(t, byPerson, atPerson, person(guide.OptionConfirm))
	atStrict := drive(t, p, fresh, guide.Command{Start: &guide.Start{Person: true}}, output("DONE", nil), output("plan", nil))
	big := map[string]any{"big": string(make([]byte, 200_000))}
	tests := []struct {
		name    string
		state   guide.State
		command guide.Command
		rule    string
	}{
		{"continue before start", fresh, output("DONE", nil), guide.RuleNotStarted},
		{"abort before start", fresh, guide.Command{Abort: &guide.Abort{}}, guide.RuleNotStarted},
		{"start twice", atStep, start(nil), guide.RuleStarted},
		{"start with a loop's variable", fresh, start(map[string]any{"thing": 1.0}), guide.RuleServerVariable},
		{"an empty command", atStep, guide.Command{}, guide.RuleOutputMissing},
		{"output that fails its criteria", atStep, output("almost", nil), guide.RuleCriteria},
		{"no output where criteria want one", atStep, guide.Command{Continue: &guide.Continue{Notes: "DONE"}}, guide.RuleCriteria},
		{"an answer without a gate", atStep, answer(guide.OptionConfirm), guide.RuleNoGate},
		{"output at a gate", atGate, output("more", nil), guide.RuleGateUnanswered},
		{"context at a gate", atGate, output("", map[string]any{"size": "small"}), guide.RuleGateUnanswered},
		{"an answer together with output", atGate, guide.Command{Continue: &guide.Continue{Output: "x", Answer: &guide.Answer{OptionID: guide.OptionConfirm}}}, guide.RuleGateUnanswered},
		{"nothing at a gate", atGate, guide.Command{Continue: &guide.Continue{}}, guide.RuleGateUnanswered},
		{"an unknown option", atGate, answer("yes"), guide.RuleUnknownOption},
		{"passing over at a step's gate", atGate, answer(guide.OptionSkip), guide.RuleUnknownOption},
		{"revising at a loop's gate", atLoopGate, answer(guide.OptionRevise), guide.RuleUnknownOption},
		{"notes at a gate", atGate, guide.Command{Continue: &guide.Continue{Notes: "done"}}, guide.RuleGateUnanswered},
		{"output while variables are missing", atWait, output("done anyway", nil), guide.RuleContextNeeded},
		{"output along with variables while waiting", atWait, output("done", map[string]any{"size": "small"}), guide.RuleContextNeeded},
		{"an answer while waiting", atWait, answer(guide.OptionConfirm), guide.RuleNoGate},
		{"the loop's gate left unanswered", atLoopGate, output("worked", nil), guide.RuleGateUnanswered},
		{"nothing handed in", inLoop, output("  \n", nil), guide.RuleOutputMissing},
		{"the loop's item rewritten", inLoop, output("w", map[string]any{"thing": "b"}), guide.RuleServerVariable},
		{"the round rewritten", inLoop, output("w", map[string]any{"currentIteration": 5.0}), guide.RuleServerVariable},
		{"the engine's state forged", inLoop, output("w", map[string]any{"_loopState": map[string]any{}}), guide.RuleServerVariable},
		{"too much context", inLoop, output("w", big), guide.RuleContextTooLarge},
		{"a step that is not reached", inLoop, guide.Command{Continue: &guide.Continue{Step: "last", Output: "w"}}, guide.RuleWrongStep},
		{"a gate by the name of a step behind it", atGate, guide.Command{Continue: &guide.Continue{Step: "last", Answer: &guide.Answer{OptionID: guide.OptionConfirm}}}, guide.RuleWrongStep},
		{"skipping a step", inLoop, guide.Command{Continue: &guide.Continue{Skip: &guide.Skip{Reason: "no need"}}}, guide.RuleStepRequired},
		{"skipping a gate", atGate, guide.Command{Continue: &guide.Continue{Skip: &guide.Skip{}}}, guide.RuleGateUnanswered},
		{"declining a gate", atGate, guide.Command{Continue: &guide.Continue{Answer: &guide.Answer{Decline: true}}}, guide.RuleGateRequired},
		{"a person's gate answered by an agent", atPerson, answer(guide.OptionConfirm), guide.RulePerson},
		{"a person's loop begun by an agent", atPersonLoop, answer(guide.OptionConfirm), guide.RulePerson},
		{"a gate of a run whose gates are all a person's", atStrict, answer(guide.OptionConfirm), guide.RulePerson},
		{"continue after the end", ended, output("again", nil), guide.RuleEnded},
		{"abort after the end", ended, guide.Command{Abort: &guide.Abort{}}, guide.RuleEnded},
		{"continue after abort", aborted, output("again", nil), guide.RuleEnded},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			before := asJSON(t, tt.state)
			program := p
			if tt.rule == guide.RulePerson {
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

// A loop's list and count are pinned when it begins.
func TestALoopKeepsTheListItBeganWith(t *testing.T) {
	t.Parallel()
	p := compile(t, `[{"id":"the-loop","type":"loop","title":"L","loop":{"type":"forEach","items":"list","maxIterations":9},"body":[{"id":"work","title":"W","prompt":"w"}]}]`)
	s := drive(t, p, guide.State{}, start(map[string]any{"list": []any{"a", "b"}}))
	s = drive(t, p, s, output("w", map[string]any{"list": []any{}}))
	if pos := p.PositionOf(s); pos.ID != "work" || pos.Loop.Round != 2 {
		t.Fatalf("at %+v, want the second round", pos)
	}
	s = drive(t, p, s, output("w", map[string]any{"list": []any{"x", "y", "z"}}))
	if got := p.Status(s); got != guide.StatusCompleted {
		t.Errorf("status = %s, want completed", got)
	}
}

// Every random run ends after legal moves; no legal move is refused; the state
// is the fold of the events; deciding twice gives the same.
func TestEveryLegalRunEnds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawProgram(t)
		s := guide.State{}
		var log []guide.Event
		command := start(drawVars(t))
		for range 2*longest + 20 {
			events, refusal := p.Decide(s, command)
			if refusal != nil {
				t.Fatalf("refused: %s: %s", refusal.Rule, refusal.Message)
			}
			again, _ := p.Decide(s, command)
			if !reflect.DeepEqual(events, again) {
				t.Fatalf("decided %+v, then %+v", events, again)
			}
			for _, e := range events {
				s = guide.Apply(s, e)
			}
			log = append(log, events...)
			pos := p.PositionOf(s)
			if pos.Kind == guide.PositionEnd {
				checkFolds(t, p, log, s)
				return
			}
			command = legal(t, pos)
			if pos.Kind == guide.PositionContext {
				if _, refusal := p.Decide(s, command); refusal != nil {
					t.Fatalf("the run asks for what it refuses: %+v: %s", pos, refusal.Message)
				}
			}
		}
		t.Fatalf("no end: %+v", log)
	})
}

// checkFolds folds the events again, as they come back from a journal, and every
// prefix of them: from each there is a way on.
func checkFolds(t *rapid.T, p *guide.Program, log []guide.Event, want guide.State) {
	stored, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	var back []guide.Event
	if err := json.Unmarshal(stored, &back); err != nil {
		t.Fatal(err)
	}
	folded, err := p.Fold(back)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := mustJSON(t, folded), mustJSON(t, want); got != want || p.Status(folded) != guide.StatusCompleted {
		t.Fatalf("the fold of the events is %s, the state was %s", got, want)
	}
	cut := rapid.IntRange(1, len(back)).Draw(t, "cut")
	prefix, err := p.Fold(back[:cut])
	if err != nil {
		t.Fatalf("cut at %d: %v", cut, err)
	}
	if pos := p.PositionOf(prefix); pos.Kind != guide.PositionEnd {
		if events, refusal := p.Decide(prefix, legal(t, pos)); refusal != nil {
			t.Fatalf("cut at %d, at %+v: refused: %s", cut, pos, refusal.Message)
		} else if _, err := p.Fold(append(back[:cut:cut], events...)); err != nil {
			t.Fatalf("cut at %d: %v", cut, err)
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

// legal gives a legal command at a position.
func legal(t *rapid.T, pos guide.Position) guide.Command {
	switch pos.Kind {
	case guide.PositionGate:
		return answer(guide.OptionConfirm)
	case guide.PositionContext:
		vars := map[string]any{}
		for _, n := range pos.Needs {
			switch {
			case n.Variable == "list":
				vars[n.Variable] = []any{"p"}
			case len(n.Allowed) > 0:
				vars[n.Variable] = n.Allowed[0]
			case n.Found != "" || pos.Message != "":
				// A loop's extent: both a count and a list have two rounds.
				vars[n.Variable] = extentFor(pos)
			default:
				vars[n.Variable] = 1.0
			}
		}
		if len(vars) == 0 {
			t.Fatalf("the run waits for nothing: %+v", pos)
		}
		return output("", vars)
	default:
		return output("done", nil)
	}
}

func extentFor(pos guide.Position) any {
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
