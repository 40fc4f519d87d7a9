package phasetest

import (
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

// names are the variables that conditions, loops and actions read and write, by
// their types.
func names() []string { return []string{"size", "tries", "ready", "files", "plan", "mark", "loose"} }

func typeOfName(name string) string {
	return map[string]string{
		"size": "string", "tries": "number", "ready": "boolean", "files": "array", "plan": "object", "mark": "string",
	}[name]
}

// value draws one that fits the type of a name.
func value(d dice, name string) any {
	switch typeOfName(name) {
	case "string":
		return pick[any](d, "large", "small", "", "1")
	case "number":
		return pick[any](d, 0.0, 1.0, 2.0, 3.0)
	case "boolean":
		return oneIn(d, 2)
	case "array":
		return pick[any](d, []any{}, []any{"a"}, []any{"a", "b"}, []any{object{"n": 1.0}, "b", 3.0}, []any{[]any{"a"}, true})
	case "object":
		return object{"tasks": pick[any](d, []any{}, []any{"a"}, []any{"a", "b"}, "none"), "done": oneIn(d, 2)}
	}
	return pick[any](d, "large", 1.0, true, nil, []any{"a"}, object{"done": true})
}

// drawDefinition makes a definition.
func drawDefinition(d dice) *definition {
	g := &generator{dice: d, def: &definition{id: "random", rules: oneIn(d, 2)}, serial: 100 * d.below(90)}
	for _, name := range names() {
		if typeOfName(name) == "" || !oneIn(g, 2) {
			continue
		}
		v := &variable{name: name, kind: typeOfName(name), required: oneIn(g, 8)}
		if oneIn(g, 3) {
			v.hasValue, v.value = true, pick(g, value(g, name), value(g, name), nil)
		}
		g.def.vars = append(g.def.vars, v)
	}
	// Rarely does the server own what phases turn on: a run would only wait.
	g.own = []string{"mark", "stamp", "mark", "stamp", "result.done", pick(g, append(names(), "plan.done", "round")...)}
	n := 1 + g.below(5)
	for range n {
		g.def.phases = append(g.def.phases, &phase{named: g.next("p"), optional: oneIn(g, 4)})
	}
	g.def.initial = pick(g, 0, g.below(n))
	for i := range g.def.phases {
		g.phase(i)
	}
	return g.def
}

// generator numbers the elements of one definition.
type generator struct {
	dice
	def    *definition
	serial int
	own    []string
	// items are the variables of loops, which only conditions in them read as a
	// rule.
	items []string
}

func (g *generator) next(letter string) named {
	g.serial++
	return named{letter, g.serial}
}

func (g *generator) phase(i int) {
	ph := g.def.phases[i]
	ph.entry, ph.exit = g.actions(3), g.actions(3)
	for range g.below(3) {
		ph.steps = append(ph.steps, g.step())
	}
	for range max(0, g.below(4)-2) {
		ph.loops = append(ph.loops, g.loop())
	}
	for range max(0, g.below(4)-1) {
		ph.checkpoints = append(ph.checkpoints, g.checkpoint(i))
	}
	for range max(0, g.below(4)-2) {
		ph.decisions = append(ph.decisions, g.decision())
	}
	for range g.below(4) {
		ph.ways = append(ph.ways, &way{to: g.to(i), when: pick(g, nil, g.test(1), g.test(1)), fallback: oneIn(g, 3)})
	}
}

// to draws a phase to go to, rather one that comes later.
func (g *generator) to(from int) int {
	n := len(g.def.phases)
	if from+1 < n && !oneIn(g, 4) {
		return from + 1 + g.below(n-from-1)
	}
	return g.below(n)
}

// actions draws a few of them, in one of rarely cases.
func (g *generator) actions(rarely int) []*action {
	var list []*action
	if !oneIn(g, rarely) {
		return nil
	}
	for range 1 + g.below(3) {
		a := &action{named: g.next("a"), kind: pick(g, "log", "emit", "set", "set", "validate", "validate")}
		switch a.kind {
		case "set":
			a.target = pick(g, g.own...)
			a.value, a.hasValue = value(g, a.target), !oneIn(g, 6)
			if !a.hasValue {
				a.value = nil
			}
		case "validate":
			a.target = pick(g, "size", "ready", "tries", "plan.done", "files.length", "the desk", "mark", "")
			if a.hasValue = oneIn(g, 2); a.hasValue {
				a.value = g.literal(a.target)
			}
		default:
			a.target = pick(g, "", "somewhere", "size")
			if a.hasValue = oneIn(g, 2); a.hasValue {
				a.value = value(g, "loose")
			}
		}
		list = append(list, a)
	}
	return list
}

// literal draws what a variable at a path may be compared with.
func (g *generator) literal(path string) any {
	switch path {
	case "plan.done", "result.done":
		return oneIn(g, 2)
	case "files.length":
		return float64(g.below(3))
	case "files.0", "item":
		return pick[any](g, "a", 1.0, true)
	case "round":
		return float64(g.below(4))
	case "stamp":
		return pick[any](g, "large", 1.0, true)
	}
	v := value(g, path)
	if !scalar(v) {
		return nil
	}
	return v
}

func (g *generator) step() *step {
	return &step{named: g.next("s"), optional: oneIn(g, 3), actions: g.actions(4)}
}

func (g *generator) loop() *loop {
	l := &loop{named: g.next("l"), kind: pick(g, "forEach", "while", "doWhile"), most: 1 + g.below(3)}
	if oneIn(g, 2) {
		l.variable = "round"
		if l.kind == "forEach" {
			l.variable = "item"
		}
		g.items = append(g.items, l.variable)
		defer func() {
			if !oneIn(g, 3) {
				g.items = nil
			}
		}()
	}
	if l.kind == "forEach" {
		l.over = pick(g, "files", "files", "plan.tasks", "loose", "files.0")
	} else {
		l.when = g.test(1)
	}
	if oneIn(g, 3) {
		l.stop = g.test(1)
	}
	for range pick(g, 0, 1, 1, 1, 2, 3) {
		l.steps = append(l.steps, g.step())
	}
	return l
}

func (g *generator) checkpoint(in int) *checkpoint {
	c := &checkpoint{named: g.next("c"), optional: oneIn(g, 3), human: oneIn(g, 4)}
	for range 1 + g.below(3) {
		o := &option{named: g.next("o"), to: -1}
		if oneIn(g, 3) {
			name := pick(g, g.own...)
			o.sets = map[string]any{name: value(g, name)}
		}
		if oneIn(g, 4) {
			o.to = g.to(in)
		}
		for n := range g.def.phases {
			if n != in && oneIn(g, 6) {
				o.skips = append(o.skips, n)
			}
		}
		c.options = append(c.options, o)
	}
	return c
}

func (g *generator) decision() *decision {
	d := &decision{named: g.next("d")}
	for range 2 + g.below(3) {
		b := &branch{named: g.next("b"), to: g.below(len(g.def.phases)), fallback: oneIn(g, 5)}
		if !oneIn(g, 4) {
			b.when = g.test(2)
		}
		d.branches = append(d.branches, b)
	}
	return d
}

// test draws a condition of some depth.
func (g *generator) test(deep int) *test {
	if deep > 0 {
		switch g.below(7) {
		case 0:
			return &test{op: "and", of: []*test{g.test(deep - 1), g.test(deep - 1)}}
		case 1:
			return &test{op: "or", of: []*test{g.test(deep - 1), g.test(deep - 1)}}
		case 2:
			return &test{op: "not", of: []*test{g.test(deep - 1)}}
		}
	}
	t := &test{variable: pick(g, "size", "tries", "ready", "mark", "stamp", "plan.done", "result.done", "files.length", "files.0", "loose")}
	if len(g.items) > 0 && oneIn(g, 3) {
		t.variable = pick(g, g.items...)
	}
	t.op = pick(g, "==", "==", "==", "!=", ">", "<", ">=", "<=", "exists", "notExists")
	switch t.op {
	case "==", "!=":
		t.value = g.literal(t.variable)
	case "exists", "notExists":
	default:
		t.value = pick[any](g, 0.0, 1.0, 2.0, "1")
	}
	return t
}

// outputs are what an agent might hand in.
func outputs() []string { return []string{"worked", "DONE", "it is done", "skip", "ok"} }

// drawVars sets some variables to what fits their types.
func drawVars(d dice, def *definition, most int) map[string]any {
	vars := map[string]any{}
	for _, name := range names() {
		if d.below(10) < most && !def.owns(name) {
			vars[name] = value(d, name)
		}
	}
	if oneIn(d, 6) {
		vars[pick(d, "unread", "a.b", "constructor", "", "plan.done")] = value(d, "loose")
	}
	for _, name := range def.owned() {
		delete(vars, name)
	}
	return vars
}

// strangers are values of another type than a variable's.
func strangers(kind string) []any {
	all := []any{"x", 7.0, true, []any{"x"}, object{"x": 1.0}}
	return slices.DeleteFunc(all, func(v any) bool { return typeOf(v) == kind })
}
