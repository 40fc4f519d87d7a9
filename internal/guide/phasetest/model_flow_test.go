package phasetest

import (
	"maps"
	"slices"
)

// repeat goes through a loop. It says false where the rest of the phase was
// declined.
func (w *walker) repeat(ph *phase, l *loop) bool {
	var list []any
	for l.kind == "forEach" {
		value, _, _ := lookup(w.lookup).path(l.over)
		var ok bool
		if list, ok = value.([]any); ok || value == nil && w.def.owns(root(l.over)) {
			break // what only the server sets, and has not set, is no list to wait for
		}
		w.wait(place{id: l.id(), title: l.title(), needs: []string{l.over}, seen: []named{l.named}, why: "loop"})
	}
	if len(l.steps) == 0 {
		return true
	}
	defer func() { w.loop, w.round, w.item, w.list = nil, 0, nil, nil }()
	for round := 1; round <= l.most && (l.kind != "forEach" || round <= len(list)); round++ {
		w.list = list
		if !w.goesOn(l, round) {
			return true
		}
		w.loop, w.round, w.item = l, round, float64(round)
		if l.kind == "forEach" {
			w.item = list[round-1]
		}
		for i, s := range l.steps {
			if i > 0 && w.breaks(l) {
				return true
			}
			if !w.step(ph, s) {
				return false
			}
		}
	}
	return true
}

// rounds is the length of the list that a loop goes through.
func (w *walker) rounds() int { return len(w.list) }

// breaks says whether a loop's break condition holds; one that waits for a
// variable does not.
func (w *walker) breaks(l *loop) bool { return l.stop != nil && l.stop.decide(w.lookup) == yes }

// goesOn waits until it is known whether there is another round. The break
// condition and that of a doWhile see the round before it, that of a while the
// round itself.
func (w *walker) goesOn(l *loop, round int) bool {
	for {
		if round > 1 && w.breaks(l) {
			return false
		}
		if l.kind == "forEach" || l.kind == "doWhile" && round == 1 {
			return true
		}
		scope := lookup(w.lookup)
		if l.kind == "while" && l.variable != "" {
			scope = over(map[string]any{l.variable: float64(round)}, scope)
		}
		switch l.when.decide(scope) {
		case yes:
			return true
		case no:
			return false
		}
		w.wait(place{id: l.id(), title: l.title(), needs: l.when.needs(scope), seen: []named{l.named}, why: "loop"})
	}
}

// checkpoint asks, and gives the option that was chosen; nil if it was declined.
func (w *walker) checkpoint(c *checkpoint) *option {
	w.tell(c.named)
	p := place{
		kind: "gate", status: "waiting", id: c.id(), title: c.title(), human: c.human || w.people, declinable: c.optional,
		seen: []named{c.named}, why: "checkpoints",
	}
	for _, o := range c.options {
		w.tell(o.named)
		p.options = append(p.options, o.id())
		p.seen = append(p.seen, o.named)
	}
	answer := w.ask(p).answer
	if answer.decline {
		return nil
	}
	for _, o := range c.options {
		if o.id() == answer.option {
			for _, path := range slices.Sorted(maps.Keys(o.sets)) {
				w.set(assigned(w.vars, path, o.sets[path]))
			}
			for _, n := range o.skips {
				w.skips[n] = true
			}
			return o
		}
	}
	panic("an option that there is not was accepted")
}

// leads gives the phase that decisions and transitions lead to: decisions first,
// in order, then transitions. While the run waits, all of them are judged again
// with each variable that comes. A phase that has neither is the end.
func (w *walker) leads(ph *phase) int {
	if len(ph.ways) == 0 && len(ph.decisions) == 0 {
		return finish
	}
	for {
		to, p := w.decisions(ph)
		if to == nowhere && p.needs == nil {
			to, p = w.transitions(ph)
		}
		if to != nowhere {
			return to
		}
		w.wait(p)
	}
}

// decisions takes the first decision that moves; a place with needs is where one
// waits.
func (w *walker) decisions(ph *phase) (to int, p place) {
	for _, d := range ph.decisions {
		b, needs := choose(w.lookup, d)
		if b == nil && needs == nil {
			b = w.offer(d)
		}
		if b != nil {
			return b.to, p
		}
		if needs != nil {
			return nowhere, place{id: d.id(), title: d.title(), needs: needs, seen: []named{d.named}, why: "decisions"}
		}
	}
	return nowhere, p
}

