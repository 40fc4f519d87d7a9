package engine

import (
	"fmt"
	"maps"

	"github.com/guideway-dev/guideway"
)

// dialect is the part of the command rules that differs between the guided dialects.
type dialect interface {
	PositionOf(s State) Position
	checkContext(s State, context map[string]any) *Refusal
	// defaultVars returns the variables that the definition sets at the start.
	defaultVars() map[string]any
	decideAnswer(s State, c *Continue) ([]Event, *Refusal)
	decideContinue(s State, c *Continue) ([]Event, *Refusal)
	nextEvent(s State) (Event, bool)
	acceptsEvent(s State, e Event) bool
}

var (
	_ dialect = (*Program)(nil)
	_ dialect = (*PhaseProgram)(nil)
)

// Decide returns the events of a legal command in the order in which to apply them, or a
// refusal. It is pure: equal states and commands lead to equal results. The state may
// result from any prefix of a run's events; pending consequences of the prefix come first
// in the result.
func (p *Program) Decide(s State, c Command) ([]Event, *Refusal) { return decide(p, s, c) }

// Decide returns the events of a legal command, or a refusal, as Program.Decide does.
func (p *PhaseProgram) Decide(s State, c Command) ([]Event, *Refusal) { return decide(p, s, c) }

// FoldFrom is like Fold for the events that follow a state of the same program.
func (p *Program) FoldFrom(s State, events []Event) (State, error) { return foldFrom(p, s, events) }

// FoldFrom is like Program.FoldFrom. Automatic events must match those that the engine
// derives, except for texts and values.
func (p *PhaseProgram) FoldFrom(s State, events []Event) (State, error) {
	return foldFrom(p, s, events)
}

func (*Program) defaultVars() map[string]any { return nil }

func (p *PhaseProgram) defaultVars() map[string]any {
	vars := map[string]any{}
	for _, v := range p.Workflow.Variables {
		if v.HasDefault {
			vars[v.Name] = v.DefaultValue
		}
	}
	return vars
}

func decide(d dialect, s State, c Command) ([]Event, *Refusal) {
	if s.Started {
		if pending := addConsequences(d, s); len(pending) > 0 {
			for _, e := range pending {
				s = Apply(s, e)
			}
			events, refusal := decide(d, s, c)
			if refusal != nil {
				return nil, refusal
			}
			return append(pending, events...), nil
		}
	}
	switch {
	case c.Start != nil:
		return decideStart(d, s, c.Start)
	case !s.Started:
		return nil, &Refusal{Rule: RuleNotStarted, Message: "the run has not started"}
	case s.Ended != "":
		return nil, &Refusal{Rule: RuleEnded, Message: "the run has ended with the status " + string(s.Ended)}
	case c.Abort != nil:
		return []Event{{Kind: EventRunAborted, Reason: c.Abort.Reason}}, nil
	case c.Continue == nil:
		return nil, &Refusal{Rule: RuleOutputMissing, Message: "the command is empty"}
	}
	pos := d.PositionOf(s)
	if c.Continue.Step != "" && c.Continue.Step != pos.ID {
		return nil, &Refusal{Rule: RuleWrongStep, Given: c.Continue.Step, Allowed: pos.ID, Message: fmt.Sprintf("the run is not at the step %.80q, but at %q", c.Continue.Step, pos.ID)}
	}
	if r := checkPlaceholders(&pos, c.Continue, s.Vars); r != nil {
		return nil, r
	}
	if s.Gate != nil {
		return d.decideAnswer(s, c.Continue)
	}
	in := *c.Continue
	in.Context = mergeMembers(s.Vars, in.Context)
	return d.decideContinue(s, &in)
}

func decideStart(d dialect, s State, c *Start) ([]Event, *Refusal) {
	if s.Started {
		return nil, &Refusal{Rule: RuleStarted, Message: "the run has already started"}
	}
	if r := d.checkContext(s, c.Context); r != nil {
		return nil, r
	}
	if r := checkPlaceholders(&Position{}, &Continue{Context: c.Context}, d.defaultVars()); r != nil {
		return nil, r
	}
	vars := c.Context
	if defaults := d.defaultVars(); defaults != nil {
		vars = defaults
		maps.Copy(vars, c.Context)
	}
	return addConsequences(d, s, Event{Kind: EventRunStarted, Vars: vars, Person: c.Person}), nil
}

// addConsequences appends the events that follow automatically from the given ones, such as
// skipped steps, actions, rounds of loops, transitions and the end of the run.
func addConsequences(d dialect, s State, events ...Event) []Event {
	for _, e := range events {
		s = Apply(s, e)
	}
	for {
		e, ok := d.nextEvent(s)
		if !ok {
			return events
		}
		events = append(events, e)
		s = Apply(s, e)
	}
}

// applyConsequences returns the state after the events that follow automatically. A run
// that has not started has no such events.
func applyConsequences(d dialect, s State) State {
	if s.Started {
		for _, e := range addConsequences(d, s) {
			s = Apply(s, e)
		}
	}
	return s
}

func foldFrom(d dialect, s State, events []Event) (State, error) {
	for _, e := range events {
		if !d.acceptsEvent(s, e) {
			return s, guideway.Errorf(guideway.CodeConflict,
				"the event (%s) is not possible at this position of the run: the event belongs to a different definition, or a newer version of Guideway wrote the event", describeEvent(e))
		}
		s = Apply(s, e)
	}
	return s, nil
}
