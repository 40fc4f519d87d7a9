package bypasstest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/engine/enginetest"
)

// TestNoRunGetsStuck explores the states of generated step workflows: from each, legal
// calls lead to an end. Workflows with criteria are left out, because generated criteria
// can contradict each other.
func TestNoRunGetsStuck(t *testing.T) {
	t.Parallel()
	for name, seed := range testSeeds(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var total enginetest.Exploration
			explored, most := 0, uint64(300/raceSlowdown)
			if name == "new" { // in the nightly tests
				most *= 10
			}
			for i := range most {
				d := seeded{rand.New(rand.NewPCG(seed, i))}
				def := drawDefinition(d)
				for _, s := range def.allSteps() {
					s.criteria = nil
				}
				x := enginetest.Explorer{
					Flow:    engine.Compile(parseDefinition(reproduction{t, fmt.Sprintf("seed %d: ", seed)}, def.marshalDefinition()).Steps),
					Starts:  []map[string]any{nil, withoutServerVars(drawVars(d, 4), def), withoutServerVars(drawVars(d, 9), def)},
					Outputs: []string{"worked"}, Values: assignmentsOf, MaxStates: 100,
				}
				r := x.Explore()
				explored++
				total.States, total.Ends, total.Open, total.Cycling = total.States+r.States, total.Ends+r.Ends, total.Open+r.Open, total.Cycling+r.Cycling
				if r.Stuck != "" || r.DeadEnds > 0 {
					t.Errorf("GUIDEWAY_CHEAT_SEED=%d, definition %d: %d dead ends; no way to an end: %s\nof %s", seed, i, r.DeadEnds, r.Stuck, def.marshalDefinition())
				}
			}
			if total.Cycling > 0 {
				t.Errorf("%d states are in cycles", total.Cycling)
			}
			t.Logf("seed %d: %d definitions explored, %d states, %d ends, %d not explored", seed, explored, total.States, total.Ends, total.Open)
		})
	}
}

// assignmentsOf returns contexts that set the variable at a path to typical values.
func assignmentsOf(path string) []map[string]any {
	root, _, _ := strings.Cut(path, ".")
	values := []any{"large", "2", 0.0, 2.0, true, false, nil}
	if slices.Contains(listNames(), root) {
		values = []any{[]any{}, []any{"a.go", "b.go"}, nil}
	}
	contexts := make([]map[string]any, len(values))
	for i, v := range values {
		contexts[i] = map[string]any{root: v}
	}
	return contexts
}
