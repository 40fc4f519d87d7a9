package sqlite

import (
	"context"
	"time"

	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/session"
)

// PurgeDocument implements session.Documents.
func (s *Store) PurgeDocument(ctx context.Context, ref session.Ref) error {
	if err := s.methods.PurgeDocument(ctx, ref); err != nil {
		return err
	}
	return s.Compact(ctx)
}

// ChangeHookState implements state.Store. After a deletion it tries once to remove the value
// from the write-ahead log: a script makes the deletion during a request, which must not
// wait long, or fail, because of a reader.
func (s *Store) ChangeHookState(ctx context.Context, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	var deleted bool
	err := s.methods.ChangeHookState(ctx, ref, now, func(before hookstate.Entry) (hookstate.Entry, error) {
		next, err := change(before)
		deleted = before.Value != nil && next.Value == nil
		return next, err
	})
	if err == nil && deleted {
		_ = s.compactLog(ctx, 1)
	}
	return err
}
