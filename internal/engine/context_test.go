package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
)

const bigLoop = `[
	{"id":"per-item","type":"loop","title":"Per item","loop":{"type":"forEach","items":"list","itemVar":"thing","indexVar":"at","maxIterations":50},
	 "body":[
		{"id":"look-at","title":"Look","prompt":"Look at {{thing.name}}, number {{at + 1}} of {{list.length}}. Read it whole, and write down what it does and what it needs.","guidance":["One line for each thing that it needs","Name the file and the line"]},
		{"id":"judge-it","title":"Judge","prompt":"Judge {{thing.name}} by what you wrote down. Say what you would change, and why."}]}]`

// The loop's part of the context must shrink by at least 60 percent after the first round,
// and the caller's variables must not change.
func TestLoopContextShrinksAndKeepsCallerVariables(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, bigLoop)
	var list []any
	for i := range 30 {
		list = append(list, map[string]any{"name": fmt.Sprintf("item %d", i)})
	}
	vars := map[string]any{"list": list, "notes": map[string]any{"deep": []any{1.0, nil, "x"}}, "small": []any{"a", "b", "c"}, "null": nil}
	first := mustNext(t, p, nil, vars)
	second := mustNext(t, p, []string{"look-at", "judge-it"}, roundTripJSON(t, first.Context))

	if got := stepID(second); got != "look-at" {
		t.Fatalf("step = %q, want the second round's first", got)
	}
	a, b := loopBytes(t, first.Context), loopBytes(t, second.Context)
	if b > a*40/100 {
		t.Errorf("the loop's context is %d bytes in round 1 and %d in round 2: less than 60 percent saved", a, b)
	}
	for name, want := range vars {
		if d := cmp.Diff(want, second.Context[name]); d != "" {
			t.Errorf("%s changed (-want +got):\n%s", name, d)
		}
	}
	want := map[string]any{
		"loopId": "per-item", "loopType": "forEach", "iteration": 2.0, "isFirstIteration": false,
		"phaseReference": map[string]any{"loopId": "per-item", "phaseTitle": "Per item", "totalSteps": 2.0},
	}
	if d := cmp.Diff(want, second.Context["_currentLoop"]); d != "" {
		t.Errorf("_currentLoop (-want +got):\n%s", d)
	}
	if second.Context["thing"].(map[string]any)["name"] != "item 1" || second.Context["at"] != 1.0 || second.Context["currentIteration"] != 2.0 {
		t.Errorf("loop variables = %v, %v, %v", second.Context["thing"], second.Context["at"], second.Context["currentIteration"])
	}
	for _, part := range []string{"Look at item 1, number 2 of 30.", "- Iteration: 2", "Refer to the phase overview"} {
		if !strings.Contains(second.Guidance.Prompt, part) {
			t.Errorf("the prompt lacks %q:\n%s", part, second.Guidance.Prompt)
		}
	}
}

func loopBytes(t *testing.T, context map[string]any) int {
	t.Helper()
	b, err := json.Marshal([]any{context["_currentLoop"], context["_loopState"]})
	if err != nil {
		t.Fatal(err)
	}
	return len(b)
}

func mustNext(t testing.TB, p *engine.Program, completed []string, context map[string]any) *engine.NextResult {
	t.Helper()
	res, err := p.Next(engine.NextRequest{Completed: completed, Context: context})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return res
}

// TestInvalidEngineKeysAreIgnored checks that a walk starts at its first step even if the
// caller sends invalid values of the engine's keys.
func TestInvalidEngineKeysAreIgnored(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, bigLoop)
	for _, odd := range []string{
		`{"_loopState":7,"_currentLoop":[]}`,
		`{"_loopState":{"per-item":"x"}}`,
		`{"_loopState":{"per-item":{"iteration":-3,"before":-1,"done":"yes","warnings":[1,{}]}}}`,
		`{"_loopState":{"per-item":{"iteration":1e300,"before":1e300}}}`,
		`{"_loopState":{"per-item":{"iteration":2.5}}}`,
		`{"_loopState":{"other":{"iteration":2,"done":true}}}`,
		`{"_currentLoop":{"loopId":"per-item","loopType":"for","iteration":9}}`,
		`{"_warnings":"x","_contextSize":{}}`,
	} {
		context := parseVars(t, odd)
		context["list"] = []any{"a", "b"}
		res := mustNext(t, p, nil, context)
		if stepID(res) != "look-at" {
			t.Errorf("%s: step = %q, want look-at", odd, stepID(res))
		}
	}
}

