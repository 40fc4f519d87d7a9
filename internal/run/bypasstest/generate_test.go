package bypasstest

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"pgregory.net/rapid"
)

// randomSource is a source of random numbers: a seeded generator, or rapid, which shrinks
// failures.
type randomSource interface {
	// below returns a number from 0 to n-1.
	below(n int) int
}

type seeded struct{ *rand.Rand }

func (s seeded) below(n int) int { return s.IntN(n) }

type drawn struct{ *rapid.T }

func (d drawn) below(n int) int { return rapid.IntRange(0, n-1).Draw(d.T, "n") }

// oneIn returns true in one of n cases.
func oneIn(d randomSource, n int) bool { return d.below(n) == n-1 }

func pickOne[T any](d randomSource, list ...T) T { return list[d.below(len(list))] }

// scalarNames returns the variables that conditions and counts read.
func scalarNames() []string { return []string{"size", "risk", "tries", "ready"} }
func listNames() []string   { return []string{"files", "parts"} }

func scalarValues() []any {
	return []any{"large", "Large ", " small", "yes", "no", "2", "0", 0.0, 1.0, 2.0, 3.0, true, false, nil, ""}
}

func listValues() []any {
	return []any{[]any{}, []any{"a.go"}, []any{"a.go", "b.go"}, []any{map[string]any{"name": "a"}, "b", 3.0}}
}

func drawDefinition(d randomSource) *definition { return drawWith(d, false) }

// drawWith draws a definition. In a tame definition no condition outside of a loop reads
// the loop's variables, and no two loops share a body.
func drawWith(d randomSource, tame bool) *definition {
	g := &generator{randomSource: d, tame: tame, def: &definition{id: "random"}, serial: 100 * d.below(90)}
	if oneIn(d, 2) {
		g.def.meta = "Hold to this throughout."
	}
	for i := range d.below(3) {
		g.def.functions = append(g.def.functions, function{fmt.Sprintf("shared%d", i), fmt.Sprintf("Shared SHARED-%d-.", i)})
	}
	for range 1 + d.below(7) {
		if oneIn(d, 3) {
			g.def.items = append(g.def.items, g.drawLoop())
		} else {
			g.def.items = append(g.def.items, g.drawStep(true))
		}
	}
	return g.def
}

// generator numbers the steps of one definition.
type generator struct {
	randomSource
	def    *definition
	tame   bool
	serial int
	// loopNames are the loop variables so far, which conditions can read.
	loopNames []string
}

func (g *generator) newStep() *step {
	g.serial++
	return &step{id: fmt.Sprintf("s-%d-id", g.serial), serial: g.serial}
}

func (g *generator) drawStep(conditional bool) *step {
	s := g.newStep()
	if conditional && oneIn(g, 3) {
		s.when = g.drawCondition(2)
	}
	g.drawConfirmation(s, 4)
	if oneIn(g, 2) {
		s.criteria = g.drawCriteria()
		g.markMessages(s.criteria, s.secretMark())
	}
	s.template = pickOne(g, "", "", " for {{size}}", " in {{currentIteration}}", " on {{ currentItem }}", " on {{file}}", " with {{files[0]}} of {{files.length}}", " next {{tries + 1}}", " {{risk ? 1 : 2}}")
	s.role, s.guidance = oneIn(g, 4), oneIn(g, 4)
	for _, f := range g.def.functions {
		if oneIn(g, 3) {
			s.refers = append(s.refers, f.name)
		}
	}
	if oneIn(g, 6) {
		s.functions = []function{{"own", "Own " + s.secretMark()}}
	}
	return s
}

// drawConfirmation draws a confirmation with a probability of 1/rarely.
func (g *generator) drawConfirmation(s *step, rarely int) {
	switch g.below(rarely * 4) {
	case 0:
		s.confirm = &confirmation{}
	case 1:
		s.confirm = &confirmation{g.drawCondition(1)}
	case 2:
		s.human = true
	case 3:
		s.human, s.confirm = true, &confirmation{pickOne(g, nil, g.drawCondition(1))}
	}
}

func (g *generator) drawLoop() *step {
	s := g.newStep()
	l := &loop{kind: pickOne(g, "for", "forEach", "while", "until"), most: 1 + g.below(4)}
	s.loop = l
	if oneIn(g, 4) {
		s.when = g.drawCondition(1)
	}
	g.drawConfirmation(s, 3)
	l.round = pickOne(g, "", "", "round", "pass")
	l.index = pickOne(g, "", "", "at")
	switch l.kind {
	case "for":
		l.count = pickOne[any](g, 0, 1, 2, 3, "tries", "size")
	case "forEach":
		l.items = pickOne(g, listNames()...)
		l.item = pickOne(g, "", "", "file")
	}
	before := g.loopNames
	g.loopNames = append(slices.Clone(before), l.roundVar(), l.roundVar(), l.indexVar())
	if l.kind == "forEach" {
		g.loopNames = append(g.loopNames, l.itemVar())
	}
	if l.kind == "while" || l.kind == "until" {
		l.when = g.drawCondition(2)
	}
	g.drawBody(l)
	if g.tame || !oneIn(g, 3) {
		// Conditions after a loop rarely read its variables.
		g.loopNames = before
	}
	return s
}

func (g *generator) drawBody(l *loop) {
	switch {
	case oneIn(g, 5) && len(g.def.bodies) > 0 && !g.tame:
		l.ref, l.body = true, []*step{pickOne(g, g.def.bodies...)}
	case oneIn(g, 4):
		b := g.drawStep(false)
		g.def.bodies = append(g.def.bodies, b)
		l.ref, l.body = true, []*step{b}
	default:
		for range 1 + g.below(3) {
			l.body = append(l.body, g.drawStep(true))
		}
	}
}

