package blob

import (
	"context"
	"sync"

	"github.com/guideway-dev/guideway"
)

// Overlay is a layer in memory over a read-only store, for a directory that is no longer
// writable. New blobs and slots are kept in the layer; deleted ones are hidden. The store
// below is not changed.
type Overlay struct {
	below Store
	top   *Memory

	// hidden has the names of deleted blobs and the keys of erased slots.
	hidden sync.Map
}

var _ Store = (*Overlay)(nil)

// NewOverlay returns an empty layer over a store. maxBytes bounds a blob; the default is
// DefaultMaxBytes.
func NewOverlay(below Store, maxBytes int64) *Overlay {
	return &Overlay{below: below, top: NewMemory(maxBytes)}
}

func (o *Overlay) isHidden(what string) bool {
	_, is := o.hidden.Load(what)
	return is
}

// Put implements Blobs.
func (o *Overlay) Put(ctx context.Context, data []byte) (Name, error) {
	name, err := o.top.Put(ctx, data)
	if err == nil {
		o.hidden.Delete(string(name))
	}
	return name, err
}

// Get implements Blobs.
func (o *Overlay) Get(ctx context.Context, name Name) ([]byte, error) {
	if o.isHidden(string(name)) {
		return nil, Missing(name)
	}
	data, err := o.top.Get(ctx, name)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return o.below.Get(ctx, name)
	}
	return data, err
}

// Delete implements Blobs.
func (o *Overlay) Delete(ctx context.Context, names ...Name) error {
	for _, name := range names {
		o.hidden.Store(string(name), nil)
	}
	return o.top.Delete(ctx, names...)
}

// Each implements Blobs.
func (o *Overlay) Each(ctx context.Context, visit func(Info) error) error {
	told := map[Name]bool{}
	err := o.top.Each(ctx, func(info Info) error {
		told[info.Name] = true
		return visit(info)
	})
	if err != nil {
		return err
	}
	return o.below.Each(ctx, func(info Info) error {
		if told[info.Name] || o.isHidden(string(info.Name)) {
			return nil
		}
		return visit(info)
	})
}

// Sweep implements Blobs.
func (o *Overlay) Sweep(ctx context.Context, keep func(Info) bool) (Swept, error) {
	return SweepEach(ctx, o, keep)
}

// Slot implements Slots.
func (o *Overlay) Slot(ctx context.Context, key string) ([]byte, error) {
	value, err := o.top.Slot(ctx, key)
	if guideway.ErrorCode(err) == guideway.CodeNotFound && !o.isHidden(key) {
		return o.below.Slot(ctx, key)
	}
	return value, err
}

// CreateSlot implements Slots.
func (o *Overlay) CreateSlot(ctx context.Context, key string, value []byte) error {
	_, err := o.Slot(ctx, key)
	switch {
	case err == nil:
		return SlotTaken(key)
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return err
	}
	return o.top.CreateSlot(ctx, key, value)
}

// ReplaceSlot implements Slots. A slot of the store below cannot be replaced.
func (o *Overlay) ReplaceSlot(ctx context.Context, key string, old, value []byte) error {
	return o.top.ReplaceSlot(ctx, key, old, value)
}

// EraseSlot implements Slots. A slot of the store below is hidden, not erased.
func (o *Overlay) EraseSlot(ctx context.Context, key string) error {
	o.hidden.Store(key, nil)
	return o.top.EraseSlot(ctx, key)
}

// Slots implements Slots.
func (o *Overlay) Slots(ctx context.Context, prefix string) ([]SlotInfo, error) {
	list, err := o.top.Slots(ctx, prefix)
	if err != nil {
		return nil, err
	}
	older, err := o.below.Slots(ctx, prefix)
	for _, slot := range older {
		if !o.isHidden(slot.Key) {
			list = append(list, slot)
		}
	}
	return list, err
}
