package driver

import (
	"context"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Fork creates a new run with the events of a run up to seq, so that no model or tool is
// called again for them. If seq is 0, it forks at the last event that leaves work to do. A
// sub-machine in progress belongs to the original run: the fork starts its own.
//
// An agent inherits no human approval: its fork stops before the first one, and it cannot
// fork a run that a person cancelled.
func (s *Service) Fork(ctx context.Context, c run.Caller, id string, seq int64) (*Status, error) {
	old, events, err := s.loadRun(ctx, c.User, id, 0)
	if err != nil {
		return nil, err
	}
	if !c.Via.Person() && isCancelledByPerson(events) {
		return nil, newRefusal(id, run.RuleAbortedByPerson, "a person cancelled the run, so an agent cannot continue it in a fork",
			"start a new run, or ask the person to fork this run in the dashboard or with guideway machine fork "+id)
	}
	if seq == 0 {
		seq = lastOpen(old, events)
	}
	if seq < 2 || seq > old.rec.Seq {
		r := newRefusal(id, run.RuleUnknownSeq, fmt.Sprintf("the run cannot be forked at event %d; events 2 to %d are possible", seq, old.rec.Seq), "guideway machine show "+id+", to list the events")
		return nil, r
	}
	if events, err = s.forkedEvents(ctx, c, old, events[:seq]); err != nil {
		return nil, err
	}
	created := old.created
	created.Parent, created.ParentSeq = id, int64(len(events))
	l, err := s.newLoaded(newRunID(s.clock()), created, old.program, run.ByCaller(c))
	if err != nil {
		return nil, err
	}
	for _, e := range events[1:] {
		switch e.Kind {
		case KindLeaseTaken, KindLeaseReleased:
			continue
		}
		fact, err := factOf(e)
		if err != nil {
			return nil, untrustedEventError(id, e.Seq, err.Error())
		}
		if err := l.addEvent(fact); err != nil {
			return nil, err
		}
		last := &l.buffer[len(l.buffer)-1]
		last.At, last.By = e.At, e.By
	}
	if l.state.Status.Ended() {
		return nil, newRefusal(id, run.RuleUnknownSeq, fmt.Sprintf("the run cannot be forked at event %d: nothing is left to do after the event", seq), "fork the run at an earlier event")
	}
	if s.o.Schedule {
		l.job = &run.Job{User: c.User, Run: l.rec.ID}
	}
	if err := s.flushEvents(ctx, l, run.ByCaller(c)); err != nil {
		return nil, err
	}
	return s.buildStatus(ctx, l)
}

// forkedEvents returns the events of a run that a fork of the caller copies.
func (s *Service) forkedEvents(ctx context.Context, c run.Caller, l *loaded, events []run.Event) ([]run.Event, error) {
	open := -1 // the intent of the sub-machine in progress
	for i, e := range events {
		if !c.Approves() {
			if approved, err := s.isHumanApproval(ctx, l, e); err != nil {
				return nil, err
			} else if approved {
				return events[:i], nil
			}
		}
		switch machineengine.Kind(e.Kind) {
		case machineengine.KindSubIntent:
			open = i
		case machineengine.KindSubResult:
			open = -1
		}
	}
	if open >= 0 {
		return events[:open], nil
	}
	return events, nil
}

// isHumanApproval reports whether an event of a run is a human approval, or starts a
// sub-machine that was given one. A sub-machine that cannot be found counts as approved.
func (s *Service) isHumanApproval(ctx context.Context, l *loaded, e run.Event) (bool, error) {
	switch machineengine.Kind(e.Kind) {
	case machineengine.KindToolsAccepted:
		return true, nil
	case machineengine.KindInputGiven, machineengine.KindSubIntent:
	default:
		return false, nil
	}
	fact, err := factOf(e)
	if err != nil {
		return false, untrustedEventError(l.rec.ID, e.Seq, err.Error())
	}
	if fact.Kind == machineengine.KindInputGiven {
		st := l.program.State(fact.State)
		return st == nil || st.Ask == nil || st.Ask.Person, nil
	}
	child, events, err := s.loadRun(ctx, l.rec.User, fact.Run, 0)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	for _, e := range events {
		if approved, err := s.isHumanApproval(ctx, child, e); approved || err != nil {
			return approved, err
		}
	}
	return false, nil
}

// isCancelledByPerson reports whether the events contain a cancellation by a person.
func isCancelledByPerson(events []run.Event) bool {
	return slices.ContainsFunc(events, func(e run.Event) bool {
		return e.Kind == string(machineengine.KindCancelled) && e.By.Via.Person()
	})
}

// lastOpen returns the number of the last event that leaves work to do.
func lastOpen(l *loaded, events []run.Event) int64 {
	for i := len(events) - 1; i > 0; i-- {
		switch machineengine.Kind(events[i].Kind) {
		case machineengine.KindCompleted, machineengine.KindCancelled, KindLeaseReleased:
			continue
		}
		return events[i].Seq
	}
	return l.rec.Seq
}
