package phasetest

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/guide"
)

// tally counts what was tried.
type tally struct {
	// refused are workflows that do not load.
	refused                                    int
	definitions, runs, completed, stuck, legal int
	// illegal counts by cheat, rules by the rule that refused, places by where
	// the runs stood.
	illegal, rules, places map[string]int
	// leftOver counts attempts that the model found legal after all.
	leftOver int
	// prefixes, forged, harmless and documents count what was tried with
	// events: forged lists were refused, harmless ones are what commands could
	// have brought about.
	prefixes, forged, harmless, documents int
	// followed counts the steps of imported runs beside their originals.
	followed int
	// elsewhere counts documents that lead to another place, by why.
	elsewhere map[string]int
}

func newTally() *tally {
	return &tally{illegal: map[string]int{}, rules: map[string]int{}, places: map[string]int{}, elsewhere: map[string]int{}}
}

func (n *tally) total() int {
	sum := 0
	for _, k := range n.rules {
		sum += k
	}
	return sum
}

// print writes the counts.
func (n *tally) print(w io.Writer) {
	fmt.Fprintf(w, "%d workflows (%d more have circles of skipped phases and do not load), %d runs (%d completed, %d stuck by their workflow, the rest aborted), %d legal commands, none refused; %d illegal commands, all refused\n",
		n.definitions, n.refused, n.runs, n.completed, n.stuck, n.legal, n.total())
	fmt.Fprintf(w, "%d prefixes settled alike; %d forged lists of events refused, %d were harmless; %d state documents imported, %d commands followed by imported runs\n",
		n.prefixes, n.forged, n.harmless, n.documents, n.followed)
	for _, title := range []struct {
		name   string
		counts map[string]int
	}{{"by cheat", n.illegal}, {"by rule", n.rules}, {"places", n.places}, {"documents that lead elsewhere", n.elsewhere}} {
		if len(title.counts) > 0 {
			fmt.Fprintln(w, title.name)
		}
		for _, k := range slices.Sorted(maps.Keys(title.counts)) {
			fmt.Fprintf(w, "  %7d  %s\n", title.counts[k], k)
		}
	}
}

// walk is one run that is walked legally and attacked on the way.
type walk struct {
	failer
	dice
	def      *definition
	engine   *engine
	tally    *tally
	accepted []command
	// hook, if set, is called at every place, before the attempts.
	hook func(p place)
	// after, if set, is called with each command that was accepted.
	after func(c command)
	// gentle leaves the attempts out.
	gentle bool
}

// longest bounds a walk: phases may lead in circles.
const longest = 40

func (w *walk) run() {
	w.Helper()
	w.tally.runs++
	w.begin()
	for range longest {
		p := whereIs(w.def, w.accepted)
		w.check(p, w.engine.look())
		w.tally.places[strings.TrimSpace(p.kind+" "+p.why)]++
		if w.hook != nil {
			w.hook(p)
		}
		if !w.gentle {
			for _, a := range attempts(w.dice, w.def, p) {
				w.refuse(p, a)
			}
		}
		if p.kind == "end" {
			if p.status == "completed" {
				w.tally.completed++
			}
			return
		}
		c, ok := legal(w.dice, w.def, p)
		if !ok {
			w.tally.stuck++
			c = command{kind: "abort"} // nothing that an agent may set leads on
		}
		w.accept(p, c)
	}
}

// begin starts the run, after starts that are illegal.
func (w *walk) begin() {
	w.Helper()
	vars := drawVars(w.dice, w.def, pick(w.dice, 2, 6, 9))
	forged := map[string]command{}
	forge := func(cheat, name string, value any) {
		c := command{kind: "start", context: maps.Clone(vars)}
		c.context[name] = value
		forged[cheat] = c
	}
	forge("a run started with too much", "pad", strings.Repeat("x", 131_072))
	if owned := w.def.owned(); len(owned) > 0 {
		forge("a run started with the server's variable", pick(w.dice, owned...), 1.0)
	}
	for _, v := range w.def.vars {
		if !w.def.owns(v.name) {
			forge("a run started with a variable of another type", v.name, pick(w.dice, strangers(v.kind)...))
		}
	}
	for _, cheat := range slices.Sorted(maps.Keys(forged)) {
		r := &broken{}
		r.context(w.def, place{vars: map[string]any{}}, forged[cheat].context)
		_, d := w.engine.send(forged[cheat])
		if d == nil || !slices.Contains(r.rules, d.rule) {
			w.Fatalf("%s: %s, want one of %v\nof %s", cheat, asJSON(d), r.rules, w.def.document())
		}
		w.tally.illegal[cheat]++
		w.tally.rules[d.rule]++
	}
	start := command{kind: "start", context: vars, person: oneIn(w.dice, 6)}
	if _, d := w.engine.send(start); d != nil {
		w.Fatalf("a legal start is refused: %s: %s\nof %s", d.rule, d.message, w.def.document())
	}
	w.tally.legal++
	w.accepted = []command{start}
}

