package bypasstest

import (
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tally counts the attempts.
type tally struct {
	definitions, runs, completed, legal int
	// illegal counts refused attempts by bypass, rules by the rule of the refusal.
	illegal, rules map[string]int
	// leftOver counts attempts that are legal according to the model.
	leftOver int
	// repeats, races and forks count attempts that only apply to a service.
	repeats, races, forks int
}

func newTally() *tally { return &tally{illegal: map[string]int{}, rules: map[string]int{}} }

func (n *tally) totalCount() int {
	sum := 0
	for _, k := range n.rules {
		sum += k
	}
	return sum
}

func (n *tally) printCounts(w io.Writer) {
	fmt.Fprintf(w, "%d definitions, %d runs (%d completed, the rest aborted), %d legal commands, none refused; %d illegal commands, all refused\n",
		n.definitions, n.runs, n.completed, n.legal, n.totalCount())
	if n.repeats > 0 {
		fmt.Fprintf(w, "%d repeats with the same answer, %d races with one winner, %d forks\n", n.repeats, n.races, n.forks)
	}
	for _, title := range []struct {
		name   string
		counts map[string]int
	}{{"by cheat", n.illegal}, {"by rule", n.rules}} {
		fmt.Fprintln(w, title.name)
		for _, k := range slices.Sorted(maps.Keys(title.counts)) {
			fmt.Fprintf(w, "  %7d  %s\n", title.counts[k], k)
		}
	}
}

// attackedRun is a run that is completed with legal commands and attacked at each position.
type attackedRun struct {
	failer
	randomSource
	def      *definition
	rig      system
	tally    *tally
	accepted []command
	// people is set if every gate requires human approval.
	people bool
	// hook, if set, is called at every position before the attempts.
	hook func(p position)
	// contest, if set, sends some of the legal commands instead of sendLegal.
	contest func(p position, c command)
}

// maxCommands bounds a walk. No random definition needs more, except for revisions and
// waiting.
const maxCommands = 150

func (w *attackedRun) runAttacks() {
	w.Helper()
	w.tally.runs++
	w.startRun()
	for range maxCommands {
		p := positionAfter(w.def, w.accepted)
		w.checkSeen(p, w.rig.look())
		if w.hook != nil {
			w.hook(p)
		}
		for _, a := range illegalAttempts(w.randomSource, w.def, p) {
			w.sendIllegal(p, a)
		}
		if p.kind == "end" {
			if p.status == "completed" {
				w.tally.completed++
			}
			return
		}
		c, ok := legalCommand(w.randomSource, w.def, p)
		if !ok {
			c = command{kind: "abort"} // no output meets the criteria
		}
		if w.contest != nil && c.kind == "continue" && !c.person && oneIn(w.randomSource, 4) {
			w.contest(p, c)
			continue
		}
		w.sendLegal(p, c)
	}
}

// startRun starts the run after attempts to start it illegally.
func (w *attackedRun) startRun() {
	w.Helper()
	vars := withoutServerVars(drawVars(w.randomSource, pickOne(w.randomSource, 2, 6, 9)), w.def)
	for _, bad := range []struct {
		cheat, rule, name string
		value             any
	}{
		{"a run started with a server variable", ruleServerVariable, pickOne(w.randomSource, w.def.serverVars()...), 1.0},
		{"a run started with too large a context", ruleTooLarge, "pad", strings.Repeat("x", 262_144)},
	} {
		forged := maps.Clone(vars)
		forged[bad.name] = bad.value
		if _, d := w.rig.start(forged); d == nil || d.rule != bad.rule {
			w.Fatalf("%s: %s\nof %s", bad.cheat, asJSON(d), w.def.marshalDefinition())
		}
		w.tally.illegal[bad.cheat]++
		w.tally.rules[bad.rule]++
	}
	if _, d := w.rig.start(vars); d != nil {
		w.Fatalf("a legal start is refused: %s: %s", d.rule, d.message)
	}
	w.tally.legal++
	w.accepted = []command{{kind: "start", context: vars, person: w.people}}
}

func (w *attackedRun) sendLegal(p position, c command) {
	w.Helper()
	s, d := w.rig.send(c)
	if d != nil {
		w.failAt(p, c, "a legal command is refused by %s: %s", d.rule, d.message)
	}
	w.tally.legal++
	w.accepted = append(w.accepted, c)
	w.checkSeen(positionAfter(w.def, w.accepted), s)
}

// sendIllegal sends an attempt unless it is legal according to the model.
func (w *attackedRun) sendIllegal(p position, a cheatAttempt) {
	w.Helper()
	rules := w.def.brokenRules(p, a.command)
	if len(rules) == 0 {
		w.tally.leftOver++
		return
	}
	before := w.rig.state()
	s, d := w.rig.send(a.command)
	switch {
	case d == nil:
		w.failAt(p, a.command, "%s is accepted and leads to %s, but violates %v", a.cheat, s.whole, rules)
	case !slices.Contains(rules, d.rule):
		w.failAt(p, a.command, "%s is refused by %s (%s), which it does not violate; it violates %v", a.cheat, d.rule, d.message, rules)
	case d.message == "":
		w.failAt(p, a.command, "%s is refused by %s without a message", a.cheat, d.rule)
	}
	if after := w.rig.state(); after != before {
		w.failAt(p, a.command, "%s is refused, but has changed the run from\n%s\nto\n%s", a.cheat, before, after)
	}
	w.checkHidden(p, a.command, d.whole)
	w.tally.illegal[a.cheat]++
	w.tally.rules[d.rule]++
}

func (w *attackedRun) failAt(p position, c command, format string, args ...any) {
	w.Helper()
	w.Fatalf("%s\nat %s with %s\ncommand %s\nafter %s\nof %s", fmt.Sprintf(format, args...), p, asJSON(p.vars), c, w.accepted, w.def.marshalDefinition())
}

// String formats a command without long texts.
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

// checkSeen compares an answer with the model.
func (w *attackedRun) checkSeen(p position, s seen) {
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
	id, title := "", ""
	if p.at != nil {
		id, title = p.at.id, p.at.titleMark()
	}
	expect("id", pos.ID, id)
	expect("title", pos.Title, title)
	var options, needs []string
	for _, o := range pos.Options {
		options = append(options, o.ID)
	}
	for _, n := range pos.Needs {
		needs = append(needs, n.Variable)
	}
	expect("options", options, p.options)
	expect("person", pos.Person, p.human)
	expect("needs", needs, p.needs)
	if p.kind == "step" {
		loop := [3]any{"", 0, 0}
		if pos.Loop != nil {
			loop = [3]any{pos.Loop.ID, pos.Loop.Round, pos.Loop.Rounds}
		}
		want := [3]any{"", 0, 0}
		if p.in != nil {
			want = [3]any{p.in.id, p.round, p.rounds}
		}
		expect("loop", loop, want)
		expect("the first step", len(pos.MetaGuidance) > 0, w.def.meta != "" && p.done == 0)
		if !strings.Contains(pos.Prompt, p.prompt) {
			expect("prompt", pos.Prompt, p.prompt)
		}
	} else {
		expect("prompt", pos.Prompt, "")
		expect("criteria", pos.Criteria, []string(nil))
	}
	if len(differs) > 0 {
		w.Fatalf("the run is at a different position: %s\nat %s with %s\nafter %s\nof %s",
			strings.Join(differs, "; "), p, asJSON(p.vars), w.accepted, w.def.marshalDefinition())
	}
	w.checkHidden(p, command{}, s.whole)
}

// mark matches the marks of steps and functions in an answer.
var mark = regexp.MustCompile(`(SECRET|TITLE|SHARED)-(\d+)-`)

// checkHidden checks that an answer reveals nothing that the run has not reached: no texts
// of steps that were not shown, and no titles or ids of other steps. Texts of the caller
// may be repeated.
func (w *attackedRun) checkHidden(p position, said command, whole string) {
	w.Helper()
	known := map[int]bool{}
	for _, s := range p.reached {
		known[s.serial] = true
	}
	named := maps.Clone(known)
	shared := map[string]bool{}
	for _, s := range []*step{p.at, p.in} {
		if s != nil {
			named[s.serial] = true
		}
	}
	for _, s := range p.reached {
		for _, f := range s.refers {
			shared[f] = true
		}
	}
	for _, m := range mark.FindAllStringSubmatch(whole, -1) {
		n, err := strconv.Atoi(m[2])
		switch {
		case err != nil:
			w.failAt(p, said, "%s is not a valid mark: %v", m[0], err)
		case m[1] == "SECRET" && !known[n]:
			w.failAt(p, said, "the texts of step %d, which was not reached, are revealed: %s", n, whole)
		case m[1] == "TITLE" && !named[n]:
			w.failAt(p, said, "the title of the later step %d is revealed: %s", n, whole)
		case m[1] == "SHARED" && !shared[w.def.functions[n].name]:
			w.failAt(p, said, "a function of later steps is revealed: %s", whole)
		}
	}
	for _, s := range w.def.allSteps() {
		if !named[s.serial] && s.id != said.step && strings.Contains(whole, s.id) {
			w.failAt(p, said, "the id %s of a later step is revealed: %s", s.id, whole)
		}
	}
}
