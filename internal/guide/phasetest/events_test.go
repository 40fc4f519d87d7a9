package phasetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/guide"
)

// records are what is tried with a run's events.
type records struct{ *walk }

// prefixes says that a run that was cut off anywhere inside its last command
// settles at the same place, and that its events can be read back from JSON and
// folded.
func (r *records) prefixes(command) {
	r.Helper()
	e := r.engine
	before := slices.Clone(e.events[:len(e.events)-len(e.last)])
	whole := e.look()
	for n := 1; n <= len(e.last); n++ {
		s, err := e.program.FoldFrom(guide.State{}, read(r, append(before, e.last[:n]...)))
		if err != nil {
			r.Fatalf("%d events of a command do not fold: %v\nafter %s\nof %s", n, err, r.accepted, r.def.document())
		}
		cut := engine{program: e.program, run: s}
		if got := cut.look(); got.whole != whole.whole || got.status != whole.status {
			r.Fatalf("cut off behind %s, the run settles at %s %s, not at %s %s\nafter %s\nof %s",
				asJSON(e.last[n-1]), got.status, got.whole, whole.status, whole.whole, r.accepted, r.def.document())
		}
		r.tally.prefixes++
	}
}

// read is a list of events as it comes out of a store.
func read(t failer, events []guide.Event) []guide.Event {
	t.Helper()
	var list []guide.Event
	if err := json.Unmarshal([]byte(asJSON(events)), &list); err != nil {
		t.Fatalf("the events do not read: %v", err)
	}
	return list
}

// forge tries edited lists of the run's events.
func (r *records) forge(times int) {
	r.Helper()
	good := read(r, r.engine.events)
	if _, err := guide.Recheck(r.engine.program, good); err != nil {
		r.Fatalf("the run's own events are refused: %v\n%s\nof %s", err, asJSON(good), r.def.document())
	}
	for range times {
		what, list := edited(r.dice, r.def, read(r, good))
		if asJSON(list) == asJSON(good) {
			continue
		}
		_, err := guide.Recheck(r.engine.program, list)
		why := r.impossible(list)
		if why == (reason{}) {
			r.tally.harmless++
			if err != nil {
				r.Fatalf("%s: commands could have brought it about, and it is refused: %v\n%s\nof %s", what, err, asJSON(list), r.def.document())
			}
			continue
		}
		if err == nil {
			r.Fatalf("%s is taken (%s)\n%s\nwas %s\nof %s", what, why.text, asJSON(list), asJSON(good), r.def.document())
		}
		r.tally.forged++
		r.folds(what, why, list)
	}
}

// folds folds a forged list, as events are folded that a chain has
// authenticated: that must not break. Commands are not judged again there, but
// what follows from them must not be missing, repeated, in another order, or of
// another place.
func (r *records) folds(what string, why reason, list []guide.Event) {
	r.Helper()
	s, err := r.engine.program.FoldFrom(guide.State{}, list)
	if err != nil {
		return
	}
	r.engine.program.PositionOf(s)
	if s.Ended == guide.StatusAborted || !structural(what) || !why.follows {
		return // an abort may come at any time
	}
	r.Fatalf("%s folds (%s)\n%s\nof %s", what, why.text, asJSON(list), r.def.document())
}

// structural says whether an edit is about the order of events, or about where a
// move leads.
func structural(what string) bool {
	for _, moved := range []string{"step_started", "checkpoint_reached", "decision", "loop_", "phase_entered", "phase_exited", "transition_taken"} {
		if strings.Contains(what, moved) && (strings.HasPrefix(what, "the step ") || strings.HasPrefix(what, "the target ") || strings.HasPrefix(what, "the phase ")) {
			return true
		}
	}
	return strings.HasPrefix(what, "a ") && !strings.HasPrefix(what, "a variable")
}

// reason says why no legal commands can have brought events about; the zero
// value where they can. Follows says that it is an event that follows from a
// command by itself.
type reason struct {
	text    string
	follows bool
}

func reasonf(format string, args ...any) reason { return reason{text: fmt.Sprintf(format, args...)} }

// impossible asks the model about each command, and the engine about what
// follows from it.
func (r *records) impossible(list []guide.Event) reason {
	r.Helper()
	e := &engine{program: r.engine.program}
	var accepted []command
	for at := 0; at < len(list); at = len(e.events) {
		c := r.behind(list[at])
		switch {
		case c.kind == "":
			return reason{fmt.Sprintf("event %d is nobody's doing", at+1), true}
		case (c.kind == "start") != (len(accepted) == 0):
			return reasonf("event %d should begin the run, or should not", at+1)
		case c.kind == "start":
			b := &broken{}
			b.context(r.def, place{vars: map[string]any{}}, c.context)
			if len(b.rules) > 0 {
				return reasonf("its start breaks %v", b.rules)
			}
		default:
			if rules := r.def.breaks(whereIs(r.def, accepted), c); len(rules) > 0 {
				return reasonf("event %d, %s, breaks %v", at+1, c, rules)
			}
		}
		if _, d := e.send(c); d != nil {
			return reasonf("the engine refuses event %d: %s", at+1, d.message)
		}
		accepted = append(accepted, c)
		for i := at; i < min(len(e.events), len(list)); i++ {
			if want, got := reasonless(e.events[i]), reasonless(list[i]); got != want {
				elsewhere := placeOf(e.events[i]) != placeOf(list[i])
				return reason{fmt.Sprintf("event %d should be %s, and is %s", i+1, want, got), i > at && elsewhere}
			}
		}
	}
	return reason{}
}

