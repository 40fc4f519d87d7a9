package run

import (
	"context"

	"github.com/guideway-dev/guideway"
)

// Gist gives what KeepGist was last given for a run of the caller's; nil where that
// is nothing, or was not written by who has the key. Whoever uses it sees to it that
// the run's event with its number has its Head: the run may have become another one,
// as in a database that was put back.
func (s *Service) Gist(ctx context.Context, c Caller, ref Ref) (*Gist, error) {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	g, err := s.journal.Gist(ctx, rec.ID)
	if err != nil {
		return nil, err
	}
	if g == nil || g.Seq > rec.Seq || !sameMAC(g.MAC, s.key.gist(rec, *g)) {
		return nil, nil
	}
	return g, nil
}

// KeepGist keeps with a run of the caller's what was made of its events, in the place
// of what was kept before. Seq and Head name the last of them.
func (s *Service) KeepGist(ctx context.Context, c Caller, ref Ref, g Gist) error {
	_, rec, err := s.byRef(ctx, c, ref)
	if err != nil {
		return err
	}
	if g.Seq < 1 || g.Seq > rec.Seq {
		return guideway.Errorf(guideway.CodeInvalid, "run %s has no event %d, it has %d", rec.ID, g.Seq, rec.Seq)
	}
	g.MAC = s.key.gist(rec, g)
	return s.journal.KeepGist(ctx, rec.ID, g)
}
