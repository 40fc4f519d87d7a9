package phases

import "slices"

// graph is the ways between the phases of a workflow, by their positions. Ids
// that are not there lead nowhere.
type graph struct {
	w       *Workflow
	numbers map[string]int
	// ways are where each phase can lead, conditions left aside.
	ways [][]int
}

// newGraph makes the graph of a workflow.
func newGraph(w *Workflow, numbers map[string]int) *graph {
	g := &graph{w: w, numbers: numbers, ways: make([][]int, len(w.Phases))}
	for i := range w.Phases {
		g.ways[i] = g.waysOf(&w.Phases[i])
	}
	return g
}

// waysOf gives where a phase can lead, each once.
func (g *graph) waysOf(p *Phase) []int {
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

// from marks the phases that can be reached from some, these included only where
// a way leads back to them, or if self is set.
func (g *graph) from(starts []int, self bool) []bool {
	seen := make([]bool, len(g.ways))
	queue := slices.Clone(starts)
	if self {
		for _, start := range starts {
			seen[start] = true
		}
	}
	for len(queue) > 0 {
		at := queue[0]
		queue = queue[1:]
		for _, to := range g.ways[at] {
			if !seen[to] {
				seen[to] = true
				queue = append(queue, to)
			}
		}
	}
	return seen
}

// endless marks the phases from which no way leads to the end of a run.
func (g *graph) endless() []bool {
	back := make([][]int, len(g.ways))
	var ends []int
	for i := range g.ways {
		if ends = append(ends, i); !g.w.Phases[i].ends() {
			ends = ends[:len(ends)-1]
		}
		for _, to := range g.ways[i] {
			back[to] = append(back[to], i)
		}
	}
	reached := (&graph{ways: back}).from(ends, true)
	for i := range reached {
		reached[i] = !reached[i]
	}
	return reached
}

// ends says whether a run can end in the phase: it is terminal, and no checkpoint
// leads away whatever the answer is.
func (p *Phase) ends() bool {
	return p.Terminal() && !slices.ContainsFunc(p.Checkpoints, func(c Checkpoint) bool {
		return c.Required && !slices.ContainsFunc(c.Options, func(o Option) bool { return o.Effect.TransitionTo == "" })
	})
}

// defaultWay is the position of the phase that follows where no condition holds:
// that of the first default branch, else of the default transition, else of one
// without a condition; -1 where there is none.
func (g *graph) defaultWay(p *Phase) int {
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

// skipCycle gives the phases, of those that are skipped, whose default ways lead
// in a circle; nil where there is no circle.
func (g *graph) skipCycle(skipped []int) []int {
	// Each phase is walked over once: 0 is not yet, else the walk that did.
	walked := make(map[int]int, len(skipped))
	for _, n := range skipped {
		walked[n] = 0
	}
	for walk, start := range skipped {
		var path []int
		for at := start; ; at = g.defaultWay(&g.w.Phases[at]) {
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

// positions gives the positions of phases by their ids.
func (g *graph) positions(ids []string) []int {
	var out []int
	for _, id := range ids {
		if n, ok := g.numbers[id]; ok {
			out = append(out, n)
		}
	}
	return out
}

// names gives the ids of phases by their positions.
func (g *graph) names(positions []int) []string {
	out := make([]string, len(positions))
	for i, n := range positions {
		out[i] = g.w.Phases[n].ID
	}
	return out
}
