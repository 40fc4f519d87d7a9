package phases

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// phaseGraph is the graph of the phases of a workflow by their indices. Unknown ids have no
// edges.
type phaseGraph struct {
	w       *Workflow
	numbers map[string]int
	// targets are the possible next phases of each phase for any values of the variables.
	targets [][]int
}

// newGraph returns the phase graph of a workflow.
func newGraph(w *Workflow, numbers map[string]int) *phaseGraph {
	g := &phaseGraph{w: w, numbers: numbers, targets: make([][]int, len(w.Phases))}
	for i := range w.Phases {
		g.targets[i] = g.targetsOf(&w.Phases[i])
	}
	return g
}

// targetsOf returns the unique targets of a phase.
func (g *phaseGraph) targetsOf(p *Phase) []int {
	var ways []int
	seen := map[int]bool{}
	add := func(id string) {
		if n, ok := g.numbers[id]; ok && !seen[n] {
			seen[n] = true
			ways = append(ways, n)
		}
	}
	for i := range p.Checkpoints {
		for j := range p.Checkpoints[i].Options {
			add(p.Checkpoints[i].Options[j].Effect.TransitionTo)
		}
	}
	for i := range p.Decisions {
		for j := range p.Decisions[i].Branches {
			add(p.Decisions[i].Branches[j].TransitionTo)
		}
	}
	for i := range p.Transitions {
		add(p.Transitions[i].To)
	}
	return ways
}

// reachableFrom marks the phases that can be reached from starts. It includes the starts
// themselves if an edge leads back to them, or if self is set.
func (g *phaseGraph) reachableFrom(starts []int, self bool) []bool {
	seen := make([]bool, len(g.targets))
	queue := slices.Clone(starts)
	if self {
		for _, start := range starts {
			seen[start] = true
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range g.targets[at] {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return seen
}

// neverEnding marks the phases from which a run cannot end.
func (g *phaseGraph) neverEnding() []bool {
	back := make([][]int, len(g.targets))
	var ends []int
	for i := range g.targets {
		if ends = append(ends, i); !g.w.Phases[i].canEndRun() {
			ends = ends[:len(ends)-1]
		}
		for _, to := range g.targets[i] {
			back[to] = append(back[to], i)
		}
	}
	reached := (&phaseGraph{targets: back}).reachableFrom(ends, true)
	for i := range reached {
		reached[i] = !reached[i]
	}
	return reached
}

// canEndRun reports whether a run can end in the phase: it is terminal, and no required
// checkpoint has only options that lead to other phases.
func (p *Phase) canEndRun() bool {
	return p.Terminal() && !slices.ContainsFunc(p.Checkpoints, func(c Checkpoint) bool {
		return c.Required && !slices.ContainsFunc(c.Options, func(o Option) bool { return o.Effect.TransitionTo == "" })
	})
}

// defaultTarget returns the index of the phase that a run enters next if no condition
// holds. It is the target of the first default branch, otherwise of the default transition,
// otherwise of the first unconditional transition. If there is none of these, it returns
// -1.
func (g *phaseGraph) defaultTarget(p *Phase) int {
	id := ""
	for i := range p.Decisions {
		for _, b := range p.Decisions[i].Branches {
			if b.IsDefault && id == "" {
				id = b.TransitionTo
			}
		}
	}
	for _, t := range p.Transitions {
		if t.IsDefault && id == "" {
			id = t.To
		}
	}
	for _, t := range p.Transitions {
		if t.Condition == nil && id == "" {
			id = t.To
		}
	}
	if n, ok := g.numbers[id]; ok {
		return n
	}
	return -1
}

// skipCycle returns the skipped phases whose default targets form a cycle, or nil.
func (g *phaseGraph) skipCycle(skipped []int) []int {
	// Each phase is visited once: 0 means not visited; other values are the number of the
	// walk that visited it.
	walked := make(map[int]int, len(skipped))
	for _, n := range skipped {
		walked[n] = 0
	}
	for walk, start := range skipped {
		var path []int
		for at := start; ; at = g.defaultTarget(&g.w.Phases[at]) {
			by, ok := walked[at]
			if ok && by == walk+1 {
				return path[slices.Index(path, at):]
			}
			if !ok || by > 0 {
				break
			}
			walked[at] = walk + 1
			path = append(path, at)
		}
	}
	return nil
}

// indicesOf returns the indices of phases by id.
func (g *phaseGraph) indicesOf(ids []string) []int {
	var out []int
	for _, id := range ids {
		if n, ok := g.numbers[id]; ok {
			out = append(out, n)
		}
	}
	return out
}

// idsOf returns the ids of phases by index.
func (g *phaseGraph) idsOf(positions []int) []string {
	return lists.Map(positions, func(n int) string { return g.w.Phases[n].ID })
}
