package phases

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
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

// lintGraph reports unreachable phases, and phases from which a run never ends.
func (l *linter) lintGraph(at shape.Place) {
	first, ok := l.graph.numbers[l.w.InitialPhase]
	if !ok {
		return
	}
	reached, endless := l.graph.reachableFrom([]int{first}, true), l.graph.neverEnding()
	for i, more := range l.flow.findEndless() {
		endless[i] = endless[i] || more
	}
	var caught []int
	for i := range l.w.Phases {
		switch {
		case !reached[i]:
			fix := "add a transition, a branch or an answer that leads to the phase, or remove the phase"
			if i > 0 && l.w.Phases[i-1].Terminal() && reached[i-1] {
				fix = fmt.Sprintf("if '%s' follows '%s', add {\"to\": \"%s\", \"isDefault\": true} to the transitions of '%s'", l.w.Phases[i].ID, l.w.Phases[i-1].ID, l.w.Phases[i].ID, l.w.Phases[i-1].ID)
			}
			l.Warnf(at.Index(i), CodeUnreachable, fix, "No path leads to phase '%s'.", l.w.Phases[i].ID)
		case endless[i]:
			caught = append(caught, i)
		}
	}
	if len(caught) == 0 {
		return
	}
	const named = 5
	what := shape.Quoted(l.graph.idsOf(caught[:min(len(caught), named)]))
	if len(caught) > named {
		what += fmt.Sprintf(" and %d more", len(caught)-named)
	}
	l.Warnf(at.Index(caught[0]), CodeEndless, "add a final phase without transitions and decisions, and a transition to it",
		"A run that reaches %s never ends: no path from there leads to a final phase.", what)
}

// lintSkips checks the phases that options skip.
func (l *linter) lintSkips(at shape.Place) {
	var skipped []int
	alone := false
	for i := range l.w.Phases {
		for j := range l.w.Phases[i].Checkpoints {
			for _, option := range l.w.Phases[i].Checkpoints[j].Options {
				some := l.graph.indicesOf(option.Effect.SkipPhases)
				alone = alone || l.graph.skipCycle(some) != nil
				skipped = append(skipped, some...)
			}
		}
	}
	slices.Sort(skipped)
	skipped = slices.Compact(skipped)
	for _, i := range skipped {
		p := &l.w.Phases[i]
		if !p.Terminal() && l.graph.defaultTarget(p) < 0 {
			l.Warnf(at.Index(i), CodeSkipEnds, "give one transition or branch of the phase \"isDefault\": true",
				"Phase '%s' can be skipped and has no default transition: if none of its conditions is true, a run that skips it waits for a variable to change.", p.ID)
		}
	}
	if circle := l.graph.skipCycle(skipped); circle != nil && !alone {
		l.Warnf(at.Index(circle[0]), CodeSkipCycle, "let the default transition of one of the skipped phases lead to a phase that is not skipped",
			"If answers skip all of %s, their default transitions form a cycle and the run never ends.", shape.QuotedAll(l.graph.idsOf(circle)))
	}
}

// lintExits checks the decisions and transitions of a phase.
func (l *linter) lintExits(at shape.Place, p *Phase) {
	moved := ""
	for i := range p.Decisions {
		d, one := &p.Decisions[i], at.Key("decisions").Index(i)
		l.lintGuide(one.Key("guide"), d.Guide)
		if moved != "" {
			l.Warnf(one, CodeShadowed, fmt.Sprintf("move the branches of '%s' before '%s', or remove '%s'", d.ID, moved, d.ID), "Decision '%s' is never reached: decision '%s' before it always takes a branch.", d.ID, moved)
		}
		l.lintDecision(one.Key("branches"), d)
		if moved == "" && l.alwaysMoves(d) {
			moved = d.ID
		}
	}
	if moved != "" && len(p.Transitions) > 0 {
		l.Warnf(at.Key("transitions"), CodeShadowed, "remove the transitions, or remove the default of the decision",
			"The transitions of phase '%s' are never used: decision '%s' comes before them and always takes a branch.", p.ID, moved)
	}
	l.lintTransitions(at.Key("transitions"), p)
	values := l.flow.exits[p]
	switch {
	case moved != "" || p.Terminal():
	case values != nil && len(l.flow.targets(p, values)) == 0:
		l.Errorf(at, CodeStuck, "add a transition with \"isDefault\": true, or change the conditions",
			"A run that reaches the end of phase '%s' stops there: none of its branches and transitions can apply.", p.ID)
	case !l.alwaysLeaves(p):
		l.Warnf(at, CodeStuck, "add a transition with \"isDefault\": true",
			"Phase '%s' has no default transition: if none of its conditions is true, a run waits there for a variable to change.", p.ID)
	}
}