func TestContextSizeMatchesSeed(t *testing.T) {
	t.Parallel()
	tests := []struct {
		value any
		want  int
	}{
		{"hello", 10},
		{"h\u00e9llo", 10},
		{"\U0001F600", 4},
		{42.0, 8},
		{true, 4},
		{nil, 4},
		{[]any{}, 4},
		{map[string]any{"ab": "c"}, 4 + 4 + 2},
	}
	for _, tt := range tests {
		if got := engine.ContextSize(tt.value); got != tt.want {
			t.Errorf("ContextSize(%v) = %d, want %d", tt.value, got, tt.want)
		}
	}
}

func TestContextNearlyFullWarns(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, threeSteps)
	res := mustNext(t, p, nil, map[string]any{"big": strings.Repeat("x", 110_000)})
	got := res.Context["_warnings"].(map[string]any)["contextSize"]
	if d := cmp.Diff([]any{"Context size (215KB) exceeds 80% of maximum (256KB)"}, got); d != "" {
		t.Errorf("warnings (-want +got):\n%s", d)
	}
}

// An answer contains the function definitions that its step refers to. Only the first
// answer contains the meta guidance.
func TestFunctionsAndMetaGuidance(t *testing.T) {
	t.Parallel()
	p := compileAll(t, `{"id":"probe","name":"P","description":"d","version":"1.0.0","metaGuidance":["Always."],
		"functionDefinitions":[{"name":"measure","definition":"Measure twice."},{"name":"unused","definition":"Never."}],
		"steps":[
			{"id":"step-1","title":"1","prompt":"1"},
			{"id":"step-2","title":"2","prompt":"2","functionReferences":["measure()"]},
			{"id":"the-loop","type":"loop","title":"L","loop":{"type":"for","count":1,"maxIterations":2},"functionDefinitions":[{"name":"inner","definition":"In the loop."}],
			 "body":[{"id":"body-a","title":"A","prompt":"a","functionReferences":["inner()","measure()"]}]}]}`)
	first := callNext(t, p, nil, `{}`)
	if d := cmp.Diff([]string{"Always."}, first.Guidance.MetaGuidance); d != "" || len(first.Guidance.Functions) != 0 {
		t.Errorf("first step: meta guidance %v, functions %v", first.Guidance.MetaGuidance, first.Guidance.Functions)
	}
	second := callNext(t, p, []string{"step-1"}, `{}`)
	if len(second.Guidance.MetaGuidance) != 0 || len(second.Guidance.Functions) != 1 || second.Guidance.Functions[0].Definition != "Measure twice." {
		t.Errorf("second step: meta guidance %v, functions %v", second.Guidance.MetaGuidance, second.Guidance.Functions)
	}
	third := callNext(t, p, []string{"step-1", "step-2"}, `{}`)
	if len(third.Guidance.Functions) != 2 || third.Guidance.Functions[0].Name != "inner" {
		t.Errorf("body step: functions %v", third.Guidance.Functions)
	}
}

func TestConfirmationText(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[
		{"id":"always","title":"A","prompt":"a","requireConfirmation":true},
		{"id":"maybe","title":"M","prompt":"m","requireConfirmation":{"var":"risk","equals":"high"}},
		{"id":"never","title":"N","prompt":"n"}]`)
	tests := []struct {
		completed []string
		vars      string
		asks      bool
	}{
		{nil, `{}`, true},
		{[]string{"always"}, `{"risk":"high"}`, true},
		{[]string{"always"}, `{"risk":"low"}`, false},
		{[]string{"always"}, `{}`, true},
		{[]string{"always", "maybe"}, `{}`, false},
	}
	for _, tt := range tests {
		res := callNext(t, p, tt.completed, tt.vars)
		if got := res.Guidance.Confirmation != ""; got != tt.asks {
			t.Errorf("%s with %s: asks %v, want %v", stepID(res), tt.vars, got, tt.asks)
		}
	}
}
