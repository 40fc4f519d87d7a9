package engine

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Fold returns the state after events. An event that is not possible in the state before
// it, for example an event of a different definition or of an unknown kind, is an error
// with guideway.CodeConflict that names the event.
func (p *Program) Fold(events []Event) (State, error) {
	return foldFrom(p, State{}, events)
}

// acceptsEvent reports whether an event is possible in the state.
func (p *Program) acceptsEvent(s State, e Event) bool {
	if !s.Started || s.Ended != "" {
		return !s.Started && e.Kind == EventRunStarted
	}
	if s.Gate != nil {
		return e.Kind == EventRunAborted || (e.Kind == EventGateAnswered || e.Kind == EventGateApproved) && p.acceptsAnswer(s, e)
	}
	step, loop := p.currentStep(s), p.loopAt(s)
	switch e.Kind {
	case EventContextSet, EventRunAborted:
		return true
	case EventRunCompleted:
		return s.Cursor >= len(p.items)
	case EventStepCompleted:
		return step != nil && step.ID == e.Step
	case EventStepSkipped:
		if step == nil && s.Frame == nil {
			step = loop
		}
		return step != nil && step.ID == e.Step
	default:
		return loop != nil && loop.ID == e.Step && acceptsLoopEvent(s, e, step)
	}
}

// acceptsLoopEvent reports whether an event of the loop at the cursor is possible; step is
// the current step of its body, or nil.
func acceptsLoopEvent(s State, e Event, step *steps.Step) bool {
	switch e.Kind {
	case EventGateOpened, EventLoopEntered:
		return s.Frame == nil
	case EventRoundStarted:
		return s.Frame != nil && step == nil && e.Round == s.Frame.Round+1
	case EventLoopEnded:
		return s.Frame != nil && step == nil
	default:
		return false
	}
}

// acceptsAnswer reports whether the open gate offers the answer of an event.
func (p *Program) acceptsAnswer(s State, e Event) bool {
	return e.Step == s.Gate.Step && slices.ContainsFunc(gateOptions(s.Gate), func(o Option) bool { return o.ID == e.Option })
}

// loopAt returns the loop at the cursor, or nil.
func (p *Program) loopAt(s State) *steps.Step {
	if s.Cursor >= len(p.items) || !p.items[s.Cursor].isLoop() {
		return nil
	}
	return p.items[s.Cursor].step
}
