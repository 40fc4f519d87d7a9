package sqlite

import (
	"context"
	"errors"
	"time"

	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// The statements of the state of hooks.
const (
	sqlHookState       = `SELECT value, expires FROM hook_state WHERE graph = ? AND scope = ? AND key = ? AND (expires = 0 OR expires > ?)`
	sqlDeleteHookState = `DELETE FROM hook_state WHERE graph = ? AND scope = ? AND key = ?`
	sqlExpireHookState = `DELETE FROM hook_state WHERE graph = ? AND expires BETWEEN 1 AND ?`
	sqlHookStateSize   = `SELECT count(*), coalesce(sum(bytes), 0) FROM hook_state WHERE graph = ?`
	sqlPutHookState    = `INSERT INTO hook_state (graph, scope, key, value, bytes, expires) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO UPDATE SET value = excluded.value, bytes = excluded.bytes, expires = excluded.expires`
)

var _ hookstate.ListStore = (*Store)(nil)

// readHookState reads an entry by a function that runs a query for one row.
func readHookState(ctx context.Context, ref hookstate.Ref, now time.Time, query func(context.Context, string, []any, []any) error) (e hookstate.Entry, err error) {
	var expires int64
	err = query(ctx, sqlHookState, []any{ref.Graph, ref.Scope, []byte(ref.Key), fromTime(now)}, []any{(*[]byte)(&e.Value), &expires})
	if errors.Is(err, errNoRow) {
		return e, nil
	}
	if expires != 0 {
		e.Expires = time.UnixMicro(expires)
	}
	return e, err
}

// HookState implements state.Store.
func (s *Store) HookState(ctx context.Context, ref hookstate.Ref, now time.Time) (e hookstate.Entry, err error) {
	err = s.withReadAccess(ctx, "read the state of the hook graph "+ref.Graph, func() error {
		e, err = readHookState(ctx, ref, now, s.readers.queryRow)
		return err
	})
	return e, err
}

// ChangeHookState implements state.Store.
func (s *Store) ChangeHookState(ctx context.Context, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	return s.commitShared(ctx, "change the state of the hook graph "+ref.Graph, func(ctx context.Context, t *txn) error {
		before, err := readHookState(ctx, ref, now, t.queryRow)
		if err != nil {
			return err
		}
		next, err := change(before)
		if err != nil || next.Equal(before) {
			return err
		}
		if next.Value == nil {
			_, err := t.execStatement(ctx, sqlDeleteHookState, ref.Graph, ref.Scope, []byte(ref.Key))
			return err
		}
		var expires int64
		if !next.Expires.IsZero() {
			expires = fromTime(next.Expires)
		}
		if _, err := t.execStatement(ctx, sqlPutHookState, ref.Graph, ref.Scope, []byte(ref.Key), []byte(next.Value), len(ref.Key)+len(next.Value), expires); err != nil {
			return err
		}
		if before.Value != nil && len(next.Value) <= len(before.Value) {
			return nil
		}
		if _, err := t.execStatement(ctx, sqlExpireHookState, ref.Graph, fromTime(now)); err != nil {
			return err
		}
		var keys, size int64
		if err := t.queryRow(ctx, sqlHookStateSize, []any{ref.Graph}, []any{&keys, &size}); err != nil {
			return err
		}
		return hookstate.CheckRoom(ref.Graph, keys, size)
	})
}
