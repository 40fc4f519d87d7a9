package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Verify verifies the chains of all machine runs, or of one run, as run.Verifier does.
// Invalid events are in the report and not returned as an error.
func (s *Service) Verify(ctx context.Context, runID string) (*run.Report, error) {
	return s.newVerifier().Verify(ctx, runID)
}

// AcceptRestore sets the heads to the current journal after a deliberate restore.
func (s *Service) AcceptRestore(ctx context.Context) error { return s.newVerifier().AcceptRestore(ctx) }

// FollowHeads is run.Verifier.FollowHeads for machine runs.
func (s *Service) FollowHeads(ctx context.Context) { s.newVerifier().FollowHeads(ctx, s.o.Logger) }

func (s *Service) newVerifier() *run.Verifier {
	return &run.Verifier{Journal: s.o.Journal, Key: s.o.Key, Heads: s.o.Heads, Now: s.clock, Follow: s.newFollower}
}

// newFollower implements run.Verifier.Follow.
func (s *Service) newFollower(ctx context.Context, rec run.Record) (run.Follower, error) {
	p, err := s.pinnedProgram(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return &follower{loaded{rec: rec, program: p}}, nil
}

// follower implements run.Follower: it folds the events of one run.
type follower struct{ loaded loaded }

// Event implements run.Follower.
func (f *follower) Event(e run.Event) error {
	if e.Seq == 1 {
		return nil // events of the driver are not folded
	}
	return f.loaded.foldEvent(e)
}

// Describe implements run.Follower.
func (f *follower) Describe(r *run.Record) { f.loaded.fillRecord(r) }

// foldEvent folds a verified event.
func (l *loaded) foldEvent(e run.Event) error {
	l.noteLease(e)
	switch e.Kind {
	case KindLeaseTaken, KindLeaseReleased:
		return nil
	}
	var fact machineengine.Event
	if err := json.Unmarshal(e.Data, &fact); err != nil {
		return errors.New("the event cannot be decoded")
	}
	if string(fact.Kind) != e.Kind {
		return fmt.Errorf("the data of the event has the kind %.80q, not %q", fact.Kind, e.Kind)
	}
	l.program.Apply(&l.state, fact)
	return nil
}
