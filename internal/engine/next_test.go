package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const threeSteps = `[
	{"id":"step-1","title":"One","prompt":"Do one."},
	{"id":"step-2","title":"Two","prompt":"Do two.","guidance":["G1","G2"]},
	{"id":"step-3","title":"Three","prompt":"Do three."}]`

// Next returns the steps in order, composes prompts of role, guidance and prompt, and waits
// for undecided conditions.
func TestNextOrderAndPrompts(t *testing.T) {
	t.Parallel()
	three := threeSteps
	branches := `[
		{"id":"step-1","title":"One","prompt":"Do one."},
		{"id":"high-road","title":"High","prompt":"High.","runCondition":{"var":"complexity","equals":"high"}},
		{"id":"low-road","title":"Low","prompt":"Low.","runCondition":{"var":"complexity","equals":"low"}}]`
	role := `[{"id":"step-1","title":"One","prompt":"Do one.","agentRole":"You are a careful reviewer.","guidance":["G1"]}]`
	tests := []struct {
		name      string
		steps     string
		completed []string
		vars      string
		step      string
		complete  bool
		prompt    string
	}{
		{"first step, bare prompt", three, nil, `{}`, "step-1", false, "Do one."},
		{"guidance before prompt", three, []string{"step-1"}, `{}`, "step-2", false, "## Step Guidance\n- G1\n- G2\n\nDo two."},
		{"complete", three, []string{"step-1", "step-2", "step-3"}, `{}`, "", true, "Workflow complete."},
		{"role first", role, nil, `{}`, "step-1", false, "## Agent Role Instructions\nYou are a careful reviewer.\n\n## Step Guidance\n- G1\n\nDo one."},
		{"unknown IDs are ignored", three, []string{"nope", "", "../x"}, `{}`, "step-1", false, "Do one."},
		{"a step cannot be omitted", three, []string{"step-3", "step-2"}, `{}`, "step-1", false, "Do one."},
		{
			"undecided branches wait", branches,
			[]string{"step-1"},
			`{}`, "", false,
			"No eligible step due to unmet conditions. Please update context:\n- Set 'complexity' to one of: 'high', 'low'",
		},
		{"the branch that does not apply does not block", branches, []string{"step-1", "low-road"}, `{"complexity":"low"}`, "", true, "Workflow complete."},
		{"neither branch applies", branches, []string{"step-1"}, `{"complexity":"medium"}`, "", true, "Workflow complete."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := callNext(t, compileSteps(t, tt.steps), tt.completed, tt.vars)
			if stepID(res) != tt.step || res.IsComplete != tt.complete {
				t.Errorf("step %q complete %v, want %q %v", stepID(res), res.IsComplete, tt.step, tt.complete)
			}
			if d := cmp.Diff(tt.prompt, res.Guidance.Prompt); d != "" {
				t.Errorf("prompt (-want +got):\n%s", d)
			}
		})
	}
}

