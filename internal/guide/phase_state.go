package guide

import (
	"slices"
)

// PhaseState is where a run of a phase workflow stands.
type PhaseState struct {
	// Phase is the 1-based number of the current phase.
	Phase int
	// Part is what of the phase is at work, Index the 0-based place in it.
	Part  Part
	Index int
	// Started says that the item at Index was announced, Done that the step at
	// it was completed and its actions are carried out. Act is the next action.
	Started, Done bool
	Act           int
	// Loop is set inside a loop.
	Loop *PhaseLoop
	// To is the phase to go to once this one is left; 0 ends the run.
	To int
	// Skips are the phases to be passed through, sorted.
	Skips []int
	// Passed counts the phases that were entered and skipped since somebody last
	// did something: phases with nothing to do may lead in a circle.
	Passed int
}

// PhaseLoop is where a run stands in a loop of a phase.
type PhaseLoop struct {
	// Round is 1-based; 0 before the first one.
	Round int
	// Step is the 0-based place in the round; the number of steps or more means
	// the end of the round.
	Step int
	// Items is the list of a forEach loop, as it was when the loop began.
	Items []any
}

// Part is one part of a phase, in the order in which they come (DESIGN 4).
type Part string

// The parts of a phase.
const (
	PartEntry       Part = "entry"
	PartSteps       Part = "steps"
	PartLoops       Part = "loops"
	PartCheckpoints Part = "checkpoints"
	PartDecisions   Part = "decisions"
	PartTransitions Part = "transitions"
	PartExit        Part = "exit"
	// PartLeft is behind the phase, on the way to the next one.
	PartLeft Part = "left"
)

// applyPhases is Apply for runs of phase workflows.
func applyPhases(s State, e Event) State {
	var ph PhaseState
	if s.Phases != nil {
		ph = *s.Phases
	}
	if len(e.Vars) > 0 && e.Kind != EventStateImported {
		s.Vars = merged(s.Vars, e.Vars)
	}
	if s.isDeed(e) {
		ph.Passed = 0 // skipped adds itself
	}
	switch e.Kind {
	case EventPhaseEntered:
		ph = PhaseState{Phase: e.Phase, Part: PartEntry, Skips: ph.Skips, Passed: ph.Passed + 1}
	case EventPhaseExited:
		ph.Part, ph.To = PartLeft, e.To
	case EventPhaseSkipped:
		ph = ph.skipped(e)
	case EventContextSet:
		if ph.Part == PartDecisions { // what was passed may lead on now
			ph.Index, ph.Started = 0, false
		}
	case EventStepCompleted:
		ph.Done, ph.Act = true, 0
		s.Steps++
	case EventStepSkipped:
		ph.pass()
	case EventCheckpointReached, EventDecisionOffered:
		ph.start(e)
		s.Gate = &OpenGate{Step: e.Step, Person: e.Person}
	case EventCheckpointAnswer:
		s.Gate = nil
		ph = ph.answered(e)
	case EventBranchTaken:
		s.Gate = nil
		ph.leave(e.To)
	case EventTransitionTaken:
		ph.leave(e.To)
	case EventRunCompleted:
		s.Ended = StatusCompleted
	case EventRunAborted:
		s.Ended, s.Gate = StatusAborted, nil
	case EventStateImported:
		return s.imported(e)
	default:
		ph = ph.moved(e)
	}
	s.Phases = &ph
	return s
}

// isDeed says whether an event is what somebody did, and not what followed.
func (s State) isDeed(e Event) bool {
	switch e.Kind {
	case EventContextSet, EventStepCompleted, EventStepSkipped, EventCheckpointAnswer, EventAsserted:
		return true
	case EventBranchTaken:
		return s.Gate != nil
	case EventPhaseSkipped: // of the current phase: others are passed through
		return s.Phases != nil && s.Phases.Part != PartLeft
	default:
		return false
	}
}

// moved applies the events of the items and actions of a phase.
func (ph PhaseState) moved(e Event) PhaseState {
	switch e.Kind {
	case EventStepStarted:
		if e.Round > 0 {
			l := *ph.Loop
			l.Step = e.Item - 1
			ph.Loop = &l
			ph.Started, ph.Done, ph.Act = true, false, 0
			return ph
		}
		ph.start(e)
	case EventDecisionReached:
		ph.start(e)
	case EventDecisionPassed:
		ph.Part, ph.Index, ph.Started = PartDecisions, e.Item, false
	case EventLoopStarted:
		ph.start(e)
		ph.Loop = &PhaseLoop{Items: e.List, Step: endOfRound}
	case EventLoopIteration:
		ph.Loop = &PhaseLoop{Round: e.Round, Items: ph.Loop.Items}
		ph.Started, ph.Done, ph.Act = false, false, 0
	case EventLoopCompleted, EventLoopBroken:
		ph.Part, ph.Index, ph.Loop = PartLoops, e.Item, nil
		ph.Started, ph.Done, ph.Act = false, false, 0
	case EventLogged, EventEmitted, EventChecked, EventVariableSet:
		ph.acted(e, 1)
	case EventAsserted:
		ph.acted(e, e.Count)
	}
	return ph
}

// start begins the item of an event. The kind of the item is the part's.
func (ph *PhaseState) start(e Event) {
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

// acted moves behind actions. Those of the exit may be the first that is heard
// of leaving.
func (ph *PhaseState) acted(e Event, n int) {
	if e.Part == PartExit && ph.Part != PartExit {
		ph.leave(0)
	}
	ph.Act += n
}

// pass moves behind the step that is at work.
func (ph *PhaseState) pass() {
	ph.Started, ph.Done, ph.Act = false, false, 0
	if ph.Loop == nil {
		ph.Index++
		return
	}
	l := *ph.Loop
	l.Step++
	ph.Loop = &l
}

// leave begins the exit of the phase.
func (ph *PhaseState) leave(to int) {
	ph.Part, ph.To, ph.Act, ph.Loop = PartExit, to, 0, nil
	ph.Started, ph.Done = false, false
}

// skipped passes through a phase, or leaves out the rest of the current one.
func (ph PhaseState) skipped(e Event) PhaseState {
	ph.Part, ph.To, ph.Loop = PartLeft, e.To, nil
	ph.Started, ph.Done, ph.Act = false, false, 0
	ph.Passed++
	return ph
}

// answered applies the effects of an answer at a checkpoint.
func (ph PhaseState) answered(e Event) PhaseState {
	if len(e.Skips) > 0 {
		ph.Skips = slices.Compact(slices.Sorted(slices.Values(slices.Concat(ph.Skips, e.Skips))))
	}
	ph.Index, ph.Started = e.Item, false
	if e.To > 0 {
		ph.leave(e.To)
	}
	return ph
}
