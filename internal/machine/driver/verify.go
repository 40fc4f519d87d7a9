package driver

import (
	"context"
	"encoding/json"
	"errors"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Verify checks the chains of all runs of machines, or of one, as run.Verifier
// does. A fault is no error.
func (s *Service) Verify(ctx context.Context, runID string) (*run.Report, error) {
	return s.verifier().Verify(ctx, runID)
}

// AcceptRestore has the heads follow the journal as it is now, after a deliberate
// restore.
func (s *Service) AcceptRestore(ctx context.Context) error { return s.verifier().AcceptRestore(ctx) }

func (s *Service) verifier() *run.Verifier {
	return &run.Verifier{Journal: s.o.Journal, Key: s.o.Key, Heads: s.o.Heads, Now: s.clock, Follow: s.follow}
}

// follow implements run.Verifier.Follow.
func (s *Service) follow(ctx context.Context, rec run.Record) (run.Follower, error) {
	p, err := s.pinned(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return &follower{loaded{rec: rec, program: p}}, nil
}

// follower folds the events of one run.
type follower struct{ loaded loaded }

// Event implements run.Follower.
func (f *follower) Event(e run.Event) error {
	if e.Seq == 1 {
		return nil // the verifier reads it
	}
	return f.loaded.take(e)
}

// Describe implements run.Follower.
func (f *follower) Describe(r *run.Record) { f.loaded.describe(r) }

// take folds an event that the chain vouches for.
func (l *loaded) take(e run.Event) error {
	l.note(e)
	switch e.Kind {
	case KindLeaseTaken, KindLeaseKept, KindLeaseReleased:
		return nil
	}
	var fact machineengine.Event
	if err := json.Unmarshal(e.Data, &fact); err != nil || string(fact.Kind) != e.Kind {
		return errors.New("it does not read")
	}
	l.program.Apply(&l.state, fact)
	return nil
}