// drawCondition draws a condition with a maximum depth.
func (g *generator) drawCondition(depth int) *test {
	if depth > 0 {
		switch g.below(7) {
		case 0:
			return &test{op: "and", of: []*test{g.drawCondition(depth - 1), g.drawCondition(depth - 1)}}
		case 1:
			return &test{op: "or", of: []*test{g.drawCondition(depth - 1), g.drawCondition(depth - 1)}}
		case 2:
			return &test{op: "not", of: []*test{g.drawCondition(depth - 1)}}
		}
	}
	if oneIn(g, 30) {
		return &test{op: "always"}
	}
	if oneIn(g, 10) {
		return &test{op: "truthy", variable: pickOne(g, listNames()...)}
	}
	t := &test{variable: pickOne(g, scalarNames()...)}
	if len(g.loopNames) > 0 && oneIn(g, 3) {
		t.variable = pickOne(g, g.loopNames...)
	}
	t.op = pickOne(g, "truthy", "equals", "equals", "equals", "not_equals", "gt", "gte", "lt", "lte", "contains", "startsWith", "endsWith", "matches")
	switch t.op {
	case "equals", "not_equals":
		t.value = pickOne(g, scalarValues()...)
	case "gt", "gte", "lt", "lte":
		t.value = float64(g.below(4))
	case "contains", "startsWith", "endsWith":
		t.value = pickOne[any](g, "la", "GE", "s", "2", "e")
	case "matches":
		t.value = pickOne[any](g, "^la", "ge$", "[0-9]", "^(yes|true)$")
	}
	return t
}

// drawCriteria draws a list of rules or a composition.
func (g *generator) drawCriteria() *rule {
	if oneIn(g, 3) {
		return g.drawRule(2, true)
	}
	r := &rule{kind: "list"}
	for range 1 + g.below(3) {
		part := g.drawRule(0, false)
		part.template = (part.kind == "check" || part.kind == "command") && oneIn(g, 3)
		r.of = append(r.of, part)
	}
	return r
}

// checkNames returns the names of the checks.
func checkNames() []string { return []string{"build", "test", "lint"} }

// drawOutcomes draws the outcomes of all checks.
func drawOutcomes(d randomSource) map[string]string {
	checks := map[string]string{}
	for _, name := range checkNames() {
		checks[name] = pickOne(d, checkPasses, checkPasses, checkFails, checkUndefined, checkInconclusive)
	}
	return checks
}

// sameOutcomes returns one outcome for all checks.
func sameOutcomes(outcome string) map[string]string {
	checks := map[string]string{}
	for _, name := range checkNames() {
		checks[name] = outcome
	}
	return checks
}

func (g *generator) drawRule(depth int, composed bool) *rule {
	if depth > 0 && (composed || oneIn(g, 3)) {
		r := &rule{kind: pickOne(g, "and", "or", "not")}
		for range 1 + g.below(2) {
			r.of = append(r.of, g.drawRule(depth-1, false))
		}
		if r.kind == "not" {
			r.of = r.of[:1]
		}
		return r
	}
	r := &rule{kind: pickOne(g, "contains", "regex", "length", "schema", "contains", "check", "command"), message: "Give it"}
	switch r.kind {
	case "check", "command":
		r.text = pickOne(g, checkNames()...)
	case "contains":
		r.text = pickOne(g, "DONE", "note", "sha")
	case "regex":
		r.text, r.flags = pickOne(g, `\bdone\b`, `[0-9a-f]{7}`, `^#`, `e`), pickOne(g, "", "i", "m")
	case "length":
		r.min = pickOne(g, 0, 3, 20)
		r.max = r.min + pickOne(g, 5, 100)
	case "schema":
		r.shape = pickOne(g, testSchemas()...)
	}
	if oneIn(g, 4) {
		r.when = g.drawCondition(1)
	}
	return r
}

// markMessages adds the mark of the step to every message.
func (g *generator) markMessages(r *rule, secret string) {
	if r.message != "" {
		r.message += " for " + secret
	}
	for _, part := range r.of {
		g.markMessages(part, secret)
	}
}

// sampleOutputs returns possible outputs of an agent. For nearly all criteria one of them
// is valid.
func sampleOutputs() []string {
	return []string{
		"worked", "DONE", "done", "DONE: note sha 1a2b3c4d", "# note\nDONE sha 1a2b3c4d", "a note", "sha", "it is done, and more than twenty units long",
		"\U0001F600\U0001F600", "x", "q", `{"ok":true}`, `{"ok":true,"note":"DONE sha 1a2b3c4d"}`, `{"ok":"no","note":"n","n":0}`, `{"n":2,"note":"sha"}`,
		`["DONE"]`, `[]`, `{"note":"#"}`, "the quick brown fox jumps over the lazy dog many a time, but nobody has seen it in these parts for years, so who knows whether it",
	}
}

// drawValue draws a value for a variable.
func drawValue(d randomSource, name string) any {
	if slices.Contains(listNames(), name) && !oneIn(d, 8) {
		return pickOne(d, listValues()...)
	}
	if slices.Contains(listNames(), name) {
		return pickOne[any](d, "a.go, b.go", 7.0, true, nil, map[string]any{"name": "a.go"})
	}
	return pickOne(d, scalarValues()...)
}

// drawVars sets some variables.
func drawVars(d randomSource, most int) map[string]any {
	vars := map[string]any{}
	for _, name := range append(scalarNames(), listNames()...) {
		if d.below(10) < most {
			vars[name] = drawValue(d, name)
		}
	}
	if oneIn(d, 6) {
		vars[pickOne(d, "unread", "a.b", "constructor", "")] = pickOne(d, scalarValues()...)
	}
	return vars
}
