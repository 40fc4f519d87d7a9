package enginetest

import (
	"maps"
	"slices"
)

// runLoop runs a loop. It returns false if the rest of the phase was skipped.
func (w *modelRun) runLoop(ph *phase, l *loop) bool {
	var list []any
	for l.kind == "forEach" {
		value, _, _ := lookup(w.lookupVar).lookupPath(l.over)
		var ok bool
		if list, ok = value.([]any); ok || value == nil && w.def.isServerVar(rootName(l.over)) {
			break // a run does not wait for a list that only the server sets
		}
		w.waitForVars(place{id: l.elementID(), title: l.titleText(), needs: []string{l.over}, visible: []element{l.element}, part: "loop"})
	}
	if len(l.steps) == 0 {
		return true
	}
	defer func() { w.loop, w.round, w.item, w.list = nil, 0, nil, nil }()
	for round := 1; round <= l.maxRounds && (l.kind != "forEach" || round <= len(list)); round++ {
		w.list = list
		if !w.startsRound(l, round) {
			return true
		}
		w.loop, w.round, w.item = l, round, float64(round)
		if l.kind == "forEach" {
			w.item = list[round-1]
		}
		for i, s := range l.steps {
			if i > 0 && w.breakHolds(l) {
				return true
			}
			if !w.runStep(ph, s) {
				return false
			}
		}
	}
	if len(list) > l.maxRounds { // positions name the loop whose items are left out
		w.cutLoops = append(w.cutLoops, l.element)
	}
	return true
}

// roundCount returns the length of the loop's list.
func (w *modelRun) roundCount() int { return len(w.list) }

// breakHolds reports whether a loop's break condition holds; an undecided one does not.
func (w *modelRun) breakHolds(l *loop) bool {
	return l.breakWhen != nil && l.breakWhen.evaluate(w.lookupVar) == yes
}

// startsRound waits until the next round is decided. The break condition and the condition
// of a doWhile see the previous round, the condition of a while sees the next one.
func (w *modelRun) startsRound(l *loop, round int) bool {
	for {
		if round > 1 && w.breakHolds(l) {
			return false
		}
		if l.kind == "forEach" || l.kind == "doWhile" && round == 1 {
			return true
		}
		scope := lookup(w.lookupVar)
		if l.kind == "while" && l.variable != "" {
			scope = overlayVars(map[string]any{l.variable: float64(round)}, scope)
		}
		switch l.when.evaluate(scope) {
		case yes:
			return true
		case no:
			return false
		}
		w.waitForVars(place{id: l.elementID(), title: l.titleText(), needs: l.when.missingVars(scope), visible: []element{l.element}, part: "loop"})
	}
}

// askCheckpoint returns the option of the next answer, or nil if it declines.
func (w *modelRun) askCheckpoint(c *checkpoint) *option {
	w.revealTexts(c.element)
	p := place{
		kind: "gate", status: "waiting", id: c.elementID(), title: c.titleText(), human: c.human || w.humanOnly, declinable: c.optional,
		visible: []element{c.element}, part: "checkpoints",
	}
	for _, o := range c.options {
		w.revealTexts(o.element)
		p.options = append(p.options, o.elementID())
		p.visible = append(p.visible, o.element)
	}
	answer := w.nextCommand(p).answer
	if answer.decline {
		return nil
	}
	for _, o := range c.options {
		if o.elementID() == answer.option {
			for _, path := range slices.Sorted(maps.Keys(o.sets)) {
				w.setVars(setAtPath(w.vars, path, o.sets[path]))
			}
			for _, n := range o.skips {
				w.skips[n] = true
			}
			return o
		}
	}
	panic("a missing option was accepted")
}

// chooseTarget returns the phase that decisions, and then transitions, lead to. While the
// run waits, all of them are evaluated again with each new variable. A phase without
// decisions and transitions ends the run.
func (w *modelRun) chooseTarget(ph *phase) int {
	if len(ph.transitions) == 0 && len(ph.decisions) == 0 {
		return endOfRun
	}
	for {
		to, p := w.runDecisions(ph)
		if to == undecided && p.needs == nil {
			to, p = w.runTransitions(ph)
		}
		if to != undecided {
			return to
		}
		w.waitForVars(p)
	}
}

// runDecisions takes the first decision with a result. If a decision waits, the returned
// place has needs.
func (w *modelRun) runDecisions(ph *phase) (to int, p place) {
	for _, d := range ph.decisions {
		b, needs := chooseBranch(w.lookupVar, d)
		if b == nil && needs == nil {
			b = w.offerBranches(d)
		}
		if b != nil {
			return b.to, p
		}
		if needs != nil {
			return undecided, place{id: d.elementID(), title: d.titleText(), needs: needs, visible: []element{d.element}, part: "decisions"}
		}
	}
	return undecided, p
}

