package run

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Observer receives the commands of runs after they are in the journal. It cannot refuse
// them.
type Observer interface {
	// Committed is called before the answer is returned, so it must not block. It must not
	// change its argument.
	Committed(ctx context.Context, c Committed)
	// Seen is called when this process lists a run or loads its state from the journal. It
	// is called often and must not block.
	Seen(ctx context.Context, r Record)
}

// Committed is the effect of a command on a run.
type Committed struct {
	// Record is the run after the command.
	Record Record
	// By is the author of the command.
	By By
	// Facts are the engine's new events. A fork, an imported bundle, a refused attempt and
	// a mark have none.
	Facts []engine.Event
	// State is the state after the facts, Flow the compiled definition.
	State engine.State
	Flow  engine.Flow
	// Marks are the variables marked as critical.
	Marks []Mark
}

// StateAt returns a run of the caller as it was after one of its events. The result is what
// an observer received at that time, except that it has the current handle and no facts.
func (s *Service) StateAt(ctx context.Context, c Caller, ref Ref, seq int64) (Committed, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return Committed{}, err
	}
	if seq < 1 || seq > rec.Seq {
		return Committed{}, guideway.Errorf(guideway.CodeInvalid, "run %s has no event %d: its last event is %d", rec.ID, seq, rec.Seq).
			WithFix("guideway runs show %s --events, to list the events", rec.ID)
	}
	last, err := s.Events(ctx, c, Ref{RunID: rec.ID}, seq-1, 1)
	if err != nil {
		return Committed{}, err
	}
	if len(last) == 0 {
		return Committed{}, untrustedEventError(rec.ID, seq, "the event is missing")
	}
	rec.Seq, rec.Head, rec.Updated = seq, last[0].MAC, last[0].At
	from := s.loadSnapshot(ctx, rec)
	l, err := s.foldEvents(ctx, rec, from)
	if err != nil && from != nil {
		l, err = s.foldEvents(ctx, rec, nil)
	}
	if err != nil {
		return Committed{}, err
	}
	updateRecord(&rec, l, l.program.PositionOf(l.state))
	return Committed{Record: rec, By: last[0].By, State: l.state, Flow: l.program.Flow, Marks: l.marks}, nil
}

// notifySeen calls Seen of the observer.
func (s *Service) notifySeen(ctx context.Context, r Record) {
	if s.observer != nil {
		s.observer.Seen(ctx, r)
	}
}
