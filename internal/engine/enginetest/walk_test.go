package enginetest

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	enginepkg "github.com/guideway-dev/guideway/internal/engine"
)

// counts are the numbers of tested cases.
type counts struct {
	// refused counts workflows that do not load.
	refused                                    int
	definitions, runs, completed, stuck, legal int
	// illegal counts by attack, rules by the violated rule, places by position.
	illegal, rules, places map[string]int
	// leftOver counts attempts that are legal according to the model.
	leftOver int
	// prefixes, forged, harmless and documents count tests with events: forged lists were
	// refused; commands could have resulted in the harmless ones.
	prefixes, forged, harmless, documents int
	// followed counts the commands of imported runs that matched their originals.
	followed int
	// elsewhere counts documents that lead to another position, by reason.
	elsewhere map[string]int
}

func newCounts() *counts {
	return &counts{illegal: map[string]int{}, rules: map[string]int{}, places: map[string]int{}, elsewhere: map[string]int{}}
}

func (n *counts) totalIllegal() int {
	sum := 0
	for _, k := range n.rules {
		sum += k
	}
	return sum
}

func (n *counts) writeTo(w io.Writer) {
	fmt.Fprintf(w, "%d workflows (%d more have cycles of skipped phases and do not load), %d runs (%d completed, %d stuck by their workflow, the rest aborted), %d legal commands, none refused; %d illegal commands, all refused\n",
		n.definitions, n.refused, n.runs, n.completed, n.stuck, n.legal, n.totalIllegal())
	fmt.Fprintf(w, "%d prefixes continued to the same position; %d forged lists of events refused, %d were harmless; %d state documents imported, %d commands followed by imported runs\n",
		n.prefixes, n.forged, n.harmless, n.documents, n.followed)
	for _, title := range []struct {
		name   string
		counts map[string]int
	}{{"by cheat", n.illegal}, {"by rule", n.rules}, {"places", n.places}, {"documents that lead to a different position", n.elsewhere}} {
		if len(title.counts) > 0 {
			fmt.Fprintln(w, title.name)
		}
		for _, k := range slices.Sorted(maps.Keys(title.counts)) {
			fmt.Fprintf(w, "  %7d  %s\n", title.counts[k], k)
		}
	}
}

// walk is one run that is executed legally and attacked at every position.
type walk struct {
	testReporter
	randomSource
	def      *definition
	engine   *flowEngine
	tally    *counts
	accepted []command
	// onPlace, if set, is called at every position, before the attempts.
	onPlace func(p place)
	// onAccepted, if set, is called with each accepted command.
	onAccepted func(c command)
	// legalOnly disables the illegal commands.
	legalOnly bool
}

// maxMoves limits a walk, because phases may form a cycle.
const maxMoves = 40

func (w *walk) runWalk() {
	w.Helper()
	w.tally.runs++
	w.startRun()
	for range maxMoves {
		p := replayModel(w.def, w.accepted)
		w.checkView(p, w.engine.currentView())
		w.tally.places[strings.TrimSpace(p.kind+" "+p.part)]++
		if w.onPlace != nil {
			w.onPlace(p)
		}
		if !w.legalOnly {
			for _, a := range listAttempts(w.randomSource, w.def, p) {
				w.sendIllegal(p, a)
			}
		}
		if p.kind == "end" {
			if p.status == "completed" {
				w.tally.completed++
			}
			return
		}
		c, ok := drawLegal(w.randomSource, w.def, p)
		if !ok {
			w.tally.stuck++
			c = command{kind: "abort"} // no variable that an agent may set continues the run
		}
		w.sendLegal(p, c)
	}
}

