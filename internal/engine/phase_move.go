package engine

import (
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// nextEvent returns the next event that follows automatically from the state, if any.
func (p *PhaseProgram) nextEvent(s State) (Event, bool) {
	if !s.Started || s.Ended != "" || s.Gate != nil {
		return Event{}, false
	}
	ph := p.currentState(s)
	if ph.Phase == 0 {
		if len(p.missingVars(s)) > 0 {
			return Event{}, false
		}
		return Event{Kind: EventPhaseEntered, Phase: p.numbers[p.Workflow.InitialPhase], Step: p.Workflow.InitialPhase}, true
	}
	phase := p.phaseAt(ph)
	switch ph.Part {
	case PartEntry:
		return p.runAction(s, ph, phase.EntryActions)
	case PartSteps:
		return p.nextStepEvent(s, ph, &phase.Steps[ph.Index], ph.Index)
	case PartLoops:
		return p.nextLoopEvent(s, ph, &phase.Loops[ph.Index])
	case PartCheckpoints:
		c := &phase.Checkpoints[ph.Index]
		return Event{Kind: EventCheckpointReached, Phase: ph.Phase, Item: ph.Index + 1, Step: c.ID, Person: c.Person || s.Person, Approval: c.Approval}, true
	case PartDecisions:
		return p.nextDecisionEvent(s, ph, &phase.Decisions[ph.Index])
	case PartTransitions:
		return p.nextTransitionEvent(s, ph, phase)
	case PartExit:
		if e, acts := p.runAction(s, ph, phase.ExitActions); acts || ph.Act < len(phase.ExitActions) {
			return e, acts
		}
		return Event{Kind: EventPhaseExited, Phase: ph.Phase, Step: phase.ID, To: ph.To}, true
	default:
		return p.leavePhase(s, ph)
	}
}

// missingVars returns the names of the required variables that the caller must set and has
// not set.
func (p *PhaseProgram) missingVars(s State) []string {
	var names []string
	for _, v := range p.Workflow.Variables {
		if v.Required && s.Vars[v.Name] == nil && !slices.Contains(p.owned, v.Name) {
			names = append(names, v.Name)
		}
	}
	return names
}

// runAction runs the next action of a list. At an entry or exit, the run stops at a
// validate action that does not hold or that only the caller can judge.
func (p *PhaseProgram) runAction(s State, ph PhaseState, actions []phases.Action) (Event, bool) {
	if ph.Act >= len(actions) {
		return Event{}, false
	}
	a := &actions[ph.Act]
	e := Event{Phase: ph.Phase, Part: ph.Part, Target: a.Target, Message: a.Message}
	if step := p.stepAt(ph); step != nil {
		e.Step = step.ID
	}
	switch a.Action {
	case phases.ActionLog:
		e.Kind, e.Value = EventLogged, a.Value
	case phases.ActionEmit:
		e.Kind, e.Value = EventEmitted, a.Value
	case phases.ActionSet:
		e.Kind, e.Vars = EventVariableSet, phases.SetPath(s.Vars, a.Target, a.Value)
	default:
		// decideStep has already evaluated the validate actions of a step and required a
		// note for the others.
		inStep := ph.Part == PartSteps || ph.Part == PartLoops
		if !inStep && (!p.isVariable(a.Target) || !a.Holds(p.lookupVars(s))) {
			return Event{}, false
		}
		e.Kind = EventChecked
		if !p.isVariable(a.Target) {
			e.Kind, e.Count = EventAsserted, 1
		}
	}
	return e, true
}

// isVariable reports whether a validate action is about a variable, so that the engine can
// evaluate it.
func (p *PhaseProgram) isVariable(target string) bool {
	name, _, _ := strings.Cut(target, ".")
	return p.Workflow.Variable(name) != nil || slices.Contains(p.owned, name)
}

// instructions returns the next validate actions of entry or exit that only the caller can
// judge.
func (p *PhaseProgram) instructions(ph PhaseState) []phases.Action {
	phase := p.phaseAt(ph)
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

// nextStepEvent starts a step, and runs its actions after its completion.
func (p *PhaseProgram) nextStepEvent(s State, ph PhaseState, step *phases.Step, index int) (Event, bool) {
	switch {
	case ph.Done:
		return p.runAction(s, ph, step.Actions)
	case ph.Started:
		return Event{}, false
	}
	e := Event{Kind: EventStepStarted, Phase: ph.Phase, Item: index + 1, Step: step.ID}
	if ph.Loop != nil {
		e.Round = ph.Loop.Round
	}
	return e, true
}

// nextLoopEvent starts a loop, its rounds and their steps, and ends the loop.
func (p *PhaseProgram) nextLoopEvent(s State, ph PhaseState, loop *phases.Loop) (Event, bool) {
	e := Event{Phase: ph.Phase, Item: ph.Index + 1, Step: loop.ID}
	end := func(kind EventKind, reason string) (Event, bool) {
		e.Kind, e.Reason = kind, reason
		if ph.Loop != nil {
			e.Round = ph.Loop.Round
		}
		return e, true
	}
	if ph.Loop == nil {
		list, problem := p.loopItems(s, loop)
		if problem != "" {
			return Event{}, false
		}
		e.Kind, e.List, e.Rounds = EventLoopStarted, list, -1
		if loop.Type == phases.LoopForEach {
			e.Rounds = len(list)
		}
		return e, true
	}
	broken := ph.Loop.Round > 0 && !ph.Started && loop.BreakCondition != nil && loop.BreakCondition.Decide(p.lookupVars(s)) == expr.Yes
	switch step := p.loopStep(ph); {
	case len(loop.Steps) == 0:
		return end(EventLoopCompleted, "the loop has no steps")
	case broken && ph.Loop.Step > 0:
		return end(EventLoopBroken, loop.BreakCondition.String())
	case step != nil:
		return p.nextStepEvent(s, ph, step, ph.Loop.Step)
	}
	return p.nextRoundEvent(s, ph, loop, end)
}

// nextRoundEvent starts another round at the end of a round, or ends the loop.
func (p *PhaseProgram) nextRoundEvent(s State, ph PhaseState, loop *phases.Loop, end func(EventKind, string) (Event, bool)) (Event, bool) {
	l := ph.Loop
	switch {
	case loop.Type == phases.LoopForEach && l.Round >= len(l.Items):
		return end(EventLoopCompleted, "all items are done")
	case l.Round >= loop.MaxIterations:
		return end(EventLoopCompleted, "the maximum number of iterations is reached")
	case loop.Type == phases.LoopWhile, loop.Type == phases.LoopDoWhile && l.Round > 0:
		switch loop.Condition.Decide(p.conditionVars(s, ph, loop)) {
		case expr.Unknown:
			return Event{}, false
		case expr.No:
			return end(EventLoopCompleted, "condition is false: "+loop.Condition.String())
		}
	}
	e := Event{Kind: EventLoopIteration, Phase: ph.Phase, Item: ph.Index + 1, Step: loop.ID, Round: l.Round + 1}
	if loop.Type == phases.LoopForEach {
		e.Value = l.Items[l.Round]
	}
	return e, true
}

// conditionVars returns the variables that a loop's condition reads. The condition of a
// while loop reads the variables of the next round, that of a doWhile loop the variables of
// the round that has ended.
func (p *PhaseProgram) conditionVars(s State, ph PhaseState, loop *phases.Loop) expr.Lookup {
	vars := p.lookupVars(s)
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

// loopItems returns the list of a forEach loop, or a message if the list is not available
// yet.
func (p *PhaseProgram) loopItems(s State, loop *phases.Loop) (list []any, problem string) {
	if loop.Type != phases.LoopForEach {
		return nil, ""
	}
	value, found, _ := p.lookupVars(s).Path(loop.Over)
	list, ok := value.([]any)
	name, _, _ := strings.Cut(loop.Over, ".")
	switch {
	case value == nil && slices.Contains(p.owned, name):
		return nil, "" // only the workflow can set the list, and it has not done so yet
	case !found:
		return nil, "'" + loop.Over + "' is not set, but the loop iterates over it"
	case value == nil:
		return nil, "'" + loop.Over + "' must be a list for the loop, but it is null"
	case !ok:
		return nil, "'" + loop.Over + "' must be a list for the loop, but it is " + shape.WithArticle(jsontext.TypeName(value))
	}
	return slices.Clone(list), ""
}

// nextDecisionEvent takes the branch that chooseBranch returns. If there is none, it offers
// the branches without a condition, or else moves to the next item. The run waits if a
// condition is undecided, or if the phase has no other exit.
func (p *PhaseProgram) nextDecisionEvent(s State, ph PhaseState, d *phases.Decision) (Event, bool) {
	e := Event{Phase: ph.Phase, Item: ph.Index + 1, Step: d.ID}
	if !ph.Started {
		e.Kind = EventDecisionReached
		return e, true
	}
	taken, verdict := p.chooseBranch(s, d)
	switch {
	case verdict == expr.Unknown:
		return Event{}, false
	case taken != nil:
		e.Kind, e.Option, e.To = EventBranchTaken, taken.ID, p.numbers[taken.TransitionTo]
	case len(p.offeredBranches(ph)) > 0:
		e.Kind, e.Person = EventDecisionOffered, s.Person
	case ph.Index == len(p.phaseAt(ph).Decisions)-1 && len(p.phaseAt(ph).Transitions) == 0:
		return Event{}, false // the phase has no other exit
	default:
		e.Kind = EventDecisionPassed
	}
	return e, true
}

// chooseBranch evaluates a decision; Unknown means that it waits for a variable.
func (p *PhaseProgram) chooseBranch(s State, d *phases.Decision) (*phases.Branch, expr.Verdict) {
	vars := p.lookupVars(s)
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
		case expr.Yes:
			return b, expr.Yes
		case expr.Unknown:
			return nil, expr.Unknown
		}
	}
	if fallback != nil {
		return fallback, expr.Yes
	}
	return nil, expr.No
}

// offeredBranches returns the branches of the current decision that have no condition and
// are not the default. Only an answer can take them.
func (p *PhaseProgram) offeredBranches(ph PhaseState) []phases.Branch {
	return lists.Filter(p.phaseAt(ph).Decisions[ph.Index].Branches, func(b phases.Branch) bool { return b.Condition == nil && !b.IsDefault })
}

// nextTransitionEvent takes the first transition that applies, or else the default.
func (p *PhaseProgram) nextTransitionEvent(s State, ph PhaseState, phase *phases.Phase) (Event, bool) {
	to, ok := p.chooseTransition(p.lookupVars(s), phase, true)
	if !ok {
		return Event{}, false
	}
	return Event{Kind: EventTransitionTaken, Phase: ph.Phase, Step: phase.ID, To: to}, true
}

// chooseTransition returns the target of the first transition that applies, or else of the
// default. If wait is true, an undecided condition stops the search.
func (p *PhaseProgram) chooseTransition(vars expr.Lookup, phase *phases.Phase, wait bool) (to int, ok bool) {
	for i := range phase.Transitions {
		t := &phase.Transitions[i]
		if t.Condition == nil && t.IsDefault {
			continue
		}
		verdict := expr.Yes
		if t.Condition != nil {
			verdict = t.Condition.Decide(vars)
		}
		if verdict == expr.Yes {
			return p.numbers[t.To], true
		}
		if verdict == expr.Unknown && wait {
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

// leavePhase enters the next phase, passes through a skipped phase, or ends the run. It
// stops at a cycle of skipped phases.
func (p *PhaseProgram) leavePhase(s State, ph PhaseState) (Event, bool) {
	switch {
	case ph.To == 0:
		return Event{Kind: EventRunCompleted}, true
	case ph.Passed > 2*len(p.Workflow.Phases):
		return Event{}, false
	case !slices.Contains(ph.Skips, ph.To):
		return Event{Kind: EventPhaseEntered, Phase: ph.To, Step: p.Workflow.Phases[ph.To-1].ID}, true
	}
	phase := &p.Workflow.Phases[ph.To-1]
	to, ok := p.skippedTarget(s, phase)
	if !ok {
		return Event{}, false
	}
	return Event{Kind: EventPhaseSkipped, Phase: ph.To, Step: phase.ID, To: to, Reason: "an answer skips the phase"}, true
}

// skippedTarget returns the phase that follows a skipped phase: that of the default branch,
// or of a transition that is the default or has no condition, or else of the first branch
// or transition whose condition holds. A terminal phase leads to the end of the run. ok is
// false if the phase has no such target yet.
func (p *PhaseProgram) skippedTarget(s State, phase *phases.Phase) (to int, ok bool) {
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
	vars := p.hideUnsetOwned(expr.Map(s.Vars))
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			if b.Condition != nil && b.Condition.Decide(vars) == expr.Yes {
				return p.numbers[b.TransitionTo], true
			}
		}
	}
	if to, ok := p.chooseTransition(vars, phase, false); ok {
		return to, true
	}
	return 0, phase.Terminal()
}
