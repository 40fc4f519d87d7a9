package enginetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
)

// eventChecker tests the events of a run.
type eventChecker struct{ *walk }

// checkPrefixes checks that a run that was cut off within its last command continues to the
// same position, and that its events survive JSON and can be folded.
func (r *eventChecker) checkPrefixes(command) {
	r.Helper()
	e := r.engine
	before := slices.Clone(e.events[:len(e.events)-len(e.last)])
	whole := e.currentView()
	for n := 1; n <= len(e.last); n++ {
		s, err := e.program.FoldFrom(engine.State{}, readBack(r, append(before, e.last[:n]...)))
		if err != nil {
			r.Fatalf("%d events of a command cannot be folded: %v\nafter %s\nof %s", n, err, r.accepted, r.def.toDocument())
		}
		cut := flowEngine{program: e.program, run: s}
		if got := cut.currentView(); got.whole != whole.whole || got.status != whole.status {
			r.Fatalf("cut off after %s, the run continues to %s %s, want %s %s\nafter %s\nof %s",
				asJSON(e.last[n-1]), got.status, got.whole, whole.status, whole.whole, r.accepted, r.def.toDocument())
		}
		r.tally.prefixes++
	}
}

// readBack encodes and decodes events as a store does.
func readBack(t testReporter, events []engine.Event) []engine.Event {
	t.Helper()
	var list []engine.Event
	if err := json.Unmarshal([]byte(asJSON(events)), &list); err != nil {
		t.Fatalf("the events do not decode: %v", err)
	}
	return list
}

// checkForgeries rechecks edited lists of the run's events.
func (r *eventChecker) checkForgeries(times int) {
	r.Helper()
	good := readBack(r, r.engine.events)
	if _, err := engine.Recheck(r.engine.program, good); err != nil {
		r.Fatalf("the run's own events are refused: %v\n%s\nof %s", err, asJSON(good), r.def.toDocument())
	}
	for range times {
		what, list := editEvents(r.randomSource, r.def, readBack(r, good))
		if asJSON(list) == asJSON(good) {
			continue
		}
		_, err := engine.Recheck(r.engine.program, list)
		why := r.findViolation(list)
		if why == (violation{}) {
			r.tally.harmless++
			if err != nil {
				r.Fatalf("%s: refused, although commands can result in it: %v\n%s\nof %s", what, err, asJSON(list), r.def.toDocument())
			}
			continue
		}
		if err == nil {
			r.Fatalf("%s is accepted (%s)\n%s\nwas %s\nof %s", what, why.text, asJSON(list), asJSON(good), r.def.toDocument())
		}
		r.tally.forged++
		r.checkFold(what, why, list)
	}
}

// checkFold folds a forged list as if a chain had authenticated it, which must not panic. A
// fold does not check commands again, but automatic events must not be missing, repeated,
// reordered, or from a different position.
func (r *eventChecker) checkFold(what string, why violation, list []engine.Event) {
	r.Helper()
	s, err := r.engine.program.FoldFrom(engine.State{}, list)
	if err != nil {
		return
	}
	r.engine.program.PositionOf(s)
	if s.Ended == engine.StatusAborted || !isStructural(what) || !why.follows {
		return // an abort is legal at any position
	}
	r.Fatalf("%s folds (%s)\n%s\nof %s", what, why.text, asJSON(list), r.def.toDocument())
}

// isStructural reports whether an edit changes the order of events or the target of a move.
func isStructural(what string) bool {
	for _, moved := range []string{"step_started", "checkpoint_reached", "decision", "loop_", "phase_entered", "phase_exited", "transition_taken"} {
		if strings.Contains(what, moved) && (strings.HasPrefix(what, "the step ") || strings.HasPrefix(what, "the target ") || strings.HasPrefix(what, "the phase ")) {
			return true
		}
	}
	return strings.HasPrefix(what, "a ") && !strings.HasPrefix(what, "a variable")
}

// violation explains why legal commands cannot result in the events; the zero value means
// that they can. follows is set if the event is automatic.
type violation struct {
	text    string
	follows bool
}

