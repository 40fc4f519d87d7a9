package run

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Observer is told of what runs do, once it is in the journal. It decides
// nothing.
type Observer interface {
	// Committed is called before the caller has its answer, so it must not wait.
	// What it is given is nobody's to change.
	Committed(ctx context.Context, c Committed)
	// Seen is called when a run comes into this process's view: it was listed, or
	// its state was made of the journal. It comes often, and must not wait.
	Seen(ctx context.Context, r Record)
}

// Committed is what a command has added to a run.
type Committed struct {
	// Record is the run as it is now.
	Record Record
	// By says whose doing it is.
	By By
	// Facts are the engine's events that the command has brought. A fork, an
	// import and a refused attempt bring none.
	Facts []engine.Event
	// State is the run behind them, Flow its definition.
	State engine.State
	Flow  engine.Flow
	// Marks are the variables that were called critical.
	Marks []Mark
}

// Behind gives a run of the caller's as it was behind one of its events, as an
// observer was told of it then, but without the facts.
func (s *Service) Behind(ctx context.Context, c Caller, ref Ref, seq int64) (Committed, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return Committed{}, err
	}
	if seq < 1 || seq > rec.Seq {
		return Committed{}, guideway.Errorf(guideway.CodeInvalid, "run %s has no event %d, it has %d", rec.ID, seq, rec.Seq)
	}
	last, err := s.Events(ctx, c, Ref{RunID: rec.ID}, seq-1, 1)
	if err != nil {
		return Committed{}, err
	}
	if len(last) == 0 {
		return Committed{}, broken(rec.ID, seq, "it is missing")
	}
	rec.Seq, rec.Head, rec.Updated = seq, last[0].MAC, last[0].At
	from := s.fromSnapshot(ctx, rec)
	l, err := s.follow(ctx, rec, from)
	if err != nil && from != nil {
		l, err = s.follow(ctx, rec, nil)
	}
	if err != nil {
		return Committed{}, err
	}
	describe(&rec, l, l.program.PositionOf(l.state))
	return Committed{Record: rec, By: last[0].By, State: l.state, Flow: l.program.Flow, Marks: l.marks}, nil
}

// seen tells the observer that a run is in view.
func (s *Service) seen(ctx context.Context, r Record) {
	if s.observer != nil {
		s.observer.Seen(ctx, r)
	}
}