// choose decides a decision by variables; needs are those that it waits for.
func choose(vars lookup, d *decision) (b *branch, needs []string) {
	waits := false
	for _, b := range d.branches {
		if b.when == nil {
			continue
		}
		verdict := b.when.decide(vars)
		if verdict == yes && !waits {
			return b, nil
		}
		if verdict == maybe {
			waits = true
			needs = join(needs, b.when.needs(vars))
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

// offer asks for a branch that has neither condition nor default; nil where
// there is none.
func (w *walker) offer(d *decision) *branch {
	p := place{kind: "gate", status: "waiting", id: d.id(), title: d.title(), human: w.people, seen: []named{d.named}, why: "decisions"}
	byID := map[string]*branch{}
	for _, b := range d.branches {
		if b.when == nil && !b.fallback {
			p.options = append(p.options, b.id())
			p.seen = append(p.seen, b.named)
			byID[b.id()] = b
		}
	}
	if len(p.options) == 0 {
		return nil
	}
	w.tell(d.named)
	for _, b := range byID {
		w.tell(b.named)
	}
	return byID[w.ask(p).answer.option]
}

// transitions gives the phase that the transitions lead to: those that apply in
// order, then the default. Where there is none the run waits.
func (w *walker) transitions(ph *phase) (to int, p place) {
	if len(ph.ways) == 0 {
		d := ph.decisions[len(ph.decisions)-1]
		return nowhere, place{id: d.id(), title: d.title(), needs: ph.reads(), unordered: true, seen: []named{d.named}, why: "no way on"}
	}
	p = place{id: ph.id(), title: ph.title(), why: "transitions"}
	for _, t := range ph.ways {
		if t.when == nil && t.fallback {
			continue
		}
		verdict := t.when.decide(w.lookup)
		if verdict == yes && p.needs == nil {
			return t.to, p
		}
		if verdict == maybe {
			p.needs = join(p.needs, t.when.needs(w.lookup))
		}
	}
	if p.needs != nil {
		return nowhere, p
	}
	for _, t := range ph.ways {
		if t.fallback {
			return t.to, p
		}
		p.needs = join(p.needs, t.when.reads())
	}
	return nowhere, p
}

// reads are the variables that decide where a phase leads.
func (ph *phase) reads() []string {
	var names []string
	for _, d := range ph.decisions {
		for _, b := range d.branches {
			names = join(names, b.when.reads())
		}
	}
	for _, t := range ph.ways {
		names = join(names, t.when.reads())
	}
	return names
}

// onward passes through the phases that answers have skipped, and waits where
// one of them does not lead on yet.
func (w *walker) onward(to int) int {
	for n := 0; to >= 0 && w.skips[to]; n++ {
		if n > len(w.def.phases) {
			w.stuck("a circle of skipped phases")
		}
		ph := w.def.phases[to]
		for to = w.wayOn(ph); to == nowhere; to = w.wayOn(ph) {
			w.tell(ph.named)
			w.wait(place{id: w.in.id(), title: w.in.title(), needs: ph.reads(), unordered: true, seen: []named{ph.named}, why: "skipped"})
			n = 0
		}
	}
	return to
}

// wayOn is where a phase that is skipped leads to: its own default way on
// (DESIGN 4), else what applies now.
func (w *walker) wayOn(ph *phase) int {
	for _, d := range ph.decisions {
		for _, b := range d.branches {
			if b.fallback {
				return b.to
			}
		}
	}
	for _, t := range ph.ways {
		if t.fallback || t.when == nil {
			return t.to
		}
	}
	for _, d := range ph.decisions {
		for _, b := range d.branches {
			if b.when != nil && b.when.decide(w.lookup) == yes {
				return b.to
			}
		}
	}
	for _, t := range ph.ways {
		if t.when.decide(w.lookup) == yes {
			return t.to
		}
	}
	if len(ph.decisions)+len(ph.ways) == 0 {
		return finish
	}
	return nowhere
}
