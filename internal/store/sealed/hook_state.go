package sealed

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// openState decrypts a value of the state of hooks in place. Their keys stay readable.
func (s *Store) openState(ctx context.Context, ref hookstate.Ref, e *hookstate.Entry) error {
	if !isSealed(e.Value) {
		return nil
	}
	key, err := s.keys.keyOf(ctx, false, "hooks")
	if err == nil {
		e.Value, err = openBytes(key, e.Value, "hook state", ref.Graph, ref.Scope, ref.Key)
	}
	return err
}

// HookState implements state.Store.
func (s *Store) HookState(ctx context.Context, ref hookstate.Ref, now time.Time) (hookstate.Entry, error) {
	e, err := s.Journal.HookState(ctx, ref, now)
	if err == nil {
		err = s.openState(ctx, ref, &e)
	}
	return e, err
}

// ChangeHookState implements state.Store.
func (s *Store) ChangeHookState(ctx context.Context, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	var key *seal.Key
	if s.on { // before the transaction, because the key may be in the same database
		var err error
		if key, err = s.keys.keyOf(ctx, true, "hooks"); err != nil {
			return err
		}
	}
	return s.Journal.ChangeHookState(ctx, ref, now, func(stored hookstate.Entry) (hookstate.Entry, error) {
		before := stored
		if err := s.openState(ctx, ref, &before); err != nil {
			return stored, err
		}
		next, err := change(before)
		if err != nil || next.Equal(before) {
			return stored, err
		}
		if key == nil || next.Value == nil {
			return next, nil
		}
		next.Value = sealBytes(key, next.Value, "hook state", ref.Graph, ref.Scope, ref.Key)
		return next, nil
	})
}

// HookStates implements state.ListStore.
func (s *Store) HookStates(ctx context.Context, graph string, now time.Time) ([]hookstate.Item, error) {
	list, err := s.Journal.HookStates(ctx, graph, now)
	for i := range list {
		if err := s.openState(ctx, list[i].Ref, &list[i].Entry); err != nil {
			return nil, err
		}
	}
	return list, err
}
