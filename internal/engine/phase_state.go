package engine

import (
	"slices"
)

// PhaseState is the state of a run in the phases of a workflow.
type PhaseState struct {
	// Phase is the 1-based number of the current phase.
	Phase int
	// Part is the current part of the phase, Index the 0-based index of the current item in
	// the part.
	Part  Part
	Index int
	// Started is set if the item at Index was announced, Done if the step at
	// Index is completed and its actions run. Act is the index of the next action.
	Started, Done bool
	Act           int
	// Loop is the state of the current loop, or nil.
	Loop *PhaseLoop
	// To is the next phase after this one; 0 ends the run.
	To int
	// Skips are the phases to pass through, sorted.
	Skips []int
	// Passed counts the phases that were entered or skipped since the last command, because
	// phases without work may form a cycle.
	Passed int
}

// PhaseLoop is the state of a run in a loop of a phase.
type PhaseLoop struct {
	// Round is 1-based; 0 before the first one.
	Round int
	// Step is the 0-based index of the step in the round; the number of steps or more means
	// the end of the round.
	Step int
	// Items is the list of a forEach loop at the start of the loop.
	Items []any
}

// Part is a part of a phase.
type Part string

// The parts of a phase, in the order of execution.
const (
	PartEntry       Part = "entry"
	PartSteps       Part = "steps"
	PartLoops       Part = "loops"
	PartCheckpoints Part = "checkpoints"
	PartDecisions   Part = "decisions"
	PartTransitions Part = "transitions"
	PartExit        Part = "exit"
	// PartLeft is after the exit of the phase, before the next phase.
	PartLeft Part = "left"
)

// applyPhases is Apply for runs of phase workflows.
func applyPhases(s State, e Event) State {
	if e.Kind == EventStateImported {
		return s.applyImport(e)
	}
	var ph PhaseState
	if s.Phases != nil {
		ph = *s.Phases
	}
	if len(e.Vars) > 0 {
		s.Vars = mergeVars(s.Vars, e.Vars)
	}
	if s.isCommandEvent(e) {
		ph.Passed = 0
	}
	switch e.Kind {
	case EventLoopCompleted:
		done, items := ph.loopProgress()
		s = s.addRest(e.Step, done, items)
		ph = ph.applyItemEvent(e)
	case EventPhaseEntered:
		ph = PhaseState{Phase: e.Phase, Part: PartEntry, Skips: ph.Skips, Passed: ph.Passed + 1}
	case EventPhaseExited:
		ph.Part, ph.To = PartLeft, e.To
	case EventPhaseSkipped:
		ph = ph.applySkip(e)
	case EventContextSet:
		if ph.Part == PartDecisions { // evaluate the decisions before the answer again
			ph.Index, ph.Started = 0, false
		}
	case EventStepCompleted:
		ph.Done, ph.Act = true, 0
		s.Steps++
	case EventStepSkipped:
		ph.advanceStep()
	case EventCheckpointReached, EventDecisionOffered:
		ph.startItem(e)
		s.Gate = &OpenGate{Step: e.Step, Person: e.Person, Approval: e.Approval}
	case EventCheckpointAnswer:
		s.Gate = nil
		ph = ph.applyAnswer(e)
	case EventBranchTaken:
		s.Gate = nil
		ph.startExit(e.To)
	case EventTransitionTaken:
		ph.startExit(e.To)
	case EventRunCompleted:
		s.Ended = StatusCompleted
	case EventRunAborted:
		s.Ended, s.Gate = StatusAborted, nil
	default:
		ph = ph.applyItemEvent(e)
	}
	s.Phases = &ph
	return s
}

// isCommandEvent reports whether an event results from a command that continues the run. It
// counts every assertion, although those at a step are automatic.
func (s State) isCommandEvent(e Event) bool {
	switch e.Kind {
	case EventContextSet, EventStepCompleted, EventStepSkipped, EventCheckpointAnswer, EventAsserted:
		return true
	case EventBranchTaken:
		return s.Gate != nil
	case EventPhaseSkipped: // only the current phase: other phases are skipped automatically
		return s.Phases != nil && s.Phases.Part != PartLeft
	default:
		return false
	}
}

