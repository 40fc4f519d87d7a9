package postgres

import (
	"context"
	"fmt"
	"hash/fnv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

const sqlHookState = `select value, expires from hook_state where graph = $1 and scope = $2 and key = $3 and (expires is null or expires > $4)`

var _ hookstate.ListStore = (*Store)(nil)

// readHookState reads an entry.
func readHookState(ctx context.Context, q querier, ref hookstate.Ref, now time.Time) (e hookstate.Entry, err error) {
	var expires *time.Time
	err = q.QueryRow(ctx, sqlHookState, []byte(ref.Graph), []byte(ref.Scope), []byte(ref.Key), now).Scan((*[]byte)(&e.Value), &expires)
	if isNoRows(err) {
		return e, nil
	}
	if expires != nil {
		e.Expires = *expires
	}
	return e, err
}

// HookState implements state.Store.
func (s *Store) HookState(ctx context.Context, ref hookstate.Ref, now time.Time) (e hookstate.Entry, err error) {
	err = s.retryRead(ctx, "read the state of the hook graph "+ref.Graph, func(ctx context.Context) error {
		e, err = readHookState(ctx, s.pool, ref, now)
		return err
	})
	return e, err
}

// ChangeHookState implements state.Store. A change whose response was lost is not repeated,
// because it may have been made.
func (s *Store) ChangeHookState(ctx context.Context, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	what := "change the state of the hook graph " + ref.Graph
	return s.retryWrite(ctx, what, func(ctx context.Context, maybeCommitted bool) error {
		if maybeCommitted {
			return guideway.Errorf(guideway.CodeUnavailable, "%s: the answer of the PostgreSQL server was lost", what)
		}
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return s.changeHookState(ctx, tx, ref, now, change) })
	})
}

// changeHookState changes an entry in a transaction that locks the entry and, if the state
// of the graph grows, the graph: in this order, so that no two transactions wait for each
// other.
func (s *Store) changeHookState(ctx context.Context, tx pgx.Tx, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	if err := s.lockHookState(ctx, tx, ref); err != nil {
		return err
	}
	before, err := readHookState(ctx, tx, ref, now)
	if err != nil {
		return err
	}
	next, err := change(before)
	if err != nil || next.Equal(before) {
		return err
	}
	key := []any{[]byte(ref.Graph), []byte(ref.Scope), []byte(ref.Key)}
	if next.Value == nil {
		_, err := tx.Exec(ctx, `delete from hook_state where graph = $1 and scope = $2 and key = $3`, key...)
		return err
	}
	grows := before.Value == nil || len(next.Value) > len(before.Value)
	if grows {
		if err := s.lockHookState(ctx, tx, hookstate.Ref{Graph: ref.Graph}); err != nil {
			return err
		}
	}
	var expires *time.Time
	if !next.Expires.IsZero() {
		expires = &next.Expires
	}
	_, err = tx.Exec(ctx, `insert into hook_state (graph, scope, key, value, bytes, expires) values ($1, $2, $3, $4, $5, $6)
		on conflict (graph, scope, key) do update set value = excluded.value, bytes = excluded.bytes, expires = excluded.expires`,
		append(key, []byte(next.Value), len(ref.Key)+len(next.Value), expires)...)
	if err != nil || !grows {
		return err
	}
	if _, err := tx.Exec(ctx, `delete from hook_state where graph = $1 and expires <= $2`, key[0], now); err != nil {
		return err
	}
	var keys, size int64
	if err := tx.QueryRow(ctx, `select count(*), coalesce(sum(bytes), 0)::bigint from hook_state where graph = $1`, key[0]).Scan(&keys, &size); err != nil {
		return err
	}
	return hookstate.CheckRoom(ref.Graph, keys, size)
}

// lockHookState locks an entry, or a graph, until the end of the transaction.
func (s *Store) lockHookState(ctx context.Context, tx pgx.Tx, ref hookstate.Ref) error {
	lock := fnv.New64a()
	fmt.Fprintf(lock, "guideway hook state in %s: %q %q %q", s.schema, ref.Graph, ref.Scope, ref.Key)
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock($1)`, int64(lock.Sum64()))
	return err
}
