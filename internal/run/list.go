package run

import (
	"context"

	"github.com/guideway-dev/guideway/internal/engine"
)

// List lists the caller's runs, the last changed first.
func (s *Service) List(ctx context.Context, c Caller, f Filter) ([]Record, error) {
	if err := s.open(ctx); err != nil {
		return nil, err
	}
	f.User = c.User
	list, err := s.journal.Runs(ctx, f)
	for _, rec := range list {
		s.seen(ctx, rec)
	}
	return list, err
}

// Events gives up to limit events of a run of the caller's after one, each checked
// against the one before it.
func (s *Service) Events(ctx context.Context, c Caller, ref Ref, after int64, limit int) ([]Event, error) {
	_, rec, err := s.byRef(ctx, c, ref)
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
			return nil, broken(rec.ID, after, "it is missing")
		}
		head = before[0].MAC
	}
	events, err := s.journal.Events(ctx, rec.ID, after, limit)
	if err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Seq != after+int64(i)+1 || !sameMAC(e.MAC, s.key.Chain(rec.ID, head, e)) {
			return nil, broken(rec.ID, after+int64(i)+1, "it is not what was written")
		}
		head = e.MAC
	}
	return events, nil
}

// Get tells all of a run of the caller's, with its whole history.
func (s *Service) Get(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	d, err := s.Look(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	d.Events, err = s.events(ctx, d.Record, d.Seq)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// Look tells all of a run of the caller's but its events, so that its cost does
// not grow with them; Events gives those that are wanted.
func (s *Service) Look(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	l, err := s.load(ctx, rec)
	if err != nil {
		return nil, err
	}
	vars := l.state.Vars
	if vars == nil {
		vars = map[string]any{}
	}
	return &Details{
		Record: rec, Current: rec.Handle, Position: l.program.PositionOf(l.state), Variables: vars,
		Marks: l.marks, Definition: l.program.text,
	}, nil
}

// Flow gives the pinned definition of a run of the caller's, ready to run.
func (s *Service) Flow(ctx context.Context, c Caller, ref Ref) (engine.Flow, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.compiled(ctx, rec.Hash)
	if err != nil {
		return nil, err
	}
	return p.Flow, nil
}