func violationf(format string, args ...any) violation {
	return violation{text: fmt.Sprintf(format, args...)}
}

// findViolation checks commands with the model and automatic events with the engine.
func (r *eventChecker) findViolation(list []engine.Event) violation {
	r.Helper()
	e := &flowEngine{program: r.engine.program}
	var accepted []command
	for at := 0; at < len(list); at = len(e.events) {
		c := r.commandFor(list[at])
		switch {
		case c.kind == "":
			return violation{fmt.Sprintf("no command results in event %d", at+1), true}
		case (c.kind == "start") != (len(accepted) == 0):
			return violationf("event %d: exactly the first event must start the run", at+1)
		case c.kind == "start":
			b := &ruleSet{}
			b.checkContext(r.def, place{vars: map[string]any{}}, c.context)
			if len(b.rules) > 0 {
				return violationf("the start violates %v", b.rules)
			}
		default:
			if rules := r.def.brokenRules(replayModel(r.def, accepted), c); len(rules) > 0 {
				return violationf("event %d, %s, breaks %v", at+1, c, rules)
			}
		}
		if _, d := e.sendCommand(c); d != nil {
			return violationf("the engine refuses the command of event %d: %s", at+1, d.message)
		}
		accepted = append(accepted, c)
		for i := at; i < min(len(e.events), len(list)); i++ {
			if want, got := withoutReason(e.events[i]), withoutReason(list[i]); got != want {
				elsewhere := eventPlace(e.events[i]) != eventPlace(list[i])
				return violation{fmt.Sprintf("event %d must be %s, but is %s", i+1, want, got), i > at && elsewhere}
			}
		}
	}
	return violation{}
}

// withoutReason returns an event as JSON without its reason.
func withoutReason(e engine.Event) string {
	e.Reason = ""
	return asJSON(e)
}

// eventPlace returns an event as JSON without texts and values, because only Recheck
// compares texts and values.
func eventPlace(e engine.Event) string {
	e.Vars, e.Value, e.List, e.Rounds, e.Message = nil, nil, nil, 0, ""
	return withoutReason(e)
}