// Every loop ends after the correct number of rounds, for both kinds of clients.
func TestLoopsRunEachRoundOnce(t *testing.T) {
	t.Parallel()
	count := func(name string) func(string, int, map[string]any) {
		return func(id string, nth int, vars map[string]any) {
			if strings.HasPrefix(id, "body") {
				n, _ := vars[name].(float64)
				vars[name] = n + 1
			}
		}
	}
	body := `"body":[{"id":"body-a","title":"A","prompt":"Round {{currentIteration}}."}]`
	loop := func(config, body string) string {
		return `[{"id":"the-loop","type":"loop","title":"Loop","loop":` + config + `,` + body + `},{"id":"after","title":"After","prompt":"After."}]`
	}
	rounds := func(n int) []string {
		return append(slices.Repeat([]string{"body-a"}, n), "after")
	}
	tests := []struct {
		name  string
		steps string
		vars  string
		sets  func(string, int, map[string]any)
		want  []string
		warns string
	}{
		{
			name: "while", steps: loop(`{"type":"while","condition":{"var":"counter","lt":3},"maxIterations":10}`, body),
			vars: `{"counter":0}`, sets: count("counter"), want: rounds(3),
		},
		{
			name: "until", steps: loop(`{"type":"until","condition":{"var":"counter","gte":2},"maxIterations":10}`, body),
			vars: `{"counter":0}`, sets: count("counter"), want: rounds(2),
		},
		{name: "for", steps: loop(`{"type":"for","count":3,"maxIterations":10}`, body), vars: `{}`, want: rounds(3)},
		{name: "for with a variable", steps: loop(`{"type":"for","count":"n","maxIterations":10}`, body), vars: `{"n":2}`, want: rounds(2)},
		{
			name: "for without its variable", steps: loop(`{"type":"for","count":"n","maxIterations":10}`, body), vars: `{}`, want: rounds(0),
			warns: "Invalid count value for 'for' loop: n",
		},
		{name: "for with a count as text", steps: loop(`{"type":"for","count":"n","maxIterations":10}`, body), vars: `{"n":" 2 "}`, want: rounds(2)},
		{name: "for with the count 0", steps: loop(`{"type":"for","count":"n","maxIterations":10}`, body), vars: `{"n":0}`, want: rounds(0)},
		{name: "forEach", steps: loop(`{"type":"forEach","items":"list","maxIterations":10}`, body), vars: `{"list":["a","b","c"]}`, want: rounds(3)},
		{name: "forEach of nothing", steps: loop(`{"type":"forEach","items":"list","maxIterations":10}`, body), vars: `{"list":[]}`, want: rounds(0)},
		{
			name: "forEach of a string", steps: loop(`{"type":"forEach","items":"list","maxIterations":10}`, body), vars: `{"list":"abc"}`, want: rounds(0),
			warns: "Expected array for forEach items 'list', got string",
		},
		{name: "maximum", steps: loop(`{"type":"for","count":3,"maxIterations":2}`, body), vars: `{}`, want: rounds(2), warns: "Maximum iterations (2) reached"},
		{name: "while false at entry", steps: loop(`{"type":"while","condition":{"var":"go","equals":true},"maxIterations":9}`, body), vars: `{"go":false}`, want: rounds(0)},
		{
			name: "a conditional step in the body", vars: `{"extra":true,"again":true}`,
			steps: loop(`{"type":"while","condition":{"var":"again","equals":true},"maxIterations":9}`,
				`"body":[{"id":"always","title":"A","prompt":"a"},{"id":"sometimes","title":"S","prompt":"s","runCondition":{"var":"extra","equals":true}},{"id":"body-last","title":"L","prompt":"l"}]`),
			sets: func(id string, nth int, vars map[string]any) {
				if id == "body-last" {
					vars["extra"], vars["again"] = false, nth < 2
				}
			},
			want: []string{"always", "sometimes", "body-last", "always", "body-last", "after"},
		},
		{
			name: "body conditions on the round", vars: `{}`,
			steps: loop(`{"type":"for","count":4,"maxIterations":4,"iterationVar":"phase"}`,
				`"body":[{"id":"body-1","title":"1","prompt":"1","runCondition":{"var":"phase","equals":1}},{"id":"body-2","title":"2","prompt":"2","runCondition":{"var":"phase","equals":2}},{"id":"body-3","title":"3","prompt":"3","runCondition":{"var":"phase","equals":3}},{"id":"body-4","title":"4","prompt":"4","runCondition":{"var":"phase","equals":4}}]`),
			want: []string{"body-1", "body-2", "body-3", "body-4", "after"},
		},
		{
			name: "two loops, the variable used twice", vars: `{"n":0}`,
			steps: `[{"id":"loop-1","type":"loop","title":"1","loop":{"type":"while","condition":{"var":"n","lt":2},"maxIterations":9},"body":[{"id":"body-a","title":"A","prompt":"a"},{"id":"body-z","title":"Z","prompt":"z"}]},
				{"id":"between","title":"B","prompt":"b"},
				{"id":"loop-2","type":"loop","title":"2","loop":{"type":"while","condition":{"var":"n","lt":2},"maxIterations":9},"body":[{"id":"inner-b","title":"B","prompt":"b"}]},
				{"id":"after","title":"After","prompt":"After."}]`,
			sets: func(id string, nth int, vars map[string]any) {
				switch id {
				case "body-z", "inner-b":
					vars["n"] = vars["n"].(float64) + 1
				case "between":
					vars["n"] = float64(0)
				}
			},
			want: []string{"body-a", "body-z", "body-a", "body-z", "between", "inner-b", "inner-b", "after"},
		},
		{
			name: "a body that is named by its ID", vars: `{"list":[1,2]}`,
			steps: `[{"id":"the-loop","type":"loop","title":"L","loop":{"type":"forEach","items":"list","maxIterations":9},"body":"body-a"},{"id":"body-a","title":"A","prompt":"a"},{"id":"after","title":"After","prompt":"After."}]`,
			want:  rounds(2),
		},
		{
			name: "two loops with one body", vars: `{}`,
			steps: `[{"id":"loop-1","type":"loop","title":"L","loop":{"type":"for","count":2,"maxIterations":9},"body":"body-a"},{"id":"loop-2","type":"loop","title":"L","loop":{"type":"for","count":1,"maxIterations":9},"body":"body-a"},{"id":"body-a","title":"A","prompt":"a"},{"id":"after","title":"After","prompt":"After."}]`,
			want:  rounds(3),
		},
	}
	for _, tt := range tests {
		for _, c := range allClients() {
			t.Run(tt.name+"/"+string(c), func(t *testing.T) {
				t.Parallel()
				w := walker{client: c, vars: parseVars(t, tt.vars), sets: tt.sets, most: 30}
				ids, last := w.walkProgram(t, compileSteps(t, tt.steps))
				if d := cmp.Diff(tt.want, ids); d != "" {
					t.Errorf("walk (-want +got):\n%s", d)
				}
				if !last.IsComplete {
					t.Errorf("isComplete = false: %s", last.Guidance.Prompt)
				}
				if tt.warns != "" && c == echo {
					got := last.Context["_warnings"].(map[string]any)["loops"].(map[string]any)["the-loop"]
					if d := cmp.Diff([]any{tt.warns}, got); d != "" {
						t.Errorf("warnings (-want +got):\n%s", d)
					}
				}
			})
		}
	}
}