// loopProgress returns the number of the current round and the number of items of the loop,
// or zeros outside a loop.
func (ph PhaseState) loopProgress() (round, items int) {
	if ph.Loop == nil {
		return 0, 0
	}
	return ph.Loop.Round, len(ph.Loop.Items)
}

// applyItemEvent applies the events of items and actions of a phase.
func (ph PhaseState) applyItemEvent(e Event) PhaseState {
	switch e.Kind {
	case EventStepStarted:
		if e.Round > 0 {
			l := *ph.Loop
			l.Step = e.Item - 1
			ph.Loop = &l
			ph.Started, ph.Done, ph.Act = true, false, 0
			return ph
		}
		ph.startItem(e)
	case EventDecisionReached:
		ph.startItem(e)
	case EventDecisionPassed:
		ph.Part, ph.Index, ph.Started = PartDecisions, e.Item, false
	case EventLoopStarted:
		ph.startItem(e)
		ph.Loop = &PhaseLoop{Items: e.List, Step: endOfRound}
	case EventLoopIteration:
		ph.Loop = &PhaseLoop{Round: e.Round, Items: ph.Loop.Items}
		ph.Started, ph.Done, ph.Act = false, false, 0
	case EventLoopCompleted, EventLoopBroken:
		ph.Part, ph.Index, ph.Loop = PartLoops, e.Item, nil
		ph.Started, ph.Done, ph.Act = false, false, 0
	case EventLogged, EventEmitted, EventChecked, EventVariableSet:
		ph.advanceActions(e, 1)
	case EventAsserted:
		ph.advanceActions(e, e.Count)
	}
	return ph
}

// startItem starts the item of an event. The kind of the event selects the part.
func (ph *PhaseState) startItem(e Event) {
	switch e.Kind {
	case EventStepStarted:
		ph.Part = PartSteps
	case EventLoopStarted:
		ph.Part = PartLoops
	case EventCheckpointReached:
		ph.Part = PartCheckpoints
	default:
		ph.Part = PartDecisions
	}
	ph.Index, ph.Started, ph.Done, ph.Act = e.Item-1, true, false, 0
}

// advanceActions moves past n actions. The first exit action may also be the first event of
// the exit.
func (ph *PhaseState) advanceActions(e Event, n int) {
	if e.Part == PartExit && ph.Part != PartExit {
		ph.startExit(0)
	}
	ph.Act += n
}

// advanceStep moves past the current step.
func (ph *PhaseState) advanceStep() {
	ph.Started, ph.Done, ph.Act = false, false, 0
	if ph.Loop == nil {
		ph.Index++
		return
	}
	l := *ph.Loop
	l.Step++
	ph.Loop = &l
}

// startExit starts the exit of the phase.
func (ph *PhaseState) startExit(to int) {
	ph.Part, ph.To, ph.Act, ph.Loop = PartExit, to, 0, nil
	ph.Started, ph.Done = false, false
}

// applySkip passes through a phase, or skips the rest of the current one.
func (ph PhaseState) applySkip(e Event) PhaseState {
	ph.Part, ph.To, ph.Loop = PartLeft, e.To, nil
	ph.Started, ph.Done, ph.Act = false, false, 0
	ph.Passed++
	return ph
}

// applyAnswer applies the effects of an answer to a checkpoint.
func (ph PhaseState) applyAnswer(e Event) PhaseState {
	if len(e.Skips) > 0 {
		ph.Skips = slices.Compact(slices.Sorted(slices.Values(slices.Concat(ph.Skips, e.Skips))))
	}
	ph.Index, ph.Started = e.Item, false
	if e.To > 0 {
		ph.startExit(e.To)
	}
	return ph
}
