package engine

import (
	"maps"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Recheck returns the state after all events of a run, as Fold does, but decides every
// command again and compares the result with the events. It is for events without
// authentication. The events may end within the last command. If an event differs from the
// engine's own, Recheck returns an error with guideway.CodeConflict that names the event.
func Recheck(f Flow, events []Event) (State, error) {
	var s State
	for i := 0; i < len(events); {
		decided, refusal := f.Decide(s, commandOf(f, events[i]))
		if p, ok := f.(*PhaseProgram); ok && events[i].Kind == EventStateImported {
			if i > 0 || !p.acceptsImport(events[i]) {
				return s, mismatchError(i, events[i], "the imported state does not match its document")
			}
			decided, refusal = addConsequences(p, s, events[i]), nil
		}
		if refusal != nil {
			return s, mismatchError(i, events[i], refusal.Rule)
		}
		for _, want := range decided {
			if i == len(events) {
				return s, nil
			}
			if !sameEvent(want, events[i]) {
				return s, mismatchError(i, events[i], "expected "+describeEvent(want))
			}
			s = Apply(s, events[i])
			i++
		}
	}
	return s, nil
}

func mismatchError(i int, e Event, why string) error {
	return guideway.Errorf(guideway.CodeConflict, "event %d of the workflow (%s) does not follow from the events before it: %s", i+1, describeEvent(e), why)
}

// describeEvent returns the kind of an event, and its step if it has one.
func describeEvent(e Event) string { return strings.TrimSpace(string(e.Kind) + " " + e.Step) }

// sameEvent reports whether events are equal as JSON. It ignores reasons: the engine's
// reasons may change between versions, and a caller's reason is copied from the event into
// the command.
func sameEvent(a, b Event) bool {
	a.Reason, b.Reason = "", ""
	return jsontext.Equal(a, b)
}

// commandOf returns the command that results in an event.
func commandOf(f Flow, e Event) Command {
	c := &Continue{Person: true}
	switch e.Kind {
	case EventRunStarted:
		return Command{Start: &Start{Context: withoutDefaults(f, e.Vars), Person: e.Person}}
	case EventRunAborted:
		return Command{Abort: &Abort{Reason: e.Reason}}
	case EventContextSet:
		c.Context = e.Vars
	case EventStepCompleted:
		c.Output, c.Notes, c.Context, c.Checks = e.Output, e.Notes, e.Vars, outcomesOf(e.Evidence)
	case EventAsserted:
		c.Notes, c.Context = e.Notes, e.Vars
	case EventStepSkipped, EventPhaseSkipped:
		c.Skip = &Skip{Reason: e.Reason}
	case EventGateApproved, EventGateAnswered, EventCheckpointAnswer, EventBranchTaken:
		c.By.User = e.User
		c.Answer = &Answer{OptionID: e.Option, Decline: e.Option == "", Note: e.Notes}
	}
	return Command{Continue: c}
}

// withoutDefaults returns the variables that a run was started with, except those that
// equal a default of the definition.
func withoutDefaults(f Flow, vars map[string]any) map[string]any {
	p, ok := f.(*PhaseProgram)
	if !ok {
		return vars
	}
	out := maps.Clone(vars)
	for _, v := range p.Workflow.Variables {
		if value, set := out[v.Name]; set && v.HasDefault && jsontext.Equal(value, v.DefaultValue) {
			delete(out, v.Name)
		}
	}
	return out
}
