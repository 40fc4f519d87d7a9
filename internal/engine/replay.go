package engine

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// loopProgress is the progress of one loop during a stateless call.
type loopProgress struct {
	// round is the 1-based current round, or 0 before the loop starts. After the end it is
	// the number of rounds.
	round int
	// before is the number of body completions in earlier rounds.
	before int
	// done is set if the loop ended or was skipped.
	done bool
	// at is the body step that the round asks for; nil unless the loop is active.
	at *steps.Step
	// list is the list of a forEach loop.
	list []any
	// warnings are the warnings for the caller.
	warnings []string
}

// replay rebuilds the progress of every loop from completed step IDs and from the loop
// state that the caller echoed.
//
// It reads the list in order; each loop, in document order, consumes the IDs of its body. A
// round consumes each body step at most once: a repeated ID starts the next round, and so
// does an ID whose condition holds only in a later round. A body step without a condition
// must be in its round: if the list contains it too late, it is moved forward, and if it is
// missing, the round waits for it regardless of the rest of the list. So neither a missing
// step nor the order of the list can end a round early.
type replay struct {
	p *Program
	// callerVars are the caller's variables; vars looks them up.
	callerVars map[string]any
	vars       expr.Lookup
	// completed is the caller's list of IDs; done contains the same IDs as a set.
	completed []string
	done      map[string]bool
	// used marks completions of body steps that a loop has consumed.
	used []bool
	// echoed is the loop state from the caller.
	echoed map[string]loopHint
	loops  map[string]*loopProgress
}

func newReplay(p *Program, completed []string, context map[string]any) *replay {
	own := p.callerVars(context)
	r := &replay{
		p: p, callerVars: own, vars: expr.Map(own),
		completed: completed, used: make([]bool, len(completed)),
		done:  make(map[string]bool, len(completed)),
		loops: make(map[string]*loopProgress),
	}
	// A walk without completed steps restarts, even if the context contains the state of an
	// earlier walk.
	if len(completed) > 0 {
		r.echoed = readLoopState(context)
	}
	for _, id := range completed {
		r.done[id] = true
	}
	for _, it := range p.items {
		if it.isLoop() {
			r.loops[it.step.ID] = r.rebuildLoop(it)
		}
	}
	return r
}

// rebuildLoop rebuilds the progress of one loop. A loop that has not started keeps round 0.
func (r *replay) rebuildLoop(it *item) *loopProgress {
	echo := r.echoed[it.step.ID]
	lp := &loopProgress{warnings: echo.warnings}
	if echo.done || r.done[it.step.ID] {
		lp.done, lp.round, lp.before = true, echo.iteration, echo.before
		r.markUsed(it, echo.before)
		return lp
	}
	mine := r.bodyCompletions(it)
	if echo.iteration == 0 && len(mine) == 0 {
		return lp
	}
	if echo.iteration > 0 && echo.iteration <= it.step.Loop.MaxIterations {
		lp.round = echo.iteration
		// A caller that drops the IDs of earlier rounds sends fewer than before; the
		// remaining IDs then belong to this round.
		if len(mine) >= echo.before {
			lp.before = echo.before
			mine = mine[echo.before:]
		}
	} else {
		lp.round = 1
	}
	r.advanceRounds(it, lp, mine)
	r.markUsed(it, lp.before)
	return lp
}

// enterLoop starts a loop.
func (r *replay) enterLoop(it *item) *loopProgress {
	lp := r.loops[it.step.ID]
	lp.round = 1
	r.advanceRounds(it, lp, nil)
	return lp
}

// bodyCompletions returns the unused completions of the loop's body. If a later loop has
// the same body, it stops at the first completion of an item after this loop.
func (r *replay) bodyCompletions(it *item) []string {
	var ids []string
	for i, id := range r.completed {
		switch {
		case it.inBody[id] && !r.used[i]:
			ids = append(ids, id)
		case it.shared && len(ids) > 0 && r.belongsAfter(it, id):
			return ids
		}
	}
	return ids
}

