package guide

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/phases"
)

// settle adds to the given events what follows from them without anybody's
// doing: actions, steps and loops that begin and end, decisions, transitions.
func (p *PhaseProgram) settle(s State, events ...Event) []Event {
	for _, e := range events {
		s = Apply(s, e)
	}
	for {
		e, ok := p.move(s)
		if !ok {
			return events
		}
		events = append(events, e)
		s = Apply(s, e)
	}
}

// move gives the one event that follows from the state, if any does.
func (p *PhaseProgram) move(s State) (Event, bool) {
	if !s.Started || s.Ended != "" || s.Gate != nil {
		return Event{}, false
	}
	ph := p.at(s)
	if ph.Phase == 0 {
		if len(p.unset(s)) > 0 {
			return Event{}, false
		}
		return Event{Kind: EventPhaseEntered, Phase: p.numbers[p.Workflow.InitialPhase], Step: p.Workflow.InitialPhase}, true
	}
	phase := p.phase(ph)
	switch ph.Part {
	case PartEntry:
		return p.act(s, ph, phase.EntryActions)
	case PartSteps:
		return p.moveStep(s, ph, &phase.Steps[ph.Index], ph.Index)
	case PartLoops:
		return p.moveLoop(s, ph, &phase.Loops[ph.Index])
	case PartCheckpoints:
		c := &phase.Checkpoints[ph.Index]
		return Event{Kind: EventCheckpointReached, Phase: ph.Phase, Item: ph.Index + 1, Step: c.ID, Person: c.Person || s.Person}, true
	case PartDecisions:
		return p.moveDecision(s, ph, &phase.Decisions[ph.Index])
	case PartTransitions:
		return p.moveTransition(s, ph, phase)
	case PartExit:
		if e, acts := p.act(s, ph, phase.ExitActions); acts || ph.Act < len(phase.ExitActions) {
			return e, acts
		}
		return Event{Kind: EventPhaseExited, Phase: ph.Phase, Step: phase.ID, To: ph.To}, true
	default:
		return p.moveOn(s, ph)
	}
}