// chooseBranch evaluates a decision; needs are the variables that it waits for.
func chooseBranch(vars lookup, d *decision) (b *branch, needs []string) {
	waits := false
	for _, b := range d.branches {
		if b.when == nil {
			continue
		}
		verdict := b.when.evaluate(vars)
		if verdict == yes && !waits {
			return b, nil
		}
		if verdict == maybe {
			waits = true
			needs = appendMissing(needs, b.when.missingVars(vars))
		}
	}
	if waits {
		return nil, needs
	}
	for _, b := range d.branches {
		if b.fallback {
			return b, nil
		}
	}
	return nil, nil
}

// offerBranches offers the branches that are neither conditional nor the default. It
// returns nil if no branch qualifies.
func (w *modelRun) offerBranches(d *decision) *branch {
	p := place{kind: "gate", status: "waiting", id: d.elementID(), title: d.titleText(), human: w.humanOnly, visible: []element{d.element}, part: "decisions"}
	byID := map[string]*branch{}
	for _, b := range d.branches {
		if b.when == nil && !b.fallback {
			p.options = append(p.options, b.elementID())
			p.visible = append(p.visible, b.element)
			byID[b.elementID()] = b
		}
	}
	if len(p.options) == 0 {
		return nil
	}
	w.revealTexts(d.element)
	for _, b := range byID {
		w.revealTexts(b.element)
	}
	return byID[w.nextCommand(p).answer.option]
}

// runTransitions returns the target of the first transition that applies, or else of the
// default. Without a target the run waits.
func (w *modelRun) runTransitions(ph *phase) (to int, p place) {
	if len(ph.transitions) == 0 {
		d := ph.decisions[len(ph.decisions)-1]
		return undecided, place{id: d.elementID(), title: d.titleText(), needs: ph.variablesRead(), unordered: true, visible: []element{d.element}, part: "no next phase"}
	}
	p = place{id: ph.elementID(), title: ph.titleText(), part: "transitions"}
	for _, t := range ph.transitions {
		if t.when == nil && t.fallback {
			continue
		}
		verdict := t.when.evaluate(w.lookupVar)
		if verdict == yes && p.needs == nil {
			return t.to, p
		}
		if verdict == maybe {
			p.needs = appendMissing(p.needs, t.when.missingVars(w.lookupVar))
		}
	}
	if p.needs != nil {
		return undecided, p
	}
	for _, t := range ph.transitions {
		if t.fallback {
			return t.to, p
		}
		p.needs = appendMissing(p.needs, t.when.variablesRead())
	}
	return undecided, p
}

// variablesRead returns the variables that decide the phase after this one.
func (ph *phase) variablesRead() []string {
	var names []string
	for _, d := range ph.decisions {
		for _, b := range d.branches {
			names = appendMissing(names, b.when.variablesRead())
		}
	}
	for _, t := range ph.transitions {
		names = appendMissing(names, t.when.variablesRead())
	}
	return names
}

// skipPhases passes through skipped phases, and waits if the target of one is undecided.
func (w *modelRun) skipPhases(to int) int {
	for n := 0; to >= 0 && w.skips[to]; n++ {
		if n > len(w.def.phases) {
			w.waitForever("a cycle of skipped phases")
		}
		ph := w.def.phases[to]
		for to = w.skippedTarget(ph); to == undecided; to = w.skippedTarget(ph) {
			w.revealTexts(ph.element)
			w.waitForVars(place{id: w.in.elementID(), title: w.in.titleText(), needs: ph.variablesRead(), unordered: true, visible: []element{ph.element}, part: "skipped"})
			n = 0
		}
	}
	return to
}

// skippedTarget returns the target of a skipped phase: the target of its default branch or
// transition, or else of the first branch or transition that applies.
func (w *modelRun) skippedTarget(ph *phase) int {
	for _, d := range ph.decisions {
		for _, b := range d.branches {
			if b.fallback {
				return b.to
			}
		}
	}
	for _, t := range ph.transitions {
		if t.fallback || t.when == nil {
			return t.to
		}
	}
	for _, d := range ph.decisions {
		for _, b := range d.branches {
			if b.when != nil && b.when.evaluate(w.lookupVar) == yes {
				return b.to
			}
		}
	}
	for _, t := range ph.transitions {
		if t.when.evaluate(w.lookupVar) == yes {
			return t.to
		}
	}
	if len(ph.decisions)+len(ph.transitions) == 0 {
		return endOfRun
	}
	return undecided
}