// markUsed marks the first n completions of the loop's body, so that a later loop with the
// same body does not count them again.
func (r *replay) markUsed(it *item, n int) {
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

// belongsAfter reports whether an ID belongs to an item after the loop and not to the loop.
func (r *replay) belongsAfter(it *item, id string) bool {
	if it.inBody[id] {
		return false
	}
	return slices.ContainsFunc(r.p.items[it.index+1:], func(later *item) bool {
		return later.step.ID == id || later.inBody[id]
	})
}

// leftLoop reports whether an item after the loop was completed after the last completion
// of its body. Then the loop has ended, and its variables may have been reused since.
func (r *replay) leftLoop(it *item) bool {
	for i := len(r.completed) - 1; i >= 0; i-- {
		if it.inBody[r.completed[i]] {
			return false
		}
		if r.belongsAfter(it, r.completed[i]) {
			return true
		}
	}
	return false
}

// advanceRounds replays the rounds from lp.round until a round asks for a step or the loop
// ends.
func (r *replay) advanceRounds(it *item, lp *loopProgress, ids []string) {
	x := resolveBounds(it.step.Loop, r.vars)
	lp.list = x.list
	if x.reason != "" {
		lp.endLoop(x.reason)
		return
	}
	ids = slices.Clone(ids)
	for {
		if ok, warning := r.takesRound(it, lp, x, len(ids) > 0); !ok {
			lp.endLoop(warning)
			return
		}
		at, n := r.fillRound(it, lp, &ids)
		if at != nil {
			lp.at = at
			return
		}
		lp.before += n
		lp.round++
	}
}

func (lp *loopProgress) endLoop(warning string) {
	lp.done, lp.at = true, nil
	lp.round--
	if warning != "" && !slices.Contains(lp.warnings, warning) {
		lp.warnings = append(lp.warnings, warning)
	}
}

// takesRound reports whether the loop runs the current round, with a warning if only its
// maximum stops it. The condition is not evaluated for a round with completions, because
// that round has started.
func (r *replay) takesRound(it *item, lp *loopProgress, x loopBounds, worked bool) (ok bool, warning string) {
	l := it.step.Loop
	if x.rounds >= 0 && lp.round > x.rounds {
		return false, ""
	}
	if !worked && !r.wantsRound(it, lp) {
		return false, ""
	}
	if lp.round > l.MaxIterations {
		return false, maxReachedText(l)
	}
	return true, ""
}

// wantsRound reports whether a loop runs a round without completions. If the caller echoes
// no state, a loop that was left does not resume.
func (r *replay) wantsRound(it *item, lp *loopProgress) bool {
	l := it.step.Loop
	fixed := l.Type == steps.LoopFor && l.CountVar == ""
	if !fixed && lp.round > 1 && r.echoed[it.step.ID].iteration == 0 && r.leftLoop(it) {
		return false
	}
	if l.Type != steps.LoopWhile && l.Type != steps.LoopUntil {
		return true
	}
	return l.Condition.Holds(overlayVars(roundVars(l, lp.round, lp.list), r.vars)) == (l.Type == steps.LoopWhile)
}

// fillRound removes the IDs of the round from ids. It returns the step that the round still
// needs, or nil and the number of completions.
func (r *replay) fillRound(it *item, lp *loopProgress, ids *[]string) (at *steps.Step, took int) {
	l := it.step.Loop
	vars := overlayVars(roundVars(l, lp.round, lp.list), r.vars)
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
		// A later round has started: the step did not apply when this one ended, unless its
		// condition cannot have changed.
		if len(*ids) > 0 && readsCaller(l, b.RunCondition) {
			continue
		}
		return b, 0
	}
	return nil, len(taken)
}

// belongsLater reports whether a completed body step applies in a later round but not in
// this one, because its condition reads the loop's own variables.
func (r *replay) belongsLater(it *item, lp *loopProgress, id string, vars expr.Lookup) bool {
	l := it.step.Loop
	i := slices.IndexFunc(it.body, func(b *steps.Step) bool { return b.ID == id })
	c := it.body[i].RunCondition
	if c.Holds(vars) || !readsLoop(l, c) {
		return false
	}
	last := l.MaxIterations
	if x := resolveBounds(l, r.vars); x.rounds >= 0 {
		last = min(last, x.rounds)
	}
	for round := lp.round + 1; round <= last; round++ {
		if c.Holds(overlayVars(roundVars(l, round, lp.list), r.vars)) {
			return true
		}
	}
	return false
}

// readsLoop reports whether a condition reads a variable of the loop.
func readsLoop(l *steps.Loop, c *expr.Expr) bool {
	names := l.Variables()
	return slices.ContainsFunc(c.Variables(), func(path string) bool { return slices.Contains(names, expr.Root(path)) })
}

// readsCaller reports whether a condition reads a variable of the caller.
func readsCaller(l *steps.Loop, c *expr.Expr) bool {
	names := l.Variables()
	return slices.ContainsFunc(c.Variables(), func(path string) bool { return !slices.Contains(names, expr.Root(path)) })
}
