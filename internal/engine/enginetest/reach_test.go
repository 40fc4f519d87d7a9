package enginetest

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// TestNoRunGetsStuck explores the states of generated workflows: from each, legal calls
// lead to an end, to a position that declares a dead end, or on in a cycle of phases. It
// leaves out workflows of which no run starts because the linter reports an error, and
// workflows for which the linter reports that a run never ends.
func TestNoRunGetsStuck(t *testing.T) {
	t.Parallel()
	for name, seed := range testSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var total Exploration
			refused, endless, explored := 0, 0, 0
			for i := range uint64(manyWorkflows(name) / slowdown) {
				d := seededSource{rand.New(rand.NewPCG(seed, i))}
				def := drawDefinition(d)
				program := compileWorkflow(t, def.toDocument())
				if program == nil {
					refused++
					continue
				}
				found := phases.Lint(program.Workflow, nil, "", phases.Layout{})
				if slices.ContainsFunc(found, func(f guideway.Diagnostic) bool { return f.Severity == guideway.SeverityError }) {
					refused++
					continue
				}
				if slices.ContainsFunc(found, func(f guideway.Diagnostic) bool { return f.Code == phases.CodeEndless }) {
					endless++
					continue
				}
				x := Explorer{
					Flow: program, Starts: []map[string]any{nil, drawVars(d, def, 4), drawVars(d, def, 9)},
					Outputs: []string{"DONE"}, Values: assignmentsOf, MaxStates: 100,
				}
				r := x.Explore()
				explored++
				total.States, total.Ends, total.DeadEnds, total.Open = total.States+r.States, total.Ends+r.Ends, total.DeadEnds+r.DeadEnds, total.Open+r.Open
				total.Cycling, total.Unmet = total.Cycling+r.Cycling, total.Unmet+r.Unmet
				if r.Stuck != "" {
					t.Errorf("GUIDEWAY_CHEAT_SEED=%d, workflow %d: no way to an end: %s\nof %s", seed, i, r.Stuck, def.toDocument())
				}
				if r.Escape != "" {
					t.Errorf("GUIDEWAY_CHEAT_SEED=%d, workflow %d: a declared dead end has a way to an end: %s\nof %s", seed, i, r.Escape, def.toDocument())
				}
			}
			t.Logf("seed %d: %d workflows explored (%d refused, %d endless), %d states, %d ends, %d dead ends, %d in cycles, %d unmet steps, %d not explored",
				seed, explored, refused, endless, total.States, total.Ends, total.DeadEnds, total.Cycling, total.Unmet, total.Open)
		})
	}
}

// manyWorkflows returns the number of workflows to explore: more with a new seed, which the
// nightly tests use.
func manyWorkflows(seed string) int {
	if seed == "new" {
		return 600
	}
	return 300
}

// assignmentsOf returns contexts that set the variable at a path to the values that
// generated conditions distinguish.
func assignmentsOf(path string) []map[string]any {
	root, rest, _ := strings.Cut(path, ".")
	var values []any
	switch root {
	case "size", "mark":
		values = []any{"large", "small", "", "1", "3"} // numeric strings compare as numbers
	case "tries":
		values = []any{0.0, 1.0, 2.0, 3.0, 4.0, -1.0}
	case "ready":
		values = []any{true, false}
	case "files":
		values = []any{[]any{}, []any{"a"}, []any{1.0, "b"}, []any{true, "b", 3.0}, []any{[]any{"a"}}, []any{"a", "b"}, []any{-1.0}, []any{3.0}}
	case "plan":
		values = []any{object{"tasks": []any{"a"}}, object{"tasks": []any{}}, object{"done": true}, object{"done": false}, object{"done": 0.0}, object{"done": 3.0}}
	default:
		values = []any{"large", 0.0, 1.0, 2.0, 3.0, -1.0, true, false, []any{"a"}, []any{}, object{"done": true}, object{"done": false}}
	}
	if rest != "" && root != "files" && root != "plan" {
		values = append(values, object{rest: true}, object{rest: false}, object{rest: 1.0})
	}
	values = append(values, nil)
	contexts := make([]map[string]any, len(values))
	for i, v := range values {
		contexts[i] = map[string]any{root: v}
	}
	// An undeclared variable accepts any type; a call with the wrong type is refused.
	for _, v := range []any{"large", "small", "1", "3", "", "a", 0.0, 1.0, 2.0, 3.0, 4.0, -1.0, true, false} {
		contexts = append(contexts, map[string]any{root: v})
	}
	if rest != "" { // a variable of exactly this name takes precedence over the path
		for _, v := range []any{true, false, 0.0, 1.0, 2.0, 3.0, -1.0, "a", "1", []any{}, []any{"a"}, nil} {
			contexts = append(contexts, map[string]any{path: v})
		}
	}
	return contexts
}

// TestMergeContexts checks that contexts for members of one object are combined.
func TestMergeContexts(t *testing.T) {
	t.Parallel()
	got := mergeContexts(map[string]any{"a": object{"x": 1.0}, "b": 1.0}, map[string]any{"a": object{"y": 2.0}})
	if want := fmt.Sprint(map[string]any{"a": object{"x": 1.0, "y": 2.0}, "b": 1.0}); fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
	if !maps.Equal(mergeContexts(nil, map[string]any{"c": 1.0}), map[string]any{"c": 1.0}) {
		t.Error("a single context changes")
	}
}
