package enginetest

import (
	"maps"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// randomSource is a source of random numbers: a seeded generator, or rapid, which shrinks
// failing cases.
type randomSource interface {
	// intBelow returns a number from 0 to n-1.
	intBelow(n int) int
}

type seededSource struct{ *rand.Rand }

func (s seededSource) intBelow(n int) int { return s.IntN(n) }

type rapidSource struct{ *rapid.T }

func (d rapidSource) intBelow(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// oneIn returns true in one of n cases.
func oneIn(d randomSource, n int) bool { return d.intBelow(n) == n-1 }

func drawFrom[T any](d randomSource, list ...T) T { return list[d.intBelow(len(list))] }

// variableNames returns the variables that conditions, loops and actions read and write.
func variableNames() []string {
	return []string{"size", "tries", "ready", "files", "plan", "mark", "loose"}
}

func typeOfName(name string) string {
	return map[string]string{
		"size": "string", "tries": "number", "ready": "boolean", "files": "array", "plan": "object", "mark": "string",
	}[name]
}

// drawValue draws a value of the type that belongs to a name.
func drawValue(d randomSource, name string) any {
	switch typeOfName(name) {
	case "string":
		return drawFrom[any](d, "large", "small", "", "1")
	case "number":
		return drawFrom[any](d, 0.0, 1.0, 2.0, 3.0)
	case "boolean":
		return oneIn(d, 2)
	case "array":
		return drawFrom[any](d, []any{}, []any{"a"}, []any{"a", "b"}, []any{object{"n": 1.0}, "b", 3.0}, []any{[]any{"a"}, true})
	case "object":
		return object{"tasks": drawFrom[any](d, []any{}, []any{"a"}, []any{"a", "b"}, "none"), "done": oneIn(d, 2)}
	}
	return drawFrom[any](d, "large", 1.0, true, nil, []any{"a"}, object{"done": true})
}

func drawDefinition(d randomSource) *definition {
	g := &generator{randomSource: d, def: &definition{id: "random", rules: oneIn(d, 2)}, serial: 100 * d.intBelow(90)}
	for _, name := range variableNames() {
		if typeOfName(name) == "" || !oneIn(g, 2) {
			continue
		}
		v := &variable{name: name, kind: typeOfName(name), required: oneIn(g, 8)}
		if oneIn(g, 3) {
			v.hasValue, v.value = true, drawFrom(g, drawValue(g, name), drawValue(g, name), nil)
		}
		g.def.vars = append(g.def.vars, v)
	}
	// Effects rarely write variables that conditions read, because a run that waits for
	// such a variable does nothing else.
	g.written = []string{"mark", "stamp", "mark", "stamp", "result.done", drawFrom(g, append(variableNames(), "plan.done", "round")...)}
	n := 1 + g.intBelow(5)
	for range n {
		g.def.phases = append(g.def.phases, &phase{element: g.newElement("p"), optional: oneIn(g, 4)})
	}
	g.def.initial = drawFrom(g, 0, g.intBelow(n))
	for i := range g.def.phases {
		g.drawPhase(i)
	}
	return g.def
}

// generator numbers the elements of one definition.
type generator struct {
	randomSource
	def     *definition
	serial  int
	written []string
	// loopVars are the variables of loops; usually only conditions inside the loops read
	// them.
	loopVars []string
}

func (g *generator) newElement(letter string) element {
	g.serial++
	return element{letter, g.serial}
}

func (g *generator) drawPhase(i int) {
	ph := g.def.phases[i]
	ph.entry, ph.exit = g.drawActions(3), g.drawActions(3)
	for range g.intBelow(3) {
		ph.steps = append(ph.steps, g.drawStep())
	}
	for range max(0, g.intBelow(4)-2) {
		ph.loops = append(ph.loops, g.drawLoop())
	}
	for range max(0, g.intBelow(4)-1) {
		ph.checkpoints = append(ph.checkpoints, g.drawCheckpoint(i))
	}
	for range max(0, g.intBelow(4)-2) {
		ph.decisions = append(ph.decisions, g.drawDecision())
	}
	for range g.intBelow(4) {
		ph.transitions = append(ph.transitions, &transition{to: g.drawTarget(i), when: drawFrom(g, nil, g.drawCondition(1), g.drawCondition(1)), fallback: oneIn(g, 3)})
	}
}

// drawTarget draws a target phase, usually a later one.
func (g *generator) drawTarget(from int) int {
	n := len(g.def.phases)
	if from+1 < n && !oneIn(g, 4) {
		return from + 1 + g.intBelow(n-from-1)
	}
	return g.intBelow(n)
}

// drawActions draws actions with a probability of 1/rarely, otherwise no action.
func (g *generator) drawActions(rarely int) []*action {
	var list []*action
	if !oneIn(g, rarely) {
		return nil
	}
	for range 1 + g.intBelow(3) {
		a := &action{element: g.newElement("a"), kind: drawFrom(g, "log", "emit", "set", "set", "validate", "validate")}
		switch a.kind {
		case "set":
			a.target = drawFrom(g, g.written...)
			a.value, a.hasValue = drawValue(g, a.target), !oneIn(g, 6)
			if !a.hasValue {
				a.value = nil
			}
		case "validate":
			a.target = drawFrom(g, "size", "ready", "tries", "plan.done", "files.length", "the desk", "mark", "")
			if a.hasValue = oneIn(g, 2); a.hasValue {
				a.value = g.drawLiteral(a.target)
			}
		default:
			a.target = drawFrom(g, "", "somewhere", "size")
			if a.hasValue = oneIn(g, 2); a.hasValue {
				a.value = drawValue(g, "loose")
			}
		}
		list = append(list, a)
	}
	return list
}

// drawLiteral draws a value to compare the variable at a path with.
func (g *generator) drawLiteral(path string) any {
	switch path {
	case "plan.done", "result.done":
		return oneIn(g, 2)
	case "files.length":
		return float64(g.intBelow(3))
	case "files.0", "item":
		return drawFrom[any](g, "a", 1.0, true)
	case "round":
		return float64(g.intBelow(4))
	case "stamp":
		return drawFrom[any](g, "large", 1.0, true)
	}
	v := drawValue(g, path)
	if !isScalar(v) {
		return nil
	}
	return v
}

func (g *generator) drawStep() *step {
	return &step{element: g.newElement("s"), optional: oneIn(g, 3), actions: g.drawActions(4), criteria: g.drawCriteria()}
}

// drawCriteria draws criteria that some output meets, or nil.
func (g *generator) drawCriteria() *rule {
	leaf := func(kinds ...string) *rule {
		r := &rule{kind: drawFrom(g, kinds...)}
		if r.text = "DONE"; r.kind == "check" {
			r.text = drawFrom(g, "build", "test", "lint")
		}
		if oneIn(g, 4) {
			r.when = g.drawCondition(1)
		}
		return r
	}
	var of []*rule
	switch g.intBelow(8) {
	case 0, 1:
		for range 1 + g.intBelow(3) {
			part := leaf("contains", "check", "check")
			part.template = part.kind == "check" && oneIn(g, 3)
			of = append(of, part)
		}
		return &rule{kind: "list", of: of}
	case 2:
		return &rule{kind: drawFrom(g, "and", "or"), of: []*rule{leaf("check", "contains"), leaf("check")}}
	case 3:
		return &rule{kind: "not", of: []*rule{{kind: drawFrom(g, "and", "or"), of: []*rule{leaf("check"), leaf("check")}}}}
	default:
		return nil
	}
}

// drawOutcomes draws the outcomes of the checks of a step.
func drawOutcomes(d randomSource, s *step, outcomes ...string) map[string]string {
	checks := map[string]string{}
	if s != nil {
		for _, key := range s.criteria.checkKeys("") {
			checks[key] = drawFrom(d, outcomes...)
		}
	}
	return checks
}

func (g *generator) drawLoop() *loop {
	l := &loop{element: g.newElement("l"), kind: drawFrom(g, "forEach", "while", "doWhile"), maxRounds: 1 + g.intBelow(3)}
	if oneIn(g, 2) {
		l.variable = "round"
		if l.kind == "forEach" {
			l.variable = "item"
		}
		g.loopVars = append(g.loopVars, l.variable)
		defer func() {
			if !oneIn(g, 3) {
				g.loopVars = nil
			}
		}()
	}
	if l.kind == "forEach" {
		l.over = drawFrom(g, "files", "files", "plan.tasks", "loose", "files.0")
	} else {
		l.when = g.drawCondition(1)
	}
	if oneIn(g, 3) {
		l.breakWhen = g.drawCondition(1)
	}
	for range drawFrom(g, 0, 1, 1, 1, 2, 3) {
		l.steps = append(l.steps, g.drawStep())
	}
	return l
}

func (g *generator) drawCheckpoint(in int) *checkpoint {
	c := &checkpoint{element: g.newElement("c"), optional: oneIn(g, 3), human: oneIn(g, 4)}
	for range 1 + g.intBelow(3) {
		o := &option{element: g.newElement("o"), to: -1}
		if oneIn(g, 3) {
			name := drawFrom(g, g.written...)
			o.sets = map[string]any{name: drawValue(g, name)}
		}
		if oneIn(g, 4) {
			o.to = g.drawTarget(in)
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

func (g *generator) drawDecision() *decision {
	d := &decision{element: g.newElement("d")}
	for range 2 + g.intBelow(3) {
		b := &branch{element: g.newElement("b"), to: g.intBelow(len(g.def.phases)), fallback: oneIn(g, 5)}
		if !oneIn(g, 4) {
			b.when = g.drawCondition(2)
		}
		d.branches = append(d.branches, b)
	}
	return d
}

// drawCondition draws a condition with a maximum depth.
func (g *generator) drawCondition(deep int) *conditionSpec {
	if deep > 0 {
		switch g.intBelow(7) {
		case 0:
			return &conditionSpec{op: "and", of: []*conditionSpec{g.drawCondition(deep - 1), g.drawCondition(deep - 1)}}
		case 1:
			return &conditionSpec{op: "or", of: []*conditionSpec{g.drawCondition(deep - 1), g.drawCondition(deep - 1)}}
		case 2:
			return &conditionSpec{op: "not", of: []*conditionSpec{g.drawCondition(deep - 1)}}
		}
	}
	t := &conditionSpec{variable: drawFrom(g, "size", "tries", "ready", "mark", "stamp", "plan.done", "result.done", "files.length", "files.0", "loose")}
	if len(g.loopVars) > 0 && oneIn(g, 3) {
		t.variable = drawFrom(g, g.loopVars...)
	}
	t.op = drawFrom(g, "==", "==", "==", "!=", ">", "<", ">=", "<=", "exists", "notExists")
	switch t.op {
	case "==", "!=":
		t.value = g.drawLiteral(t.variable)
	case "exists", "notExists":
	default:
		t.value = drawFrom[any](g, 0.0, 1.0, 2.0, "1")
	}
	return t
}

// sampleOutputs returns typical outputs of agents.
func sampleOutputs() []string { return []string{"worked", "DONE", "it is done", "skip", "DONE, ok"} }

// drawVars draws values of the correct types for some variables.
func drawVars(d randomSource, def *definition, most int) map[string]any {
	vars := map[string]any{}
	for _, name := range variableNames() {
		if d.intBelow(10) < most && !def.isServerVar(name) {
			vars[name] = drawValue(d, name)
		}
	}
	if oneIn(d, 6) {
		vars[drawFrom(d, "unread", "a.b", "constructor", "", "plan.done")] = drawValue(d, "loose")
	}
	maps.DeleteFunc(vars, func(name string, _ any) bool { return def.isServerVar(rootName(name)) })
	return vars
}

// otherTypes returns values whose types differ from kind.
func otherTypes(kind string) []any {
	all := []any{"x", 7.0, true, []any{"x"}, object{"x": 1.0}}
	return slices.DeleteFunc(all, func(v any) bool { return typeOf(v) == kind })
}
