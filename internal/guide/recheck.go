package guide

import (
	"maps"

	"github.com/guideway-dev/guideway"
)

// Recheck gives the state after all events of a run, as Fold does, and believes
// none of them: every command is decided again, and what follows must be what
// the engine gives. It is for events that nobody has authenticated. The last
// command may be cut short. An event that is not what the engine gives is an
// error with guideway.CodeConflict that names it.
func Recheck(f Flow, events []Event) (State, error) {
	var s State
	for i := 0; i < len(events); {
		decided, refusal := f.Decide(s, commandOf(f, events[i]))
		if p, ok := f.(*PhaseProgram); ok && events[i].Kind == EventStateImported {
			if i > 0 || !p.fitsImport(events[i]) {
				return s, forged(i, events[i], "it is not what its document gives")
			}
			decided, refusal = p.settle(s, events[i]), nil
		}
		if refusal != nil {
			return s, forged(i, events[i], refusal.Rule)
		}
		for _, want := range decided {
			if i == len(events) {
				return s, nil
			}
			if !sameEvent(want, events[i]) {
				return s, forged(i, events[i], "it should be "+string(want.Kind)+" "+want.Step)
			}
			s = Apply(s, events[i])
			i++
		}
	}
	return s, nil
}

func forged(i int, e Event, why string) error {
	return guideway.Errorf(guideway.CodeConflict, "event %d (%s %s) does not follow from those before it: %s", i+1, e.Kind, e.Step, why)
}

// sameEvent compares events as JSON. Reasons are words, which a version may
// change; those of somebody's doing are in the command.
func sameEvent(a, b Event) bool {
	a.Reason, b.Reason = "", ""
	return sameJSON(a, b)
}

// commandOf gives the command that has led to an event.
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
		c.Output, c.Notes, c.Context = e.Output, e.Notes, e.Vars
	case EventAsserted:
		c.Notes, c.Context = e.Notes, e.Vars
	case EventStepSkipped, EventPhaseSkipped:
		c.Skip = &Skip{Reason: e.Reason}
	case EventGateAnswered, EventCheckpointAnswer, EventBranchTaken:
		c.Answer = &Answer{OptionID: e.Option, Decline: e.Option == "", Note: e.Notes}
	}
	return Command{Continue: c}
}

// withoutDefaults are the variables that a run was started with, as far as they
// are not the definition's own defaults.
func withoutDefaults(f Flow, vars map[string]any) map[string]any {
	p, ok := f.(*PhaseProgram)
	if !ok {
		return vars
	}
	out := maps.Clone(vars)
	for _, v := range p.Workflow.Variables {
		if value, set := out[v.Name]; set && v.HasDefault && sameJSON(value, v.DefaultValue) {
			delete(out, v.Name)
		}
	}
	return out
}