// unset are the required variables that a run does not have yet.
func (p *PhaseProgram) unset(s State) []string {
	var names []string
	for _, v := range p.Workflow.Variables {
		if v.Required && s.Vars[v.Name] == nil && !slices.Contains(p.owned, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// act carries out the next action of a list. A validate action on a variable
// that does not hold, and one on anything else, stops the run there.
func (p *PhaseProgram) act(s State, ph PhaseState, actions []phases.Action) (Event, bool) {
	if ph.Act >= len(actions) {
		return Event{}, false
	}
	a := &actions[ph.Act]
	e := Event{Phase: ph.Phase, Part: ph.Part, Target: a.Target, Message: a.Message}
	if step := p.step(ph); step != nil {
		e.Step = step.ID
	}
	switch a.Action {
	case phases.ActionLog:
		e.Kind, e.Value = EventLogged, a.Value
	case phases.ActionEmit:
		e.Kind, e.Value = EventEmitted, a.Value
	case phases.ActionSet:
		e.Kind, e.Vars = EventVariableSet, assign(s.Vars, a.Target, a.Value)
	default:
		// A step's validate actions were judged with its output, and those that
		// only the caller can judge with its notes.
		inStep := ph.Part == PartSteps || ph.Part == PartLoops
		if !inStep && (!p.isVariable(a.Target) || !holds(a, p.vars(s))) {
			return Event{}, false
		}
		e.Kind = EventChecked
		if !p.isVariable(a.Target) {
			e.Kind, e.Count = EventAsserted, 1
		}
	}
	return e, true
}

// assign gives the variable that changes where a value is set, by a name or a
// dotted path into an object.
func assign(vars map[string]any, path string, value any) map[string]any {
	name, rest, dotted := strings.Cut(path, ".")
	if dotted {
		object, _ := vars[name].(map[string]any)
		value = merged(object, assign(object, rest, value))
	}
	return map[string]any{name: value}
}

// isVariable says whether a validate action is about a variable, which the
// engine can judge.
func (p *PhaseProgram) isVariable(target string) bool {
	name, _, _ := strings.Cut(target, ".")
	return p.Workflow.Variable(name) != nil || slices.Contains(p.owned, name)
}

// holds says whether a validate action on a variable is met: it equals the
// value, or exists where there is none.
func holds(a *phases.Action, vars condition.Lookup) bool {
	value, found, _ := vars.Path(a.Target)
	if !a.HasValue {
		return found && value != nil
	}
	return found && sameJSON(value, a.Value)
}

// sameJSON compares two values as JSON.
func sameJSON(a, b any) bool {
	x, err := json.Marshal(a)
	if err != nil {
		return false
	}
	y, err := json.Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// instructions are the validate actions, from the next one on, that only the
// caller can judge: those of entry and exit.
func (p *PhaseProgram) instructions(ph PhaseState) []phases.Action {
	phase := p.phase(ph)
	if phase == nil {
		return nil
	}
	var actions []phases.Action
	switch ph.Part {
	case PartEntry:
		actions = phase.EntryActions
	case PartExit:
		actions = phase.ExitActions
	default:
		return nil
	}
	end := ph.Act
	for end < len(actions) && actions[end].Action == phases.ActionValidate && !p.isVariable(actions[end].Target) {
		end++
	}
	return actions[min(ph.Act, end):end]
}

// moveStep begins a step, and carries out its actions once it is completed.
func (p *PhaseProgram) moveStep(s State, ph PhaseState, step *phases.Step, index int) (Event, bool) {
	switch {
	case ph.Done:
		return p.act(s, ph, step.Actions)
	case ph.Started:
		return Event{}, false
	}
	e := Event{Kind: EventStepStarted, Phase: ph.Phase, Item: index + 1, Step: step.ID}
	if ph.Loop != nil {
		e.Round = ph.Loop.Round
	}
	return e, true
}

// moveLoop begins a loop, its rounds and their steps, and ends it.
func (p *PhaseProgram) moveLoop(s State, ph PhaseState, loop *phases.Loop) (Event, bool) {
	e := Event{Phase: ph.Phase, Item: ph.Index + 1, Step: loop.ID}
	end := func(kind EventKind, reason string) (Event, bool) {
		e.Kind, e.Reason = kind, reason
		if ph.Loop != nil {
			e.Round = ph.Loop.Round
		}
		return e, true
	}
	if ph.Loop == nil {
		list, problem := p.items(s, loop)
		if problem != "" {
			return Event{}, false
		}
		e.Kind, e.List, e.Rounds = EventLoopStarted, list, -1
		if loop.Type == phases.LoopForEach {
			e.Rounds = len(list)
		}
		return e, true
	}
	broken := ph.Loop.Round > 0 && !ph.Started && loop.BreakCondition != nil && loop.BreakCondition.Decide(p.vars(s)) == condition.Yes
	switch step := p.loopStep(ph); {
	case len(loop.Steps) == 0:
		return end(EventLoopCompleted, "it has no steps")
	case broken && ph.Loop.Step > 0:
		return end(EventLoopBroken, loop.BreakCondition.String())
	case step != nil:
		return p.moveStep(s, ph, step, ph.Loop.Step)
	}
	return p.moveRound(s, ph, loop, end)
}

// moveRound decides at the end of a round whether there is another.
func (p *PhaseProgram) moveRound(s State, ph PhaseState, loop *phases.Loop, end func(EventKind, string) (Event, bool)) (Event, bool) {
	l := ph.Loop
	switch {
	case loop.Type == phases.LoopForEach && l.Round >= len(l.Items):
		return end(EventLoopCompleted, "all items are done")
	case l.Round >= loop.MaxIterations:
		return end(EventLoopCompleted, "the maximum of iterations is reached")
	case loop.Type == phases.LoopWhile, loop.Type == phases.LoopDoWhile && l.Round > 0:
		switch loop.Condition.Decide(p.roundVars(s, ph, loop)) {
		case condition.Unknown:
			return Event{}, false
		case condition.No:
			return end(EventLoopCompleted, "condition is false: "+loop.Condition.String())
		}
	}
	e := Event{Kind: EventLoopIteration, Phase: ph.Phase, Item: ph.Index + 1, Step: loop.ID, Round: l.Round + 1}
	if loop.Type == phases.LoopForEach {
		e.Value = l.Items[l.Round]
	}
	return e, true
}

// roundVars are the variables that a loop's condition sees: those of the round
// that it lets begin, or behind a doWhile of the one that is over.
func (p *PhaseProgram) roundVars(s State, ph PhaseState, loop *phases.Loop) condition.Lookup {
	vars := p.vars(s)
	if loop.Type != phases.LoopWhile || loop.Variable == "" {
		return vars
	}
	return func(name string) (any, bool) {
		if name == loop.Variable {
			return float64(ph.Loop.Round + 1), true
		}
		return vars(name)
	}
}

// items gives the list that a forEach loop goes through.
func (p *PhaseProgram) items(s State, loop *phases.Loop) (list []any, problem string) {
	if loop.Type != phases.LoopForEach {
		return nil, ""
	}
	value, found, _ := p.vars(s).Path(loop.Over)
	list, ok := value.([]any)
	name, _, _ := strings.Cut(loop.Over, ".")
	switch {
	case value == nil && slices.Contains(p.owned, name):
		return nil, "" // nobody but the workflow could set it, and it has not
	case !found:
		return nil, "'" + loop.Over + "' is not set, and the loop goes through it"
	case !ok:
		return nil, "'" + loop.Over + "' must be a list for the loop to go through, but it is " + typeName(value)
	}
	return slices.Clone(list), ""
}

// moveDecision takes the first branch whose condition holds, else the default;
// where there is neither it offers the branches without a condition, and
// without those it passes.
func (p *PhaseProgram) moveDecision(s State, ph PhaseState, d *phases.Decision) (Event, bool) {
	e := Event{Phase: ph.Phase, Item: ph.Index + 1, Step: d.ID}
	if !ph.Started {
		e.Kind = EventDecisionReached
		return e, true
	}
	taken, verdict := p.branch(s, d)
	switch {
	case verdict == condition.Unknown:
		return Event{}, false
	case taken != nil:
		e.Kind, e.Option, e.To = EventBranchTaken, taken.ID, p.numbers[taken.TransitionTo]
	case len(p.offered(ph)) > 0:
		e.Kind, e.Person = EventDecisionOffered, s.Person
	case ph.Index == len(p.phase(ph).Decisions)-1 && len(p.phase(ph).Transitions) == 0:
		return Event{}, false // nothing else leads on
	default:
		e.Kind = EventDecisionPassed
	}
	return e, true
}

// branch decides a decision; Unknown waits for a variable.
func (p *PhaseProgram) branch(s State, d *phases.Decision) (*phases.Branch, condition.Verdict) {
	vars := p.vars(s)
	var fallback *phases.Branch
	for i := range d.Branches {
		b := &d.Branches[i]
		if b.IsDefault && fallback == nil {
			fallback = b
		}
		if b.Condition == nil {
			continue
		}
		switch b.Condition.Decide(vars) {
		case condition.Yes:
			return b, condition.Yes
		case condition.Unknown:
			return nil, condition.Unknown
		}
	}
	if fallback != nil {
		return fallback, condition.Yes
	}
	return nil, condition.No
}

// offered are the branches of the decision at work that have neither condition
// nor default: nothing but an answer takes one.
func (p *PhaseProgram) offered(ph PhaseState) []phases.Branch {
	var list []phases.Branch
	for _, b := range p.phase(ph).Decisions[ph.Index].Branches {
		if b.Condition == nil && !b.IsDefault {
			list = append(list, b)
		}
	}
	return list
}

// moveTransition takes the first transition that applies, else the default.
func (p *PhaseProgram) moveTransition(s State, ph PhaseState, phase *phases.Phase) (Event, bool) {
	to, ok := p.transition(p.vars(s), phase, true)
	if !ok {
		return Event{}, false
	}
	return Event{Kind: EventTransitionTaken, Phase: ph.Phase, Step: phase.ID, To: to}, true
}

// transition gives the phase that the transitions lead to. With wait, one that
// cannot be decided stops the search.
func (p *PhaseProgram) transition(vars condition.Lookup, phase *phases.Phase, wait bool) (to int, ok bool) {
	for i := range phase.Transitions {
		t := &phase.Transitions[i]
		if t.Condition == nil && t.IsDefault {
			continue
		}
		verdict := condition.Yes
		if t.Condition != nil {
			verdict = t.Condition.Decide(vars)
		}
		if verdict == condition.Yes {
			return p.numbers[t.To], true
		}
		if verdict == condition.Unknown && wait {
			return 0, false
		}
	}
	for i := range phase.Transitions {
		if phase.Transitions[i].IsDefault {
			return p.numbers[phase.Transitions[i].To], true
		}
	}
	return 0, false
}

// moveOn enters the phase that the way leads to, passes through one that is to
// be skipped, or ends the run. Skipped phases that lead in a circle stop it.
func (p *PhaseProgram) moveOn(s State, ph PhaseState) (Event, bool) {
	switch {
	case ph.To == 0:
		return Event{Kind: EventRunCompleted}, true
	case ph.Passed > 2*len(p.Workflow.Phases):
		return Event{}, false
	case !slices.Contains(ph.Skips, ph.To):
		return Event{Kind: EventPhaseEntered, Phase: ph.To, Step: p.Workflow.Phases[ph.To-1].ID}, true
	}
	phase := &p.Workflow.Phases[ph.To-1]
	to, ok := p.wayOn(s, phase)
	if !ok {
		return Event{}, false
	}
	return Event{Kind: EventPhaseSkipped, Phase: ph.To, Step: phase.ID, To: to, Reason: "an answer has it skipped"}, true
}

// wayOn is where a phase that is skipped leads to: its default way on (DESIGN 4),
// else the way whose condition holds; a terminal phase leads to the end. Where
// none of that is so there is no way on yet.
func (p *PhaseProgram) wayOn(s State, phase *phases.Phase) (to int, ok bool) {
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			if b.IsDefault {
				return p.numbers[b.TransitionTo], true
			}
		}
	}
	for _, t := range phase.Transitions {
		if t.IsDefault || t.Condition == nil {
			return p.numbers[t.To], true
		}
	}
	vars := p.own(condition.Map(s.Vars))
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			if b.Condition != nil && b.Condition.Decide(vars) == condition.Yes {
				return p.numbers[b.TransitionTo], true
			}
		}
	}
	if to, ok := p.transition(vars, phase, false); ok {
		return to, true
	}
	return 0, phase.Terminal()
}
