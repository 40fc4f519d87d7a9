package guide

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// loopProgress is what is known of one loop while a stateless call is answered.
type loopProgress struct {
	// round is the 1-based round that the loop is in; 0 before it began. Once
	// it is done, it is the number of rounds that it had.
	round int
	// before counts the body completions that belong to earlier rounds.
	before int
	// done says that the loop ended or was passed over.
	done bool
	// at is the body step that the round asks for; nil unless the loop is
	// under way.
	at *steps.Step
	// list is the list of a forEach loop.
	list []any
	// warnings are told to the caller.
	warnings []string
}

// replay rebuilds the progress of every loop from completed step ids and from
// the loop state that the caller echoed.
//
// The list is taken in order, each loop in the order of the document taking the
// ids of its body. A round takes every body step at most once: a repeated id
// begins the next round, and so does an id whose condition holds in a later
// round only. A body step that applies without condition must be in its round:
// where the list has it too late it is pulled forward, and where it is missing
// the round stands there, whatever else the list claims. So neither leaving a
// step out nor the order of the list can end a round early.
type replay struct {
	p *Program
	// own are the caller's variables; vars looks them up.
	own  map[string]any
	vars condition.Lookup
	// completed is the caller's list, done the same as a set.
	completed []string
	done      map[string]bool
	// used marks completions of body steps that a loop has taken.
	used []bool
	// echoed is the loop state that came back from the caller.
	echoed map[string]echoedLoop
	loops  map[string]*loopProgress
}

func newReplay(p *Program, completed []string, context map[string]any) *replay {
	own := p.ownVariables(context)
	r := &replay{
		p: p, own: own, vars: condition.Map(own),
		completed: completed, used: make([]bool, len(completed)),
		done:  make(map[string]bool, len(completed)),
		loops: make(map[string]*loopProgress),
	}
	// A walk that has completed nothing begins anew, whatever state of an
	// earlier walk is in the context.
	if len(completed) > 0 {
		r.echoed = readLoopState(context)
	}
	for _, id := range completed {
		r.done[id] = true
	}
	for _, it := range p.items {
		if it.isLoop() {
			r.loops[it.step.ID] = r.loop(it)
		}
	}
	return r
}

// loop rebuilds one loop. A loop that has not begun is left at round 0.
func (r *replay) loop(it *item) *loopProgress {
	echo := r.echoed[it.step.ID]
	lp := &loopProgress{warnings: echo.warnings}
	if echo.done || r.done[it.step.ID] {
		lp.done, lp.round, lp.before = true, echo.iteration, echo.before
		r.take(it, echo.before)
		return lp
	}
	mine := r.mine(it)
	if echo.iteration == 0 && len(mine) == 0 {
		return lp
	}
	if echo.iteration > 0 && echo.iteration <= it.step.Loop.MaxIterations {
		lp.round = echo.iteration
		// A caller that drops the ids of earlier rounds from the list has
		// fewer than before; what is there then belongs to this round.
		if len(mine) >= echo.before {
			lp.before = echo.before
			mine = mine[echo.before:]
		}
	} else {
		lp.round = 1
	}
	r.advance(it, lp, mine)
	r.take(it, lp.before)
	return lp
}

// enter begins a loop that has not begun.
func (r *replay) enter(it *item) *loopProgress {
	lp := r.loops[it.step.ID]
	lp.round = 1
	r.advance(it, lp, nil)
	return lp
}

// mine are the completions that no loop has taken and that the loop's body
// knows. Where a later loop has the same body, they end where the list goes on
// to something behind this loop.
func (r *replay) mine(it *item) []string {
	var ids []string
	for i, id := range r.completed {
		switch {
		case it.inBody[id] && !r.used[i]:
			ids = append(ids, id)
		case it.shared && len(ids) > 0 && r.behind(it, id):
			return ids
		}
	}
	return ids
}

// take marks the first n completions of the loop's body, so that a later loop
// with the same body does not count them again.
func (r *replay) take(it *item, n int) {
	for i, id := range r.completed {
		if n == 0 {
			return
		}
		if it.inBody[id] && !r.used[i] {
			r.used[i] = true
			n--
		}
	}
}

// behind says whether an id belongs to an item behind the loop and not to it.
func (r *replay) behind(it *item, id string) bool {
	if it.inBody[id] {
		return false
	}
	return slices.ContainsFunc(r.p.items[it.index+1:], func(later *item) bool {
		return later.step.ID == id || later.inBody[id]
	})
}

// left says whether anything behind the loop was completed after the last
// completion of its body: then the loop has ended, and variables that it reads
// may since have been used again.
func (r *replay) left(it *item) bool {
	for i := len(r.completed) - 1; i >= 0; i-- {
		if it.inBody[r.completed[i]] {
			return false
		}
		if r.behind(it, r.completed[i]) {
			return true
		}
	}
	return false
}

