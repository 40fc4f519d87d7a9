package graph_test

import (
	"os"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/catalog/graph"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// The drawing omits what the engine never does: a branch without a condition next to a
// default, nodes after a decision that always leaves the phase, and transitions after one
// that always applies.
func TestPhasesOmitUnreachableTransitions(t *testing.T) {
	t.Parallel()
	w := &phases.Workflow{InitialPhase: "a", Phases: []phases.Phase{
		{ID: "a", Name: "A", Decisions: []phases.Decision{
			{ID: "d", Name: "D", Branches: []phases.Branch{
				{ID: "offered", Label: "never offered", TransitionTo: "b"}, {ID: "default", Label: "always", TransitionTo: "b", IsDefault: true},
			}},
			{ID: "e", Name: "never asked", Branches: []phases.Branch{{ID: "x", Label: "never", TransitionTo: "a"}}},
		}, Transitions: []phases.Transition{{To: "a"}}},
		{ID: "b", Name: "B", Transitions: []phases.Transition{{To: "c"}, {To: "a", IsDefault: true}}},
		{ID: "c", Name: "C"},
	}}
	g := graph.Phases(w)
	checkComplete(t, g)
	if drawn := g.Mermaid(); strings.Contains(drawn, "never") {
		t.Errorf("an unreachable transition is drawn:\n%s", drawn)
	}
	entry := map[string]int{}
	for _, e := range g.Edges {
		entry[e.To]++
	}
	if first := g.Nodes[1].ID; entry[first] != 1 {
		t.Errorf("%d edges lead to A, want only the one from the start:\n%s", entry[first], g.Mermaid())
	}
}

// A transition from a phase to itself leads to its entry: Mermaid draws no edge from a node
// to its own frame.
func TestPhaseWithTransitionToItself(t *testing.T) {
	t.Parallel()
	loop := phases.Loop{ID: "l", Name: "L", Type: phases.LoopForEach, Over: "list", Steps: []phases.Step{{ID: "s", Name: "S"}}}
	for name, phase := range map[string]phases.Phase{
		"a loop":  {Loops: []phases.Loop{loop}},
		"a step":  {Steps: []phases.Step{{ID: "s", Name: "S"}}},
		"nothing": {},
	} {
		phase.ID, phase.Transitions = "a", []phases.Transition{{To: "a"}}
		for _, e := range graph.Phases(&phases.Workflow{InitialPhase: "a", Phases: []phases.Phase{phase}}).Edges {
			if e.To == "p1" || e.From == "p1" || strings.HasPrefix(e.From, "l") && e.From == e.To {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

// The drawing of a real workflow is complete, and it contains each of the listed elements
// once.
func TestWorkPackageIsComplete(t *testing.T) {
	t.Parallel()
	const file = "../../../../shared/corpus/phases/work-package/work-package.json"
	data, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the corpus is missing: %v", err)
	}
	g := parseGraph(t, file, data)
	checkComplete(t, g)
	refs := map[string]int{}
	for _, n := range g.Nodes {
		refs[n.Ref]++
	}
	for _, f := range g.Frames {
		refs[f.Ref]++
	}
	for _, id := range []string{"phase-1-issue-verification", "step-4-2-web-research", "checkpoint-6-5-adr", "decision-8-2-review", "loop-6-1-task-cycle", "step-6-4-assumptions"} {
		if refs[id] != 1 {
			t.Errorf("%s is drawn %d times", id, refs[id])
		}
	}
}
