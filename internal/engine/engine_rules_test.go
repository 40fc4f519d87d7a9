package engine_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// The engine's own keys never make the caller's next call too large, even close to the
// limit.
func TestEchoedContextIsAccepted(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, bigLoop)
	big := strings.Repeat("x", 70_000)
	for name, vars := range map[string]map[string]any{
		"a large item":           {"list": []any{map[string]any{"name": big}, "b"}},
		"just below the maximum": {"list": []any{"a", "b"}, "pad": strings.Repeat("x", 131_000)},
	} {
		ids, last := walker{client: echo, vars: vars, most: 10}.walkProgram(t, p)
		if len(ids) != 4 || !last.IsComplete {
			t.Errorf("%s: walked %v, complete %v", name, ids, last.IsComplete)
		}
	}
}

// A loop shadows the caller's variables of the same names while it runs, and restores them
// afterwards.
func TestLoopRestoresShadowedVariables(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[
		{"id":"the-loop","type":"loop","title":"L","loop":{"type":"forEach","items":"thing","itemVar":"thing","maxIterations":9},"body":[{"id":"work","title":"W","prompt":"On {{thing}}."}]},
		{"id":"after","title":"A","prompt":"{{thing}} and {{currentIteration}}","runCondition":{"not":{"var":"currentIndex","gte":0}}}]`)
	vars := parseVars(t, `{"thing":["a","b"],"currentIteration":"mine"}`)
	ids, last := walker{client: echo, vars: vars, most: 10}.walkProgram(t, p)
	if d := cmp.Diff([]string{"work", "work", "after"}, ids); d != "" {
		t.Errorf("walk (-want +got):\n%s", d)
	}
	for name, want := range vars {
		if d := cmp.Diff(want, last.Context[name]); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for _, gone := range []string{"currentIndex", "_currentLoop"} {
		if v, ok := last.Context[gone]; ok {
			t.Errorf("%s = %v remains", gone, v)
		}
	}
}

// A loop that has ended does not resume if its variables change later, even for a client
// that keeps no engine state. A loop that was never entered is offered once its condition
// holds.
func TestLeftLoopsStayEndedAndLateLoopsAreOffered(t *testing.T) {
	t.Parallel()
	one := func(id, config, body string) string {
		return `{"id":"` + id + `","type":"loop","title":"L","loop":` + config + `,"body":[{"id":"` + body + `","title":"B","prompt":"b"}]}`
	}
	each, while := `{"type":"forEach","items":"list","maxIterations":9}`, `{"type":"while","condition":{"var":"go","equals":true},"maxIterations":3}`
	mid := `{"id":"mid","title":"M","prompt":"m"}`
	tests := []struct {
		name, steps, vars string
		sets              map[string]map[string]any
		want              []string
	}{
		{
			"a list used again", `[` + one("loop-a", each, "w-a") + `,` + mid + `,` + one("loop-b", each, "w-b") + `]`,
			`{"list":["a"]}`,
			map[string]map[string]any{"mid": {"list": []any{"b", "c", "d"}}},
			[]string{"w-a", "mid", "w-b", "w-b", "w-b"},
		},
		{
			"a count used again", `[` + one("loop-a", `{"type":"for","count":"n","maxIterations":9}`, "w-a") + `,` + mid + `,` + one("loop-b", `{"type":"for","count":"n","maxIterations":9}`, "w-b") + `]`,
			`{"n":1}`,
			map[string]map[string]any{"mid": {"n": 2.0}},
			[]string{"w-a", "mid", "w-b", "w-b"},
		},
		{
			"one body for two loops", `[{"id":"loop-a","type":"loop","title":"L","loop":` + while + `,"body":"work"},` + mid + `,{"id":"loop-b","type":"loop","title":"L","loop":{"type":"for","count":2,"maxIterations":9},"body":"work"},{"id":"work","title":"W","prompt":"w"}]`,
			`{"go":true}`,
			map[string]map[string]any{"work": {"go": false}, "mid": {"go": true}},
			[]string{"work", "mid", "work", "work"},
		},
		{
			"a loop whose condition holds late", `[{"id":"one","title":"1","prompt":"1"},{"id":"loop-a","type":"loop","title":"L","runCondition":{"var":"x","equals":true},"loop":` + while + `,"body":[{"id":"w-a","title":"W","prompt":"w"}]},` + mid + `,{"id":"end","title":"E","prompt":"e"}]`,
			`{"go":true,"x":false}`,
			map[string]map[string]any{"mid": {"x": true}, "w-a": {"go": false}},
			[]string{"one", "mid", "w-a", "end"},
		},
		{
			"a list that is set late", `[` + one("loop-a", each, "w-a") + `,` + mid + `]`,
			`{}`,
			map[string]map[string]any{"mid": {"list": []any{"b"}}},
			[]string{"mid", "w-a"},
		},
	}
	for _, tt := range tests {
		for _, c := range allClients() {
			t.Run(tt.name+"/"+string(c), func(t *testing.T) {
				t.Parallel()
				sets := func(id string, _ int, vars map[string]any) {
					for k, v := range tt.sets[id] {
						vars[k] = v
					}
				}
				ids, last := walker{client: c, vars: parseVars(t, tt.vars), sets: sets, most: 20}.walkProgram(t, compileSteps(t, tt.steps))
				if d := cmp.Diff(tt.want, ids); d != "" || !last.IsComplete {
					t.Errorf("complete %v, walk (-want +got):\n%s", last.IsComplete, d)
				}
			})
		}
	}
}

// A walk is also completed by a client that, after a loop, replaces the IDs of its body by
// the ID of the loop, as the original WorkRail server requires.
func TestLoopIDMarksLoopComplete(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"the-loop","type":"loop","title":"L","loop":{"type":"for","count":2,"maxIterations":9},"body":[{"id":"work","title":"W","prompt":"w"}]},{"id":"after","title":"A","prompt":"a"}]`)
	if got := stepID(callNext(t, p, []string{"the-loop"}, `{}`)); got != "after" {
		t.Errorf("step = %q, want after", got)
	}
	if res := callNext(t, p, []string{"the-loop", "after"}, `{}`); !res.IsComplete {
		t.Errorf("not complete: %s", res.Guidance.Prompt)
	}
}