// advance goes through the rounds from lp.round on until one asks for a step or
// the loop ends.
func (r *replay) advance(it *item, lp *loopProgress, ids []string) {
	x := extentOf(it.step.Loop, r.vars)
	lp.list = x.list
	if x.problem != "" {
		lp.finish(x.problem)
		return
	}
	ids = slices.Clone(ids)
	for {
		if ok, warning := r.goesOn(it, lp, x, len(ids) > 0); !ok {
			lp.finish(warning)
			return
		}
		at, n := r.round(it, lp, &ids)
		if at != nil {
			lp.at = at
			return
		}
		lp.before += n
		lp.round++
	}
}

func (lp *loopProgress) finish(warning string) {
	lp.done, lp.at = true, nil
	lp.round--
	if warning != "" && !slices.Contains(lp.warnings, warning) {
		lp.warnings = append(lp.warnings, warning)
	}
}

// goesOn says whether the loop takes the round that it is at, and the warning
// if only its maximum stops it. A round that the caller has worked on was
// begun, so its condition is not asked again.
func (r *replay) goesOn(it *item, lp *loopProgress, x extent, worked bool) (ok bool, warning string) {
	l := it.step.Loop
	if x.rounds >= 0 && lp.round > x.rounds {
		return false, ""
	}
	if !worked && !r.holdsOn(it, lp) {
		return false, ""
	}
	if lp.round > l.MaxIterations {
		return false, maximumReached(l)
	}
	return true, ""
}

// holdsOn says whether a loop wants the round that it is at, on which nobody has
// worked yet. Where the caller echoes no state, a loop that was left behind does
// not go on.
func (r *replay) holdsOn(it *item, lp *loopProgress) bool {
	l := it.step.Loop
	fixed := l.Type == steps.LoopFor && l.CountVar == ""
	if !fixed && lp.round > 1 && r.echoed[it.step.ID].iteration == 0 && r.left(it) {
		return false
	}
	if l.Type != steps.LoopWhile && l.Type != steps.LoopUntil {
		return true
	}
	return l.Condition.Holds(over(roundVars(l, lp.round, lp.list), r.vars)) == (l.Type == steps.LoopWhile)
}

// round takes from ids what belongs to the round and gives the step that it
// still asks for, or nil and the number of completions that it took.
func (r *replay) round(it *item, lp *loopProgress, ids *[]string) (at *steps.Step, took int) {
	l := it.step.Loop
	vars := over(roundVars(l, lp.round, lp.list), r.vars)
	taken := make(map[string]bool, len(it.body))
	for len(*ids) > 0 {
		id := (*ids)[0]
		if taken[id] || r.belongsLater(it, lp, id, vars) {
			break
		}
		taken[id] = true
		*ids = (*ids)[1:]
	}
	for _, b := range it.body {
		if taken[b.ID] || !b.RunCondition.Holds(vars) {
			continue
		}
		if i := slices.Index(*ids, b.ID); i >= 0 && !readsCaller(l, b.RunCondition) {
			*ids = slices.Delete(slices.Clone(*ids), i, i+1)
			taken[b.ID] = true
			continue
		}
		// A later round has begun: the step did not apply when this one ended,
		// unless its condition cannot have changed.
		if len(*ids) > 0 && readsCaller(l, b.RunCondition) {
			continue
		}
		return b, 0
	}
	return nil, len(taken)
}

// belongsLater says whether a completed body step does not apply in this round
// but in a later one, because its condition reads the loop's own variables.
func (r *replay) belongsLater(it *item, lp *loopProgress, id string, vars condition.Lookup) bool {
	l := it.step.Loop
	i := slices.IndexFunc(it.body, func(b *steps.Step) bool { return b.ID == id })
	c := it.body[i].RunCondition
	if c.Holds(vars) || !readsLoop(l, c) {
		return false
	}
	last := l.MaxIterations
	if x := extentOf(l, r.vars); x.rounds >= 0 {
		last = min(last, x.rounds)
	}
	for round := lp.round + 1; round <= last; round++ {
		if c.Holds(over(roundVars(l, round, lp.list), r.vars)) {
			return true
		}
	}
	return false
}

// readsLoop says whether a condition reads a variable of the loop.
func readsLoop(l *steps.Loop, c *condition.Expr) bool {
	names := loopVarNames(l)
	return slices.ContainsFunc(c.Variables(), func(v string) bool { return slices.Contains(names, v) })
}

// readsCaller says whether a condition reads a variable that the caller sets.
func readsCaller(l *steps.Loop, c *condition.Expr) bool {
	names := loopVarNames(l)
	return slices.ContainsFunc(c.Variables(), func(v string) bool { return !slices.Contains(names, v) })
}
