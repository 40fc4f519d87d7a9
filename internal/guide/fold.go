package guide

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// Fold gives the state after events. An event that does not fit the state before
// it, as one of another definition or of a kind that this version does not know,
// is an error with guideway.CodeConflict that names it.
func (p *Program) Fold(events []Event) (State, error) {
	return p.FoldFrom(State{}, events)
}

// FoldFrom is Fold for the events that follow a state of the same program.
func (p *Program) FoldFrom(s State, events []Event) (State, error) {
	for i, e := range events {
		if !p.fits(s, e) {
			return s, guideway.Errorf(guideway.CodeConflict,
				"event %d (%s %s) does not fit the run: it is of another definition or of a newer version", i+1, e.Kind, e.Step)
		}
		s = Apply(s, e)
	}
	return s, nil
}

// fits says whether an event can follow in the state.
func (p *Program) fits(s State, e Event) bool {
	if !s.Started || s.Ended != "" {
		return !s.Started && e.Kind == EventRunStarted
	}
	if s.Gate != nil {
		return e.Kind == EventRunAborted || e.Kind == EventGateAnswered && p.fitsGate(s, e)
	}
	step, loop := p.current(s), p.loopAt(s)
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
		return loop != nil && loop.ID == e.Step && fitsLoop(s, e, step)
	}
}

// fitsLoop says whether an event of the loop at the cursor can follow; step is
// the one of its body that the run is at, if any.
func fitsLoop(s State, e Event, step *steps.Step) bool {
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

// fitsGate says whether an answer is one that the open gate offers.
func (p *Program) fitsGate(s State, e Event) bool {
	if e.Step != s.Gate.Step {
		return false
	}
	for _, o := range gateOptions(s.Gate) {
		if o.ID == e.Option {
			return true
		}
	}
	return false
}

// loopAt is the loop at the cursor, or nil.
func (p *Program) loopAt(s State) *steps.Step {
	if s.Cursor >= len(p.items) || !p.items[s.Cursor].isLoop() {
		return nil
	}
	return p.items[s.Cursor].step
}