// accept hands in a legal command.
func (w *walk) accept(p place, c command) {
	w.Helper()
	s, d := w.engine.send(c)
	if d != nil {
		w.fail(p, c, "a legal command is refused by %s: %s", d.rule, d.message)
	}
	w.tally.legal++
	w.accepted = append(w.accepted, c)
	w.check(whereIs(w.def, w.accepted), s)
	if w.after != nil {
		w.after(c)
	}
}

// refuse hands in an attempt. What the model finds legal is not handed in.
func (w *walk) refuse(p place, a attempt) {
	w.Helper()
	rules := w.def.breaks(p, a.command)
	if len(rules) == 0 {
		w.tally.leftOver++
		return
	}
	before := w.engine.state()
	s, d := w.engine.send(a.command)
	switch {
	case d == nil:
		w.fail(p, a.command, "%s is accepted, and leads to %s; it breaks %v", a.cheat, s.whole, rules)
	case !slices.Contains(rules, d.rule):
		w.fail(p, a.command, "%s is refused by %s (%s), which it does not break; it breaks %v", a.cheat, d.rule, d.message, rules)
	case d.message == "":
		w.fail(p, a.command, "%s is refused by %s without a word", a.cheat, d.rule)
	}
	if after := w.engine.state(); after != before {
		w.fail(p, a.command, "%s is refused, but has changed the run from\n%s\nto\n%s", a.cheat, before, after)
	}
	w.hides(p, a.command, d.whole)
	w.tally.illegal[a.cheat]++
	w.tally.rules[d.rule]++
}

func (w *walk) fail(p place, c command, format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nat %s with %s\ncommand %s\nafter %s\nof %s", fmt.Sprintf(format, args...), p, asJSON(p.vars), c, w.accepted, w.def.document())
}

// String shows a command without what would fill the screen.
func (c command) String() string {
	context := asJSON(c.context)
	if len(context) > 300 {
		context = context[:300] + "…"
	}
	answer := "none"
	if c.answer != nil {
		answer = fmt.Sprintf("%+v", *c.answer)
	}
	return fmt.Sprintf("{%s output %q notes %q context %s answer %s skip %v step %q person %v}", c.kind, c.output, c.notes, context, answer, c.skip, c.step, c.person)
}

// check compares what is seen with what the model says.
func (w *walk) check(p place, s seen) {
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
	if !p.dead {
		expect("id", pos.ID, p.id)
		expect("title", pos.Title, p.title)
		w.expectRest(p, pos, expect)
	}
	if len(differs) > 0 {
		w.Fatalf("the run is elsewhere: %s\nat %s with %s\nafter %s\nof %s",
			strings.Join(differs, "; "), p, asJSON(p.vars), w.accepted, w.def.document())
	}
	w.hides(p, command{}, s.whole)
}

// expectRest compares what else a position tells.
func (w *walk) expectRest(p place, pos guide.Position, expect func(what string, got, want any)) {
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
	phase, number := "", 0
	if pos.Phase != nil {
		phase, number = pos.Phase.ID, pos.Phase.Number
	}
	if i := slices.Index(w.def.phases, p.in); i >= 0 && p.kind != "end" {
		expect("phase", []any{phase, number}, []any{p.in.id(), i + 1})
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
		want = [4]any{p.loop.id(), p.round, p.rounds, p.item}
	}
	expect("loop", loop, want)
	if p.step == nil {
		return
	}
	expect("the rules", len(pos.MetaGuidance) > 0, w.def.rules && p.done == 0)
	if !strings.Contains(pos.Prompt, "Do "+p.step.secret()) {
		expect("prompt", pos.Prompt, "Do "+p.step.secret())
	}
}

// mark finds the texts of elements in an answer.
var mark = regexp.MustCompile(`(SECRET|TITLE)-(\d+)-`)

// hides checks that an answer tells nothing of what the run has not reached:
// texts that were not shown, titles and ids of what it is not at. What the
// caller has said itself may be repeated.
func (w *walk) hides(p place, said command, whole string) {
	w.Helper()
	known, seen := map[int]bool{}, map[int]bool{}
	for _, n := range p.told {
		known[n.serial] = true
	}
	for _, n := range p.seen {
		seen[n.serial] = true
	}
	for _, m := range mark.FindAllStringSubmatch(whole, -1) {
		n, err := strconv.Atoi(m[2])
		switch {
		case err != nil:
			w.fail(p, said, "%s is no mark: %v", m[0], err)
		case m[1] == "SECRET" && !known[n]:
			w.fail(p, said, "the texts of %d, which is not reached, are told: %s", n, whole)
		case m[1] == "TITLE" && !seen[n]:
			w.fail(p, said, "the title of %d, which is not reached, is told: %s", n, whole)
		}
	}
	answered := ""
	if said.answer != nil {
		answered = said.answer.option
	}
	for _, n := range w.def.all() {
		if !seen[n.serial] && n.id() != said.step && n.id() != answered && strings.Contains(whole, n.id()) {
			w.fail(p, said, "the id %s, which is not reached, is told: %s", n.id(), whole)
		}
	}
}