// A walk without completed steps restarts, regardless of its context.
func TestNewWalkIgnoresOldState(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, bigLoop)
	_, last := walker{client: echo, vars: map[string]any{"list": []any{"a"}}, most: 10}.walkProgram(t, p)
	if res := mustNext(t, p, nil, roundTripJSON(t, last.Context)); stepID(res) != "look-at" {
		t.Errorf("step = %q, complete %v, want the first step", stepID(res), res.IsComplete)
	}
}

func TestLoopConfirmationComesWithFirstStep(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"the-loop","type":"loop","title":"The loop","requireConfirmation":true,"loop":{"type":"for","count":2,"maxIterations":9},"body":[
		{"id":"never","title":"N","prompt":"n","runCondition":{"var":"currentIteration","gt":9}},{"id":"work","title":"W","prompt":"w"},{"id":"more","title":"M","prompt":"m"}]}]`)
	var asked []string
	for _, completed := range [][]string{nil, {"work"}, {"work", "more"}} {
		res := callNext(t, p, completed, `{}`)
		if res.Guidance.Confirmation != "" {
			asked = append(asked, stepID(res))
		}
	}
	if d := cmp.Diff([]string{"work"}, asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
}

// An agent that keeps its completed steps as a set cannot end a counting loop, so the
// prompt explains how to keep the list.
func TestLaterRoundsExplainCompletedSteps(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, bigLoop)
	res := callNext(t, p, []string{"look-at", "judge-it"}, `{"list":["a","b"]}`)
	if want := `append "look-at" to completedSteps again`; !strings.Contains(res.Guidance.Prompt, want) {
		t.Errorf("the prompt lacks %q:\n%s", want, res.Guidance.Prompt)
	}
}

// A run never waits for a variable that only a loop or the engine can set.
func TestRunNeverWaitsForServerVariables(t *testing.T) {
	t.Parallel()
	loop := `{"id":"the-loop","type":"loop","title":"L","loop":{"type":"forEach","items":"list","itemVar":"file","maxIterations":9},"body":[{"id":"work","title":"W","prompt":"w"}]}`
	last := `{"id":"last","title":"Last","prompt":"l"}`
	tests := map[string]string{
		"a step after the loop":             `[` + loop + `,{"id":"odd","title":"O","prompt":"o","runCondition":{"var":"currentIteration","gte":1}},` + last + `]`,
		"the loop's own condition":          `[{"id":"odd","type":"loop","title":"L","runCondition":{"var":"currentIteration","equals":1},"loop":{"type":"for","count":1,"maxIterations":2},"body":[{"id":"work","title":"W","prompt":"w"}]},` + last + `]`,
		"a while over another loop's round": `[` + loop + `,{"id":"odd","type":"loop","title":"L","loop":{"type":"while","condition":{"var":"file","gt":1},"maxIterations":2,"iterationVar":"other"},"body":[{"id":"more","title":"W","prompt":"w"}]},` + last + `]`,
		"a list that is the item":           `[{"id":"odd","type":"loop","title":"L","loop":{"type":"forEach","items":"file","itemVar":"file","maxIterations":2},"body":[{"id":"more","title":"W","prompt":"w"}]},` + last + `]`,
		"a count that is the round":         `[{"id":"odd","type":"loop","title":"L","loop":{"type":"for","count":"n","iterationVar":"n","maxIterations":2},"body":[{"id":"more","title":"W","prompt":"w"}]},` + last + `]`,
		"the engine's own key":              `[{"id":"odd","title":"O","prompt":"o","runCondition":{"var":"_contextSize","gt":1}},` + last + `]`,
	}
	for name, text := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := compileSteps(t, text)
			s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"list": []any{"a"}}))
			for range 10 {
				pos := p.PositionOf(s)
				if pos.Kind != engine.PositionStep {
					break
				}
				s = applyToProgram(t, p, s, outputCommand("done", nil))
			}
			if got := p.Status(s); got != engine.StatusCompleted {
				t.Errorf("status = %s at %+v", got, p.PositionOf(s))
			}
		})
	}
}

// The checks of a step are evaluated with the variables before the call together with those
// after it, so that a call cannot disable its own checks.
func TestContextCannotDisableCriteriaOrGate(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"guarded","title":"G","prompt":"g","requireConfirmation":{"var":"risk","equals":"high"},
		"validationCriteria":[{"type":"contains","value":"DONE","message":"say DONE","condition":{"var":"strict","equals":true}}]}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"risk": "high", "strict": true}))
	if _, refusal := p.Decide(s, outputCommand("nothing", map[string]any{"strict": false})); refusal == nil || refusal.Rule != engine.RuleCriteria {
		t.Errorf("refusal = %+v, want a refusal by the criteria", refusal)
	}
	s = applyToProgram(t, p, s, outputCommand("DONE", map[string]any{"risk": "low"}))
	if pos := p.PositionOf(s); pos.Kind != engine.PositionGate {
		t.Errorf("at %+v, want the gate", pos)
	}
}

func TestStepWithoutActiveCriteriaNeedsOutput(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"only","title":"O","prompt":"o","validationCriteria":[{"type":"contains","value":"DONE","message":"m","condition":{"var":"strict","equals":true}}]}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil))
	if _, refusal := p.Decide(s, outputCommand("", nil)); refusal == nil || refusal.Rule != engine.RuleOutputMissing {
		t.Errorf("refusal = %+v, want %s", refusal, engine.RuleOutputMissing)
	}
}

// TestFoldRejectsMismatchedEvents checks that Fold returns a conflict for events that no
// legal commands result in.
func TestFoldRejectsMismatchedEvents(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, guarded)
	began := engine.Event{Kind: engine.EventRunStarted}
	done := engine.Event{Kind: engine.EventStepCompleted, Step: "first", Output: "DONE"}
	tests := map[string][]engine.Event{
		"nothing started":               {done},
		"started twice":                 {began, began},
		"another step":                  {began, {Kind: engine.EventStepCompleted, Step: "last"}},
		"a round without a loop":        {began, {Kind: engine.EventRoundStarted, Step: "the-loop", Round: 1}},
		"a loop that is a step":         {began, {Kind: engine.EventLoopEntered, Step: "first"}},
		"a gate at a step":              {began, {Kind: engine.EventGateOpened, Step: "first"}},
		"an answer without a gate":      {began, {Kind: engine.EventGateAnswered, Step: "first", Option: "revise"}},
		"an early end":                  {began, {Kind: engine.EventRunCompleted}},
		"after the end":                 {began, {Kind: engine.EventRunAborted}, done},
		"an unknown kind":               {began, {Kind: "teleported"}},
		"past an open gate":             {began, {Kind: engine.EventStepCompleted, Step: "first", Gate: true}, {Kind: engine.EventStepCompleted, Step: "approve"}},
		"an option of a different gate": {began, {Kind: engine.EventStepCompleted, Step: "first", Gate: true}, {Kind: engine.EventGateAnswered, Step: "first", Option: engine.OptionSkip}},
	}
	for name, events := range tests {
		if s, err := p.Fold(events); guideway.ErrorCode(err) != guideway.CodeConflict {
			t.Errorf("%s: state %+v, error %v", name, s, err)
		}
	}
}

// The texts of a position are rendered, and a reviewer's note reaches the agent.
func TestPositionIncludesAuthorAndReviewTexts(t *testing.T) {
	t.Parallel()
	p := compileAll(t, `{"id":"probe","name":"P","description":"d","version":"1.0.0","metaGuidance":["Always."],
		"functionDefinitions":[{"name":"measure","definition":"Measure {{twice}}.","parameters":[{"name":"what","type":"string"}]}],
		"steps":[{"id":"the-loop","type":"loop","title":"For {{who}}","requireConfirmation":true,"loop":{"type":"for","count":9,"maxIterations":2},
			"body":[{"id":"work","title":"Work for {{who}}","prompt":"w","requireConfirmation":true,"askForFiles":true,
				"functionDefinitions":[{"name":"own","definition":"Own."}],"functionCalls":[{"name":"measure","args":{"what":"x"}}],
				"validationCriteria":[{"type":"contains","value":"DONE","message":"name {{who}}"}]}]}]}`)
	s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"who": "Ada"}))
	if pos := p.PositionOf(s); pos.Title != "For Ada" || !strings.Contains(pos.Message, "'For Ada' may begin") {
		t.Errorf("gate = %+v", pos)
	}
	s = applyToProgram(t, p, s, answerCommand(engine.OptionConfirm))
	pos := p.PositionOf(s)
	if pos.Title != "Work for Ada" || pos.Loop.Title != "For Ada" || pos.Loop.Rounds != 2 || !pos.AskForFiles {
		t.Errorf("position = %+v, loop %+v", pos, pos.Loop)
	}
	if len(pos.Functions) != 2 || len(pos.Calls) != 1 || !slices.Equal(pos.MetaGuidance, []string{"Always."}) || !strings.Contains(pos.Criteria[0], "name Ada") {
		t.Errorf("functions %v, calls %v, meta %v, criteria %v", pos.Functions, pos.Calls, pos.MetaGuidance, pos.Criteria)
	}
	s = applyToProgram(t, p, s, outputCommand("DONE", nil), engine.Command{Continue: &engine.Continue{Answer: &engine.Answer{OptionID: engine.OptionRevise, Note: "shorter"}}})
	if pos := p.PositionOf(s); pos.ID != "work" || !strings.Contains(pos.Message, "shorter") {
		t.Errorf("after the revision, the run is at %+v", pos)
	}
}

// Numbers that a float64 cannot represent are returned unchanged.
func TestLargeNumbersAreUnchanged(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"the-loop","type":"loop","title":"L","loop":{"type":"for","count":"n","maxIterations":9},"body":[{"id":"work","title":"W","prompt":"For {{id}}."}]}]`)
	context := map[string]any{"id": json.Number("12345678901234567"), "n": json.Number("2")}
	res := mustNext(t, p, nil, context)
	if res.Context["id"] != json.Number("12345678901234567") || !strings.Contains(res.Guidance.Prompt, "For 12345678901234567.") {
		t.Errorf("id = %v, prompt %q", res.Context["id"], res.Guidance.Prompt)
	}
}

