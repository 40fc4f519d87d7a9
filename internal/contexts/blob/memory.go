package blob

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"
)

// Memory is a store that is lost when the process ends. It is for processes without a
// writable directory, and for tests.
type Memory struct {
	max int64

	mu    sync.Mutex
	blobs map[Name]heldBlob
	slots map[string]heldBlob
}

// heldBlob is the content of a blob or a slot, and the time of its write.
type heldBlob struct {
	data []byte
	at   time.Time
}

var _ Store = (*Memory)(nil)

// NewMemory returns an empty store. maxBytes bounds a blob; the default is DefaultMaxBytes.
func NewMemory(maxBytes int64) *Memory {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Memory{max: maxBytes, blobs: map[Name]heldBlob{}, slots: map[string]heldBlob{}}
}

// Put implements Blobs.
func (m *Memory) Put(_ context.Context, data []byte) (Name, error) {
	if int64(len(data)) > m.max {
		return "", TooLarge(int64(len(data)), m.max)
	}
	name := NameOf(data)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.blobs[name]; !there {
		m.blobs[name] = heldBlob{bytes.Clone(data), time.Now()}
	}
	return name, nil
}

// Get implements Blobs.
func (m *Memory) Get(_ context.Context, name Name) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, there := m.blobs[name]
	if !there {
		return nil, Missing(name)
	}
	return bytes.Clone(one.data), nil
}

// Delete implements Blobs.
func (m *Memory) Delete(_ context.Context, names ...Name) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range names {
		delete(m.blobs, name)
	}
	return nil
}

// Each implements Blobs.
func (m *Memory) Each(_ context.Context, visit func(Info) error) error {
	for _, info := range m.listInfos() {
		if err := visit(info); err != nil {
			return err
		}
	}
	return nil
}

func (m *Memory) listInfos() []Info {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]Info, 0, len(m.blobs))
	for name, one := range m.blobs {
		list = append(list, Info{Name: name, Size: int64(len(one.data)), Modified: one.at})
	}
	return list
}

// Sweep implements Blobs.
func (m *Memory) Sweep(ctx context.Context, keep func(Info) bool) (Swept, error) {
	return SweepEach(ctx, m, keep)
}

// Slot implements Slots.
func (m *Memory) Slot(_ context.Context, key string) ([]byte, error) {
	if err := CheckSlot(key, nil); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	one, there := m.slots[key]
	if !there {
		return nil, NoSlot(key)
	}
	return bytes.Clone(one.data), nil
}

// CreateSlot implements Slots.
func (m *Memory) CreateSlot(_ context.Context, key string, value []byte) error {
	if err := CheckSlot(key, value); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, there := m.slots[key]; there {
		return SlotTaken(key)
	}
	m.slots[key] = heldBlob{bytes.Clone(value), time.Now()}
	return nil
}

// ReplaceSlot implements Slots.
func (m *Memory) ReplaceSlot(_ context.Context, key string, old, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	one, there := m.slots[key]
	if !there || !bytes.Equal(one.data, old) {
		return NoSlot(key)
	}
	copy(one.data, value)
	return nil
}

// EraseSlot implements Slots.
func (m *Memory) EraseSlot(_ context.Context, key string) error {
	if err := CheckSlot(key, nil); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.slots[key].data)
	delete(m.slots, key)
	return nil
}

// Slots implements Slots.
func (m *Memory) Slots(_ context.Context, prefix string) ([]SlotInfo, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var list []SlotInfo
	for key, one := range m.slots {
		if strings.HasPrefix(key, prefix) {
			list = append(list, SlotInfo{Key: key, Modified: one.at})
		}
	}
	slices.SortFunc(list, func(a, b SlotInfo) int { return strings.Compare(a.Key, b.Key) })
	return list, nil
}