// reasonless is an event without its words.
func reasonless(e guide.Event) string {
	e.Reason = ""
	return asJSON(e)
}

// placeOf is an event without its words and values: where it happens. Values are
// what a recheck computes again, not a fold.
func placeOf(e guide.Event) string {
	e.Vars, e.Value, e.List, e.Rounds, e.Message = nil, nil, nil, 0, ""
	return reasonless(e)
}

// behind is the command that an event comes from, or none.
func (r *records) behind(e guide.Event) command {
	c := command{kind: "continue", person: true, context: e.Vars}
	switch e.Kind {
	case guide.EventRunStarted:
		c = command{kind: "start", person: e.Person, context: maps.Clone(e.Vars)}
		for _, v := range r.def.vars {
			if value, ok := c.context[v.name]; ok && v.hasValue && asJSON(value) == asJSON(v.value) {
				delete(c.context, v.name)
			}
		}
		return c
	case guide.EventRunAborted:
		return command{kind: "abort"}
	case guide.EventContextSet:
	case guide.EventStepCompleted:
		c.output, c.notes = e.Output, e.Notes
	case guide.EventAsserted:
		c.notes = e.Notes
	case guide.EventStepSkipped, guide.EventPhaseSkipped:
		c.skip, c.context = true, nil
	case guide.EventCheckpointAnswer, guide.EventBranchTaken:
		c.context = nil
		c.answer = &reply{option: e.Option, decline: e.Option == "", note: e.Notes}
	default:
		return command{}
	}
	if len(c.context) == 0 {
		c.context = nil
	}
	return c
}

// edited changes one thing in a list of events, and says what.
func edited(d dice, def *definition, list []guide.Event) (what string, forged []guide.Event) {
	i := d.below(len(list))
	kind := func(what string) string { return fmt.Sprintf("%s of event %d, %s,", what, i+1, list[i].Kind) }
	switch d.below(8) {
	case 0:
		return kind("a list without"), slices.Delete(list, i, i+1)
	case 1:
		return kind("a repeat"), slices.Insert(list, i, list[i])
	case 2:
		j := d.below(len(list))
		list[i], list[j] = list[j], list[i]
		return fmt.Sprintf("a list with events %d and %d exchanged", i+1, j+1), list
	case 3:
		j := min(len(list), i+1+d.below(4))
		return kind("a cut from there on"), slices.Delete(list, i, j)
	}
	return kind(change(d, def, &list[i])), list
}

// change edits a member of an event, and names it.
func change(d dice, def *definition, e *guide.Event) string {
	edits := []struct {
		name string
		edit func()
	}{
		{"the step", func() { e.Step = pick(d, def.all()...).id() }},
		{"the target", func() { e.To = pick(d, 0, 1, 2, 3, len(def.phases), 99, -1) }},
		{"the phase", func() { e.Phase = pick(d, 0, 1, 2, 3, 99, -1) }},
		{"the item", func() { e.Item = pick(d, 0, 1, 2, 3, 9, -1) }},
		{"the round", func() { e.Round = pick(d, 0, 1, 2, 3, 99, -1) }},
		{"the extent", func() { e.Rounds = pick(d, 0, 1, 2, -1) }},
		{"the list", func() { e.List = pick[[]any](d, nil, []any{"x"}, []any{1.0, 2.0, 3.0}) }},
		{"the option", func() { e.Option = pick(d, "", pick(d, def.all()...).id()) }},
		{"the variables", func() { e.Vars = claims() }},
		{"a variable", func() {
			e.Vars = maps.Clone(e.Vars)
			if e.Vars == nil {
				e.Vars = map[string]any{}
			}
			name := pick(d, append(def.owned(), names()...)...)
			e.Vars[name] = pick(d, value(d, name), "x")
		}},
		{"the lack of variables", func() { e.Vars = nil }},
		{"the output", func() { e.Output = pick(d, "", " ", "other") }},
		{"the notes", func() { e.Notes = pick(d, "", " ", "other") }},
		{"the person", func() { e.Person = !e.Person }},
		{"the skips", func() { e.Skips = pick(d, nil, []int{1}, []int{1, 2}, []int{99}) }},
		{"the part", func() { e.Part = pick(d, guide.PartEntry, guide.PartExit, guide.PartSteps, guide.PartLeft, "") }},
		{"the count", func() { e.Count = pick(d, 0, 1, 2, 99, -1) }},
		{"the value", func() { e.Value = pick[any](d, nil, "x", []any{}) }},
		{"the action's target", func() { e.Target = pick(d, "", "size", "mark") }},
		{"the message", func() { e.Message = "other" }},
		{"what is undone", func() { e.Undone = pick(d, nil, []string{"x"}) }},
		{"the kind", func() {
			e.Kind = pick(d, guide.EventContextSet, guide.EventStepCompleted, guide.EventStepSkipped, guide.EventPhaseSkipped,
				guide.EventRunCompleted, guide.EventCheckpointAnswer, guide.EventBranchTaken, guide.EventAsserted, guide.EventStateImported,
				guide.EventTransitionTaken, guide.EventPhaseExited, guide.EventGateAnswered, "")
		}},
		{"the gate", func() { e.Gate = true }},
		{"the state", func() {
			e.State = &guide.PhaseState{Phase: d.below(9), Part: guide.PartExit, Loop: &guide.PhaseLoop{Round: -1}}
		}},
	}
	one := pick(d, edits...)
	one.edit()
	return one.name
}