// startRun starts the run after attempts to start it illegally.
func (w *walk) startRun() {
	w.Helper()
	vars := drawVars(w.randomSource, w.def, drawFrom(w.randomSource, 2, 6, 9))
	forged := map[string]command{}
	forge := func(cheat, name string, value any) {
		c := command{kind: "start", context: maps.Clone(vars)}
		c.context[name] = value
		forged[cheat] = c
	}
	forge("a run started with too large a context", "pad", strings.Repeat("x", 262_144))
	if owned := w.def.serverVars(); len(owned) > 0 {
		forge("a run started with a server variable", drawFrom(w.randomSource, owned...), 1.0)
	}
	for _, v := range w.def.vars {
		if !w.def.isServerVar(v.name) {
			forge("a run started with a variable of a different type", v.name, drawFrom(w.randomSource, otherTypes(v.kind)...))
		}
	}
	for _, cheat := range slices.Sorted(maps.Keys(forged)) {
		r := &ruleSet{}
		r.checkContext(w.def, place{vars: map[string]any{}}, forged[cheat].context)
		_, d := w.engine.sendCommand(forged[cheat])
		if d == nil || !slices.Contains(r.rules, d.rule) {
			w.Fatalf("%s: %s, want one of %v\nof %s", cheat, asJSON(d), r.rules, w.def.toDocument())
		}
		w.tally.illegal[cheat]++
		w.tally.rules[d.rule]++
	}
	start := command{kind: "start", context: vars, person: oneIn(w.randomSource, 6)}
	if _, d := w.engine.sendCommand(start); d != nil {
		w.Fatalf("a legal start is refused: %s: %s\nof %s", d.rule, d.message, w.def.toDocument())
	}
	w.tally.legal++
	w.accepted = []command{start}
}

func (w *walk) sendLegal(p place, c command) {
	w.Helper()
	s, d := w.engine.sendCommand(c)
	if d != nil {
		w.failAt(p, c, "a legal command is refused by %s: %s", d.rule, d.message)
	}
	w.tally.legal++
	w.accepted = append(w.accepted, c)
	w.checkView(replayModel(w.def, w.accepted), s)
	if w.onAccepted != nil {
		w.onAccepted(c)
	}
}

// sendIllegal sends an attempt, unless the model finds it legal.
func (w *walk) sendIllegal(p place, a attempt) {
	w.Helper()
	rules := w.def.brokenRules(p, a.command)
	if len(rules) == 0 {
		w.tally.leftOver++
		return
	}
	before := w.engine.stateJSON()
	s, d := w.engine.sendCommand(a.command)
	switch {
	case d == nil:
		w.failAt(p, a.command, "%s is accepted and leads to %s, but violates %v", a.cheat, s.whole, rules)
	case !slices.Contains(rules, d.rule):
		w.failAt(p, a.command, "%s is refused by %s (%s), which it does not violate; it violates %v", a.cheat, d.rule, d.message, rules)
	case d.message == "":
		w.failAt(p, a.command, "%s is refused by %s without a message", a.cheat, d.rule)
	}
	if after := w.engine.stateJSON(); after != before {
		w.failAt(p, a.command, "%s is refused, but has changed the run from\n%s\nto\n%s", a.cheat, before, after)
	}
	w.checkHidden(p, a.command, d.whole)
	w.tally.illegal[a.cheat]++
	w.tally.rules[d.rule]++
}

func (w *walk) failAt(p place, c command, format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nat %s with %s\ncommand %s\nafter %s\nof %s", fmt.Sprintf(format, args...), p, asJSON(p.vars), c, w.accepted, w.def.toDocument())
}

// String returns a shortened command.
func (c command) String() string {
	context := asJSON(c.context)
	if len(context) > 300 {
		context = context[:300] + "…"
	}
	answer := "none"
	if c.answer != nil {
		answer = fmt.Sprintf("%+v", *c.answer)
	}
	return fmt.Sprintf("{%s output %q notes %q context %s answer %s skip %v step %q person %v checks %v}",
		c.kind, c.output, c.notes, context, answer, c.skip, c.step, c.person, c.checks)
}

// checkView compares the engine's answer with the model.
func (w *walk) checkView(p place, s engineView) {
	w.Helper()
	pos := s.position
	var differs []string
	expect := func(what string, got, want any) {
		if asJSON(got) != asJSON(want) {
			differs = append(differs, fmt.Sprintf("%s is %s, want %s", what, asJSON(got), asJSON(want)))
		}
	}
	expect("kind", string(pos.Kind), p.kind)
	expect("status", s.status, p.status)
	if !p.stuck {
		expect("id", pos.ID, p.id)
		expect("title", pos.Title, p.title)
		w.expectRest(p, pos, expect)
	}
	if len(differs) > 0 {
		w.Fatalf("the run is at a different position: %s\nat %s with %s\nafter %s\nof %s",
			strings.Join(differs, "; "), p, asJSON(p.vars), w.accepted, w.def.toDocument())
	}
	w.checkHidden(p, command{}, s.whole)
}

