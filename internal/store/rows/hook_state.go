package rows

import (
	"context"
	"slices"
	"time"

	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
)

// HookStates implements state.ListStore.
func (m *Methods) HookStates(ctx context.Context, graph string, now time.Time) ([]hookstate.Item, error) {
	q := m.query(`SELECT graph, scope, key, value, expires FROM hook_state WHERE graph = $1 OR length($1) = 0 ORDER BY graph, scope, key`, graph)
	list, err := List(ctx, m, "list the state of hook graphs", q, ScanFields(func(i *hookstate.Item) []any {
		return []any{(*Text)(&i.Graph), (*Text)(&i.Scope), (*Text)(&i.Key), (*[]byte)(&i.Value), (*OptionalTime)(&i.Expires)}
	}))
	return slices.DeleteFunc(list, func(i hookstate.Item) bool { return !i.Expires.IsZero() && !now.Before(i.Expires) }), err
}
