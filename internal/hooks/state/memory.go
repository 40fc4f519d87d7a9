package state

import (
	"context"
	"sync"
	"time"
)

// Memory is a Store in memory, for trial runs. The zero value is empty.
type Memory struct {
	mu      sync.Mutex
	entries map[Ref]Entry
}

// HookState implements Store.
func (m *Memory) HookState(_ context.Context, ref Ref, now time.Time) (Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.currentLocked(ref, now), nil
}

func (m *Memory) currentLocked(ref Ref, now time.Time) Entry {
	e := m.entries[ref]
	if !e.Expires.IsZero() && !now.Before(e.Expires) {
		return Entry{}
	}
	return e
}

// ChangeHookState implements Store.
func (m *Memory) ChangeHookState(_ context.Context, ref Ref, now time.Time, change func(Entry) (Entry, error)) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	next, err := change(m.currentLocked(ref, now))
	if err != nil {
		return err
	}
	delete(m.entries, ref)
	if next.Value == nil {
		return nil
	}
	keys, size := int64(1), int64(len(ref.Key)+len(next.Value))
	for r, e := range m.entries {
		if r.Graph == ref.Graph && m.currentLocked(r, now).Value != nil {
			keys, size = keys+1, size+int64(len(r.Key)+len(e.Value))
		}
	}
	if err := CheckRoom(ref.Graph, keys, size); err != nil {
		return err
	}
	if m.entries == nil {
		m.entries = map[Ref]Entry{}
	}
	m.entries[ref] = next
	return nil
}