// expectRest compares the remaining fields of a position.
func (w *walk) expectRest(p place, pos enginepkg.Position, expect func(what string, got, want any)) {
	var options, needs []string
	for _, o := range pos.Options {
		options = append(options, o.ID)
	}
	for _, n := range pos.Needs {
		needs = append(needs, n.Variable)
	}
	expect("options", options, p.options)
	expect("person", pos.Person, p.human)
	if p.unordered {
		slices.Sort(needs)
		p.needs = slices.Sorted(slices.Values(p.needs))
	}
	expect("needs", needs, p.needs)
	// An agent can fill in a form at every position but the end, a human approval and a
	// dead end. At a dead end only the server sets the variables.
	required := slices.ContainsFunc(pos.Fields(), func(f enginepkg.Field) bool { return !f.Optional })
	expect("a form", required, p.kind != "end" && !p.human && !pos.DeadEnd)
	if p.kind == "context" && !slices.ContainsFunc(p.needs, func(name string) bool { return w.def.canSet(name) }) {
		expect("a dead end", pos.DeadEnd, true) // TestNoRunGetsStuck checks the other kinds of dead ends
	}
	phase, number := "", 0
	if pos.Phase != nil {
		phase, number = pos.Phase.ID, pos.Phase.Number
	}
	if i := slices.Index(w.def.phases, p.phase); i >= 0 && p.kind != "end" {
		expect("phase", []any{phase, number}, []any{p.phase.elementID(), i + 1})
	} else {
		expect("phase", phase, "")
	}
	if p.kind != "step" {
		return
	}
	loop, want := [4]any{"", 0, 0, nil}, [4]any{"", 0, 0, nil}
	if pos.Loop != nil {
		loop = [4]any{pos.Loop.ID, pos.Loop.Round, pos.Loop.Rounds, pos.Loop.Item}
	}
	if p.loop != nil {
		want = [4]any{p.loop.elementID(), p.round, p.rounds, p.item}
	}
	expect("loop", loop, want)
	if p.step == nil {
		return
	}
	expect("the rules", len(pos.MetaGuidance) > 0, w.def.rules && p.done == 0)
	if !strings.Contains(pos.Prompt, "Do "+p.step.secretText()) {
		expect("prompt", pos.Prompt, "Do "+p.step.secretText())
	}
}

// textMark matches the marks of elements in an answer.
var textMark = regexp.MustCompile(`(SECRET|TITLE)-(\d+)-`)

// checkHidden checks that an answer does not contain texts, titles or IDs of elements that
// the run has not reached. It may repeat the caller's own input.
func (w *walk) checkHidden(p place, said command, whole string) {
	w.Helper()
	known, seen := map[int]bool{}, map[int]bool{}
	for _, n := range p.revealed {
		known[n.serial] = true
	}
	for _, n := range p.visible {
		seen[n.serial] = true
	}
	for _, m := range textMark.FindAllStringSubmatch(whole, -1) {
		n, err := strconv.Atoi(m[2])
		switch {
		case err != nil:
			w.failAt(p, said, "%s is not a valid mark: %v", m[0], err)
		case m[1] == "SECRET" && !known[n]:
			w.failAt(p, said, "the texts of element %d, which was not reached, are revealed: %s", n, whole)
		case m[1] == "TITLE" && !seen[n]:
			w.failAt(p, said, "the title of element %d, which was not reached, is revealed: %s", n, whole)
		}
	}
	answered := ""
	if said.answer != nil {
		answered = said.answer.option
	}
	for _, n := range w.def.allElements() {
		if !seen[n.serial] && n.elementID() != said.step && n.elementID() != answered && strings.Contains(whole, n.elementID()) {
			w.failAt(p, said, "the ID %s of an element that was not reached is revealed: %s", n.elementID(), whole)
		}
	}
}
