package rows

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"time"

	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

var _ hookstate.ListStore = (*Methods)(nil)

// hookEntryKey is the condition for the key of an entry.
const hookEntryKey = ` WHERE graph = $1 AND scope = $2 AND key = $3`

// HookStates implements state.ListStore.
func (m *Methods) HookStates(ctx context.Context, graph string, now time.Time) ([]hookstate.Item, error) {
	q := m.query(`SELECT graph, scope, key, value, expires FROM hook_state WHERE graph = $1 OR length($1) = 0 ORDER BY graph, scope, key`, graph)
	list, err := List(ctx, m, "list the state of hook graphs", q, ScanFields(func(i *hookstate.Item) []any {
		return []any{(*Text)(&i.Graph), (*Text)(&i.Scope), (*Text)(&i.Key), (*[]byte)(&i.Value), (*OptionalTime)(&i.Expires)}
	}))
	return slices.DeleteFunc(list, func(i hookstate.Item) bool { return hasExpired(i.Entry, now) }), err
}

func hasExpired(e hookstate.Entry, now time.Time) bool {
	return !e.Expires.IsZero() && !now.Before(e.Expires)
}

// HookState implements state.Store.
func (m *Methods) HookState(ctx context.Context, ref hookstate.Ref, now time.Time) (e hookstate.Entry, err error) {
	err = m.access.Read(ctx, "read the state of the hook graph "+ref.Graph, func(ctx context.Context, r Reader) error {
		e, err = m.readHookState(ctx, r, ref, now)
		return err
	})
	return e, err
}

// readHookState reads an entry.
func (m *Methods) readHookState(ctx context.Context, r Reader, ref hookstate.Ref, now time.Time) (e hookstate.Entry, err error) {
	q := m.query(`SELECT value, expires FROM hook_state`+hookEntryKey, ref.Graph, ref.Scope, []byte(ref.Key))
	if _, err = scanRow(ctx, r, q, (*[]byte)(&e.Value), (*OptionalTime)(&e.Expires)); hasExpired(e, now) {
		return hookstate.Entry{}, err
	}
	return e, err
}

// ChangeHookState implements state.Store. A change whose response was lost is not repeated,
// because it may have been made.
func (m *Methods) ChangeHookState(ctx context.Context, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	return m.access.Write(ctx, Write{Doing: "change the state of the hook graph " + ref.Graph, Do: func(ctx context.Context, t Tx) error {
		if err := m.lockHookState(ctx, t, ref); err != nil {
			return err
		}
		before, err := m.readHookState(ctx, t, ref, now)
		if err != nil {
			return err
		}
		next, err := change(before)
		switch {
		case err != nil || next.Equal(before):
			return err
		case next.Value == nil:
			return t.Queue(ctx, m.query(`DELETE FROM hook_state`+hookEntryKey, ref.Graph, ref.Scope, []byte(ref.Key)))
		}
		return m.putHookState(ctx, t, ref, now, next, before.Value == nil || len(next.Value) > len(before.Value))
	}})
}

// putHookState stores an entry. If the state of the graph grows, it locks the graph after
// the entry, so that no two transactions wait for each other.
func (m *Methods) putHookState(ctx context.Context, t Tx, ref hookstate.Ref, now time.Time, e hookstate.Entry, grows bool) error {
	if grows {
		if err := m.lockHookState(ctx, t, hookstate.Ref{Graph: ref.Graph}); err != nil {
			return err
		}
	}
	put := m.query(`INSERT INTO hook_state (graph, scope, key, value, bytes, expires) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (graph, scope, key) DO UPDATE SET value = excluded.value, bytes = excluded.bytes, expires = excluded.expires`,
		ref.Graph, ref.Scope, []byte(ref.Key), []byte(e.Value), len(ref.Key)+len(e.Value), OptionalTime(e.Expires))
	if !grows {
		return t.Queue(ctx, put)
	}
	expire := m.query(`DELETE FROM hook_state WHERE graph = $1 AND expires BETWEEN $2 AND $3`, ref.Graph, time.UnixMicro(1), now)
	if err := t.Queue(ctx, put, expire); err != nil {
		return err
	}
	var keys, size int64
	q := m.query(`SELECT count(*), CAST(coalesce(sum(bytes), 0) AS bigint) FROM hook_state WHERE graph = $1`, ref.Graph)
	if _, err := scanRow(ctx, t, q, &keys, &size); err != nil {
		return err
	}
	return hookstate.CheckRoom(ref.Graph, keys, size)
}

// lockHookState locks an entry, or a graph, until the end of the transaction.
func (m *Methods) lockHookState(ctx context.Context, t Tx, ref hookstate.Ref) error {
	if m.dialect.Lock == "" {
		return nil
	}
	name := fnv.New64a()
	fmt.Fprintf(name, "guideway hook state: %q %q %q", ref.Graph, ref.Scope, ref.Key)
	return t.Queue(ctx, m.query(m.dialect.Lock, int64(name.Sum64())))
}