// alwaysMoves reports whether a decision always selects a branch: it has a default, or
// branches that a person chooses from, or its conditions cover all cases.
func (l *linter) alwaysMoves(d *Decision) bool {
	conditions := make([]*expr.Expr, 0, len(d.Branches))
	for _, b := range d.Branches {
		if b.IsDefault || b.Condition == nil {
			return true
		}
		conditions = append(conditions, b.Condition)
	}
	return l.coversAll(conditions)
}

// alwaysLeaves reports whether the decisions and transitions always leave the phase.
func (l *linter) alwaysLeaves(p *Phase) bool {
	var conditions []*expr.Expr
	for i := range p.Decisions {
		for _, b := range p.Decisions[i].Branches {
			conditions = append(conditions, b.Condition)
		}
	}
	for _, t := range p.Transitions {
		if t.IsDefault || t.Condition == nil {
			return true
		}
		conditions = append(conditions, t.Condition)
	}
	return l.coversAll(conditions)
}

// lintDecision checks the branches of a decision.
func (l *linter) lintDecision(at shape.Place, d *Decision) {
	fallback := ""
	for i := range d.Branches {
		if b := &d.Branches[i]; b.IsDefault {
			if fallback != "" {
				l.Warnf(at.Index(i).Key("isDefault"), CodeDefaultTwice, "keep one default", "Decision '%s' has two defaults; only '%s' is used.", d.ID, fallback)
				continue
			}
			fallback = b.ID
		}
	}
	var before []*expr.Expr
	for i := range d.Branches {
		b, one := &d.Branches[i], at.Index(i)
		what := fmt.Sprintf("branch '%s' of decision '%s'", b.ID, d.ID)
		if b.Condition == nil {
			if !b.IsDefault && fallback != "" {
				l.Warnf(one, CodeBranchNever, fmt.Sprintf("give the branch a condition, or remove \"isDefault\" from '%s', so that a person chooses if no condition is true", fallback),
					"%s is never taken: it has no condition, and '%s' is the default.", shape.Capital(what), fallback)
			}
			continue
		}
		l.lintConditionalExit(one, b.Condition, before, what, b.IsDefault)
		before = append(before, b.Condition)
	}
}

// lintTransitions checks the transitions of a phase.
func (l *linter) lintTransitions(at shape.Place, p *Phase) {
	fallback, taken := "", ""
	var before []*expr.Expr
	for i := range p.Transitions {
		t, one := &p.Transitions[i], at.Index(i)
		what := fmt.Sprintf("the transition of phase '%s' to '%s'", p.ID, t.To)
		if t.IsDefault && fallback != "" {
			l.Warnf(one.Key("isDefault"), CodeDefaultTwice, "keep one default", "Phase '%s' has two default transitions; only the one to '%s' is used.", p.ID, fallback)
		} else if t.IsDefault {
			fallback = t.To
		}
		switch {
		case taken != "":
			l.Warnf(one, CodeShadowed, fmt.Sprintf("move the transition to '%s' before the transition to '%s', or mark the transition to '%s' as the default", t.To, taken, taken),
				"%s is never taken: the transition to '%s' before it has no condition and is always taken.", shape.Capital(what), taken)
		case t.Condition != nil:
			l.lintConditionalExit(one, t.Condition, before, what, t.IsDefault)
			before = append(before, t.Condition)
		case !t.IsDefault:
			taken = t.To
		}
	}
}

// lintConditionalExit checks a conditional branch or transition that follows others.
func (l *linter) lintConditionalExit(at shape.Place, c *expr.Expr, before []*expr.Expr, what string, isDefault bool) {
	if l.lintCondition(at.Key("condition"), c, "the condition of "+what) || isDefault || !l.isShadowed(c, before) {
		return
	}
	l.Warnf(at, CodeShadowed, "move the condition before the earlier conditions, or make the earlier conditions narrower",
		"%s is never taken: whenever its condition is true, an earlier condition is also true.", shape.Capital(what))
}