// A step that a reviewer sends back is repeated, even if the variables of its output make
// its condition false.
func TestRevisedStepIsRepeated(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"a step": `[{"id":"one","title":"One","prompt":"p","runCondition":{"var":"size","equals":"large"},"requireConfirmation":true},
			{"id":"two","title":"Two","prompt":"p"}]`,
		"a step in a loop": `[{"id":"loop","type":"loop","title":"L","loop":{"type":"while","condition":{"var":"size","equals":"large"},"maxIterations":3},
			"body":[{"id":"one","title":"One","prompt":"p","runCondition":{"var":"size","equals":"large"},"requireConfirmation":true}]},
			{"id":"two","title":"Two","prompt":"p"}]`,
	} {
		p := compileSteps(t, text)
		s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"size": "large"}), outputCommand("x", map[string]any{"size": "small"}), answerCommand(engine.OptionRevise))
		if pos := p.PositionOf(s); pos.Kind != engine.PositionStep || pos.ID != "one" {
			t.Errorf("%s: the run is at %+v", name, pos)
		}
		s = applyToProgram(t, p, s, outputCommand("better", nil), answerCommand(engine.OptionConfirm))
		if pos := p.PositionOf(s); pos.ID != "two" {
			t.Errorf("%s: after the confirmation, the run is at %+v", name, pos)
		}
	}
}

