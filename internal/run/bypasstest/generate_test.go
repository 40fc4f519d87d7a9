package bypasstest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// dice is where chance comes from: a seed, or rapid, which shrinks what fails.
type dice interface {
	// below gives a number from 0 up to n, exclusively.
	below(n int) int
}

type seeded struct{ *rand.Rand }

func (s seeded) below(n int) int { return s.IntN(n) }

type drawn struct{ *rapid.T }

func (d drawn) below(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// one in n.
func oneIn(d dice, n int) bool { return d.below(n) == n-1 }

func pick[T any](d dice, list ...T) T { return list[d.below(len(list))] }

// The variables that conditions, counts and lists read.
func scalarNames() []string { return []string{"size", "risk", "tries", "ready"} }
func listNames() []string   { return []string{"files", "parts"} }

func scalars() []any {
	return []any{"large", "Large ", " small", "yes", "no", "2", "0", 0.0, 1.0, 2.0, 3.0, true, false, nil, ""}
}

func lists() []any {
	return []any{[]any{}, []any{"a.go"}, []any{"a.go", "b.go"}, []any{map[string]any{"name": "a"}, "b", 3.0}}
}

// drawDefinition makes a definition.
func drawDefinition(d dice) *definition { return draw(d, false) }

// draw makes a definition; in a tame one no condition reads the variables of a
// loop that it is not in, and no loops have one body.
func draw(d dice, tame bool) *definition {
	g := &generator{dice: d, tame: tame, def: &definition{id: "random"}, serial: 100 * d.below(90)}
	if oneIn(d, 2) {
		g.def.meta = "Hold to this throughout."
	}
	for i := range d.below(3) {
		g.def.functions = append(g.def.functions, function{fmt.Sprintf("shared%d", i), fmt.Sprintf("Shared SHARED-%d-.", i)})
	}
	for range 1 + d.below(7) {
		if oneIn(d, 3) {
			g.def.items = append(g.def.items, g.loop())
		} else {
			g.def.items = append(g.def.items, g.step(true))
		}
	}
	return g.def
}

// generator numbers the steps of one definition.
type generator struct {
	dice
	def    *definition
	tame   bool
	serial int
	// loopNames are the variables of loops so far, readable by conditions.
	loopNames []string
}

func (g *generator) next() *step {
	g.serial++
	return &step{id: fmt.Sprintf("s-%d-id", g.serial), serial: g.serial}
}

func (g *generator) step(conditional bool) *step {
	s := g.next()
	if conditional && oneIn(g, 3) {
		s.when = g.test(2)
	}
	g.gated(s, 4)
	if oneIn(g, 2) {
		s.criteria = g.criteria()
		g.name(s.criteria, s.secret())
	}
	s.template = pick(g, "", "", " for {{size}}", " in {{currentIteration}}", " on {{ currentItem }}", " on {{file}}", " with {{files[0]}} of {{files.length}}", " next {{tries + 1}}", " {{risk ? 1 : 2}}")
	s.role, s.guidance = oneIn(g, 4), oneIn(g, 4)
	for _, f := range g.def.functions {
		if oneIn(g, 3) {
			s.refers = append(s.refers, f.name)
		}
	}
	if oneIn(g, 6) {
		s.functions = []function{{"own", "Own " + s.secret()}}
	}
	return s
}

// gated draws a confirmation, in one of rarely cases.
func (g *generator) gated(s *step, rarely int) {
	switch g.below(rarely * 4) {
	case 0:
		s.confirm = &confirmation{}
	case 1:
		s.confirm = &confirmation{g.test(1)}
	case 2:
		s.human = true
	case 3:
		s.human, s.confirm = true, &confirmation{pick(g, nil, g.test(1))}
	}
}

func (g *generator) loop() *step {
	s := g.next()
	l := &loop{kind: pick(g, "for", "forEach", "while", "until"), most: 1 + g.below(4)}
	s.loop = l
	if oneIn(g, 4) {
		s.when = g.test(1)
	}
	g.gated(s, 3)
	l.round = pick(g, "", "", "round", "pass")
	l.index = pick(g, "", "", "at")
	switch l.kind {
	case "for":
		l.count = pick[any](g, 0, 1, 2, 3, "tries", "size")
	case "forEach":
		l.items = pick(g, listNames()...)
		l.item = pick(g, "", "", "file")
	}
	before := g.loopNames
	g.loopNames = append(slices.Clone(before), l.roundVar(), l.roundVar(), l.indexVar())
	if l.kind == "forEach" {
		g.loopNames = append(g.loopNames, l.itemVar())
	}
	if l.kind == "while" || l.kind == "until" {
		l.when = g.test(2)
	}
	g.body(l)
	if g.tame || !oneIn(g, 3) {
		// Conditions behind a loop rarely read its variables.
		g.loopNames = before
	}
	return s
}

func (g *generator) body(l *loop) {
	switch {
	case oneIn(g, 5) && len(g.def.bodies) > 0 && !g.tame:
		l.ref, l.body = true, []*step{pick(g, g.def.bodies...)}
	case oneIn(g, 4):
		b := g.step(false)
		g.def.bodies = append(g.def.bodies, b)
		l.ref, l.body = true, []*step{b}
	default:
		for range 1 + g.below(3) {
			l.body = append(l.body, g.step(true))
		}
	}
}

// test draws a condition of some depth.
func (g *generator) test(depth int) *test {
	if depth > 0 {
		switch g.below(7) {
		case 0:
			return &test{op: "and", of: []*test{g.test(depth - 1), g.test(depth - 1)}}
		case 1:
			return &test{op: "or", of: []*test{g.test(depth - 1), g.test(depth - 1)}}
		case 2:
			return &test{op: "not", of: []*test{g.test(depth - 1)}}
		}
	}
	if oneIn(g, 30) {
		return &test{op: "always"}
	}
	if oneIn(g, 10) {
		return &test{op: "truthy", variable: pick(g, listNames()...)}
	}
	t := &test{variable: pick(g, scalarNames()...)}
	if len(g.loopNames) > 0 && oneIn(g, 3) {
		t.variable = pick(g, g.loopNames...)
	}
	t.op = pick(g, "truthy", "equals", "equals", "equals", "not_equals", "gt", "gte", "lt", "lte", "contains", "startsWith", "endsWith", "matches")
	switch t.op {
	case "equals", "not_equals":
		t.value = pick(g, scalars()...)
	case "gt", "gte", "lt", "lte":
		t.value = float64(g.below(4))
	case "contains", "startsWith", "endsWith":
		t.value = pick[any](g, "la", "GE", "s", "2", "e")
	case "matches":
		t.value = pick[any](g, "^la", "ge$", "[0-9]", "^(yes|true)$")
	}
	return t
}

// criteria draws a list of rules or a composition.
func (g *generator) criteria() *rule {
	if oneIn(g, 3) {
		return g.rule(2, true)
	}
	r := &rule{kind: "list"}
	for range 1 + g.below(3) {
		r.of = append(r.of, g.rule(0, false))
	}
	return r
}

func (g *generator) rule(depth int, composed bool) *rule {
	if depth > 0 && (composed || oneIn(g, 3)) {
		r := &rule{kind: pick(g, "and", "or", "not")}
		for range 1 + g.below(2) {
			r.of = append(r.of, g.rule(depth-1, false))
		}
		if r.kind == "not" {
			r.of = r.of[:1]
		}
		return r
	}
	r := &rule{kind: pick(g, "contains", "regex", "length", "schema", "contains"), message: "Give it"}
	switch r.kind {
	case "contains":
		r.text = pick(g, "DONE", "note", "sha")
	case "regex":
		r.text, r.flags = pick(g, `\bdone\b`, `[0-9a-f]{7}`, `^#`, `e`), pick(g, "", "i", "m")
	case "length":
		r.min = pick(g, 0, 3, 20)
		r.max = r.min + pick(g, 5, 100)
	case "schema":
		r.shape = pick(g, shapes()...)
	}
	if oneIn(g, 4) {
		r.when = g.test(1)
	}
	return r
}

// name puts the step's mark into every message.
func (g *generator) name(r *rule, secret string) {
	if r.message != "" {
		r.message += " for " + secret
	}
	for _, part := range r.of {
		g.name(part, secret)
	}
}

// outputs are what an agent might hand in. For nearly all criteria one of them
// fits.
func outputs() []string {
	return []string{
		"worked", "DONE", "done", "DONE: note sha 1a2b3c4d", "# note\nDONE sha 1a2b3c4d", "a note", "sha", "it is done, and more than twenty units long",
		"\U0001F600\U0001F600", "x", "q", `{"ok":true}`, `{"ok":true,"note":"DONE sha 1a2b3c4d"}`, `{"ok":"no","note":"n","n":0}`, `{"n":2,"note":"sha"}`,
		`["DONE"]`, `[]`, `{"note":"#"}`, "the quick brown fox jumps over the lazy dog many a time, but nobody has seen it in these parts for years, so who knows whether it",
	}
}

// values draws a value that may stand in a variable.
func value(d dice, name string) any {
	if slices.Contains(listNames(), name) && !oneIn(d, 8) {
		return pick(d, lists()...)
	}
	if slices.Contains(listNames(), name) {
		return pick[any](d, "a.go, b.go", 7.0, true, nil, map[string]any{"name": "a.go"})
	}
	return pick(d, scalars()...)
}

// drawVars sets some variables.
func drawVars(d dice, most int) map[string]any {
	vars := map[string]any{}
	for _, name := range append(scalarNames(), listNames()...) {
		if d.below(10) < most {
			vars[name] = value(d, name)
		}
	}
	if oneIn(d, 6) {
		vars[pick(d, "unread", "a.b", "constructor", "")] = pick(d, scalars()...)
	}
	return vars
}
