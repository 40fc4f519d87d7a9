package run

import (
	"context"
)

// List lists the caller's runs, the last changed first.
func (s *Service) List(ctx context.Context, c Caller, f Filter) ([]Record, error) {
	f.User = c.User
	return s.journal.Runs(ctx, f)
}

// Get tells all of a run of the caller's.
func (s *Service) Get(ctx context.Context, c Caller, ref Ref) (*Details, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	l, err := s.load(ctx, rec)
	if err != nil {
		return nil, err
	}
	events, err := s.events(ctx, rec, rec.Seq)
	if err != nil {
		return nil, err
	}
	vars := l.state.Vars
	if vars == nil {
		vars = map[string]any{}
	}
	return &Details{
		Record: rec, Current: rec.Handle, Position: l.program.PositionOf(l.state), Variables: vars, Events: events,
		Definition: l.program.text,
	}, nil
}