// TestBlankOutputIsRefused checks that a step without criteria refuses an output that is
// empty or only white space.
func TestBlankOutputIsRefused(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"one","title":"One","prompt":"p"}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil))
	for _, text := range []string{"", " \n\t", "\ufeff", "\u00a0\u2029"} {
		if _, r := p.Decide(s, outputCommand(text, nil)); r == nil || r.Rule != engine.RuleOutputMissing {
			t.Errorf("%q was accepted as an output", text)
		}
	}
}

// TestLoopVariableIsUnsetOutsideLoop checks that a loop's variable is unset before the
// loop, so that its placeholder remains in the prompt.
func TestLoopVariableIsUnsetOutsideLoop(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"before","title":"B","prompt":"Round {{currentIteration}} of {{name}}."},
		{"id":"loop","type":"loop","title":"L","loop":{"type":"for","count":1,"maxIterations":1},"body":[{"id":"inside","title":"I","prompt":"Round {{currentIteration}} of {{name}}."}]}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(map[string]any{"name": "x"}))
	if got := p.PositionOf(s).Prompt; got != "Round {{currentIteration}} of x." {
		t.Errorf("before the loop, the prompt is %q", got)
	}
	s = applyToProgram(t, p, s, outputCommand("o", nil))
	if got := p.PositionOf(s).Prompt; !strings.HasPrefix(got, "Round 1 of x.") {
		t.Errorf("in the loop, the prompt is %q", got)
	}
}

// TestMaximumIterationsEndLoopBeforeCondition checks that a loop that has reached its
// maximum of iterations ends without waiting for a variable of its condition.
func TestMaximumIterationsEndLoopBeforeCondition(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"loop","type":"loop","title":"L","loop":{"type":"while","maxIterations":2,
		"condition":{"or":[{"var":"currentIteration","lt":3},{"var":"ready","equals":true}]}},"body":[{"id":"work","title":"W","prompt":"p"}]}]`)
	s := applyToProgram(t, p, engine.State{}, startCommand(nil), outputCommand("1", nil), outputCommand("2", nil))
	if p.Status(s) != engine.StatusCompleted {
		t.Errorf("the run is at %+v", p.PositionOf(s))
	}
}