// commandFor returns the command that results in an event, or an empty one.
func (r *eventChecker) commandFor(e engine.Event) command {
	c := command{kind: "continue", person: true, context: e.Vars}
	switch e.Kind {
	case engine.EventRunStarted:
		c = command{kind: "start", person: e.Person, context: maps.Clone(e.Vars)}
		for _, v := range r.def.vars {
			if value, ok := c.context[v.name]; ok && v.hasValue && asJSON(value) == asJSON(v.value) {
				delete(c.context, v.name)
			}
		}
		return c
	case engine.EventRunAborted:
		return command{kind: "abort"}
	case engine.EventContextSet:
	case engine.EventStepCompleted:
		c.output, c.notes, c.recorded = e.Output, e.Notes, true
		for _, one := range e.Evidence {
			if c.checks == nil {
				c.checks = map[string]string{}
			}
			c.checks[one.Key] = outcomeName(one)
		}
	case engine.EventAsserted:
		c.notes = e.Notes
	case engine.EventStepSkipped, engine.EventPhaseSkipped:
		c.skip, c.context = true, nil
	case engine.EventCheckpointAnswer, engine.EventBranchTaken:
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

// outcomeName returns the outcome of a check of an event.
func outcomeName(e engine.Evidence) string {
	switch {
	case e.Undefined:
		return checkUndefined
	case e.Passed:
		return checkPasses
	case e.Inconclusive:
		return checkInconclusive
	default:
		return checkFails
	}
}

// editEvents makes one change in a list of events, and describes it.
func editEvents(d randomSource, def *definition, list []engine.Event) (what string, forged []engine.Event) {
	i := d.intBelow(len(list))
	kind := func(what string) string { return fmt.Sprintf("%s of event %d, %s,", what, i+1, list[i].Kind) }
	switch d.intBelow(8) {
	case 0:
		return kind("a removal"), slices.Delete(list, i, i+1)
	case 1:
		return kind("a repeat"), slices.Insert(list, i, list[i])
	case 2:
		j := d.intBelow(len(list))
		list[i], list[j] = list[j], list[i]
		return fmt.Sprintf("a swap of events %d and %d", i+1, j+1), list
	case 3:
		j := min(len(list), i+1+d.intBelow(4))
		return kind("a deleted range that starts at it"), slices.Delete(list, i, j)
	}
	return kind(editEvent(d, def, &list[i])), list
}

// editEvent changes one member of an event, and returns its name.
func editEvent(d randomSource, def *definition, e *engine.Event) string {
	edits := []struct {
		name string
		edit func()
	}{
		{"the step", func() { e.Step = drawFrom(d, def.allElements()...).elementID() }},
		{"the target", func() { e.To = drawFrom(d, 0, 1, 2, 3, len(def.phases), 99, -1) }},
		{"the phase", func() { e.Phase = drawFrom(d, 0, 1, 2, 3, 99, -1) }},
		{"the item", func() { e.Item = drawFrom(d, 0, 1, 2, 3, 9, -1) }},
		{"the round", func() { e.Round = drawFrom(d, 0, 1, 2, 3, 99, -1) }},
		{"the extent", func() { e.Rounds = drawFrom(d, 0, 1, 2, -1) }},
		{"the list", func() { e.List = drawFrom[[]any](d, nil, []any{"x"}, []any{1.0, 2.0, 3.0}) }},
		{"the option", func() { e.Option = drawFrom(d, "", drawFrom(d, def.allElements()...).elementID()) }},
		{"the variables", func() { e.Vars = falseClaims() }},
		{"a variable", func() {
			e.Vars = maps.Clone(e.Vars)
			if e.Vars == nil {
				e.Vars = map[string]any{}
			}
			name := drawFrom(d, append(def.serverVars(), variableNames()...)...)
			e.Vars[name] = drawFrom(d, drawValue(d, name), "x")
		}},
		{"the removal of all variables", func() { e.Vars = nil }},
		{"the output", func() { e.Output = drawFrom(d, "", " ", "other") }},
		{"the notes", func() { e.Notes = drawFrom(d, "", " ", "other") }},
		{"the person", func() { e.Person = !e.Person }},
		{"the skips", func() { e.Skips = drawFrom(d, nil, []int{1}, []int{1, 2}, []int{99}) }},
		{"the part", func() { e.Part = drawFrom(d, engine.PartEntry, engine.PartExit, engine.PartSteps, engine.PartLeft, "") }},
		{"the count", func() { e.Count = drawFrom(d, 0, 1, 2, 99, -1) }},
		{"the value", func() { e.Value = drawFrom[any](d, nil, "x", []any{}) }},
		{"the action's target", func() { e.Target = drawFrom(d, "", "size", "mark") }},
		{"the message", func() { e.Message = "other" }},
		{"the undone items", func() { e.Undone = drawFrom(d, nil, []string{"x"}) }},
		{"the kind", func() {
			e.Kind = drawFrom(d, engine.EventContextSet, engine.EventStepCompleted, engine.EventStepSkipped, engine.EventPhaseSkipped,
				engine.EventRunCompleted, engine.EventCheckpointAnswer, engine.EventBranchTaken, engine.EventAsserted, engine.EventStateImported,
				engine.EventTransitionTaken, engine.EventPhaseExited, engine.EventGateAnswered, "")
		}},
		{"the evidence", func() {
			e.Evidence = slices.Clone(e.Evidence)
			for i := range e.Evidence {
				switch drawFrom(d, 0, 1, 2, 3, 4) {
				case 0:
					e.Evidence[i].Passed = !e.Evidence[i].Passed
				case 1:
					e.Evidence[i].Decided = !e.Evidence[i].Decided
				case 2:
					e.Evidence[i].Inconclusive = !e.Evidence[i].Inconclusive
				case 3:
					e.Evidence[i].Key += "x"
				}
			}
		}},
		{"the gate", func() { e.Gate = true }},
		{"the state", func() {
			e.State = &engine.PhaseState{Phase: d.intBelow(9), Part: engine.PartExit, Loop: &engine.PhaseLoop{Round: -1}}
		}},
	}
	one := drawFrom(d, edits...)
	one.edit()
	return one.name
}
