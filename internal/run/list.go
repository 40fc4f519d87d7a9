package run

import (
	"context"

	"github.com/guideway-dev/guideway/internal/engine"
)

// List returns the runs of the caller and those of shared projects, with the last changed one first.
func (s *Service) List(ctx context.Context, c Caller, f Filter) ([]Record, error) {
	if err := s.openJournal(ctx); err != nil {
		return nil, err
	}
	list, err := s.visibleRuns(ctx, c, f)
	for _, rec := range list {
		s.notifySeen(ctx, rec)
	}
	return list, err
}

// Events returns up to limit events of a run after an event, each checked against the
// previous one.
func (s *Service) Events(ctx context.Context, c Caller, ref Ref, after int64, limit int) ([]Event, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	after = min(max(after, 0), rec.Seq)
	head := s.key.Root(rec.ID)
	if after > 0 {
		before, err := s.journal.Events(ctx, rec.ID, after-1, 1)
		if err != nil {
			return nil, err
		}
		if len(before) == 0 || before[0].Seq != after {
			return nil, untrustedEventError(rec.ID, after, "the event is missing")
		}
		head = before[0].MAC
	}
	events, err := s.journal.Events(ctx, rec.ID, after, limit)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Seq != after+int64(i)+1 {
			return nil, untrustedEventError(rec.ID, after+int64(i)+1, "the event is missing")
		}
		if !equalMAC(e.MAC, s.key.Chain(rec.ID, head, e)) {
			return nil, untrustedEventError(rec.ID, e.Seq, eventChanged)
		}
		head = e.MAC
	}
	return withLabels(events), nil
}

// GetWithEvents returns the details of a run of the caller with all its events.
func (s *Service) GetWithEvents(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	d, err := s.Get(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	events, err := s.readEvents(ctx, d.Record, d.Seq)
	if err != nil {
		return nil, err
	}
	d.Events = withLabels(events)
	return d, nil
}

// Get returns the details of a run of the caller without its events, so that the cost does
// not depend on the number of events. Use Events or GetWithEvents to read them.
func (s *Service) Get(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	rec, l, err := s.loadByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	vars := l.state.Vars
	if vars == nil {
		vars = map[string]any{}
	}
	d := &Details{
		Record: rec, Current: rec.Handle, Position: l.program.PositionOf(l.state), Variables: vars,
		Marks: l.marks, Declined: l.attempts.Last, Hooked: l.hooked, Definition: l.program.text,
	}
	if d.Position.Kind == engine.PositionGate {
		d.Submission, err = s.readSubmission(ctx, c, rec, l)
	}
	return d, err
}

// Flow returns the compiled definition of a run of the caller.
func (s *Service) Flow(ctx context.Context, c Caller, ref Ref) (engine.Flow, error) {
	_, rec, err := s.findByRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.compiledProgram(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return p.Flow, nil
}
