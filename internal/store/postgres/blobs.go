package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgerrcode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Blobs is a blob store in the database, so that a checkpoint saved on one machine can be
// loaded on another.
type Blobs struct {
	store *Store
	max   int64
}

var _ blob.Store = (*Blobs)(nil)

// Blobs returns the blob store in the same database. maxBytes bounds a blob; 0 means
// blob.DefaultMaxBytes. It is closed with the store.
func (s *Store) Blobs(maxBytes int64) *Blobs {
	if maxBytes <= 0 {
		maxBytes = blob.DefaultMaxBytes
	}
	return &Blobs{store: s, max: maxBytes}
}

// markDiskFull marks an error that was caused by a full disk.
func markDiskFull(err error) error {
	var known *guideway.Error
	if code, ok := sqlState(err); ok && code == pgerrcode.DiskFull && errors.As(err, &known) {
		marked := *known
		marked.Err = blob.Full(known.Err)
		return &marked
	}
	return err
}

// Put implements blob.Blobs. It is idempotent.
func (b *Blobs) Put(ctx context.Context, data []byte) (blob.Name, error) {
	if int64(len(data)) > b.max {
		return "", blob.TooLarge(int64(len(data)), b.max)
	}
	name := blob.NameOf(data)
	err := b.store.retryWrite(ctx, "write a blob", func(ctx context.Context, _ bool) error {
		if data == nil {
			data = []byte{}
		}
		_, err := b.store.pool.Exec(ctx, `insert into blobs (name, data, size) values ($1, $2, $3) on conflict do nothing`, string(name), data, len(data))
		return err
	})
	if err != nil {
		return "", markDiskFull(err)
	}
	return name, nil
}

// Get implements blob.Blobs.
func (b *Blobs) Get(ctx context.Context, name blob.Name) ([]byte, error) {
	if !name.Valid() {
		return nil, blob.Missing(name)
	}
	var data []byte
	q := rows.Query{Text: `select data from blobs where name = $1`, Args: []any{string(name)}}
	if err := rows.QueryOne(ctx, &b.store.methods, "read a blob", blob.Missing(name), q, &data); err != nil {
		return nil, err
	}
	if blob.NameOf(data) != name {
		return nil, blob.Corrupt(name, "PostgreSQL at "+b.store.where)
	}
	return data, nil
}

// Delete implements blob.Blobs.
func (b *Blobs) Delete(ctx context.Context, names ...blob.Name) error {
	if len(names) == 0 {
		return nil
	}
	list := make([]string, 0, len(names))
	for _, name := range names {
		if name.Valid() {
			list = append(list, string(name))
		}
	}
	return b.store.retryWrite(ctx, "delete blobs", func(ctx context.Context, _ bool) error {
		_, err := b.store.pool.Exec(ctx, `delete from blobs where name = any($1)`, list)
		return err
	})
}

// Each implements blob.Blobs. It does not occupy a connection during visit.
func (b *Blobs) Each(ctx context.Context, visit func(blob.Info) error) error {
	const page = 1000
	for after := ""; ; {
		q := rows.Query{Text: `select name, size, modified from blobs where name > $1 order by name limit $2`, Args: []any{after, page}}
		list, err := rows.List(ctx, &b.store.methods, "list the blobs", q, rows.ScanFields(func(info *blob.Info) []any {
			return []any{(*string)(&info.Name), &info.Size, &info.Modified}
		}))
		if err != nil {
			return err
		}
		for _, info := range list {
			if err := visit(info); err != nil {
				return err
			}
		}
		if len(list) < page {
			return nil
		}
		after = string(list[len(list)-1].Name)
	}
}

// Sweep implements blob.Blobs. There are no leftovers, because rows are inserted
// atomically.
func (b *Blobs) Sweep(ctx context.Context, keep func(blob.Info) bool) (blob.Swept, error) {
	return blob.SweepEach(ctx, b, keep)
}

// Slot implements blob.Slots.
func (b *Blobs) Slot(ctx context.Context, key string) (value []byte, err error) {
	if err := blob.CheckSlot(key, nil); err != nil {
		return nil, err
	}
	q := rows.Query{Text: `select value from slots where key = $1`, Args: []any{key}}
	err = rows.QueryOne(ctx, &b.store.methods, "read a slot", blob.NoSlot(key), q, &value)
	return value, err
}

// CreateSlot implements blob.Slots.
func (b *Blobs) CreateSlot(ctx context.Context, key string, value []byte) error {
	if err := blob.CheckSlot(key, value); err != nil {
		return err
	}
	if value == nil {
		value = []byte{}
	}
	err := b.store.retryWrite(ctx, "write a slot", func(ctx context.Context, maybeCommitted bool) error {
		var own bool
		// If the previous attempt got no response, it may have created a slot, which then
		// has this value.
		err := b.store.pool.QueryRow(ctx, `
			with made as (insert into slots (key, value) values ($1, $2) on conflict do nothing returning true)
			select exists (select from made) or ($3 and exists (select from slots where key = $1 and value = $2))`, key, value, maybeCommitted).Scan(&own)
		if err == nil && !own {
			return blob.SlotTaken(key)
		}
		return err
	})
	return markDiskFull(err)
}

// ReplaceSlot implements blob.Slots.
func (b *Blobs) ReplaceSlot(ctx context.Context, key string, old, value []byte) error {
	if err := blob.CheckSlot(key, value); err != nil {
		return err
	}
	return b.store.retryWrite(ctx, "replace a slot", func(ctx context.Context, _ bool) error {
		// If the previous attempt got no response, the slot may have the new value already.
		tag, err := b.store.pool.Exec(ctx, `update slots set value = $3 where key = $1 and value in ($2, $3)`, key, old, value)
		if err == nil && tag.RowsAffected() == 0 {
			return blob.NoSlot(key)
		}
		return err
	})
}

// EraseSlot implements blob.Slots. It overwrites the row before it deletes it. The server
// decides how long it keeps older versions of the row.
func (b *Blobs) EraseSlot(ctx context.Context, key string) error {
	if err := blob.CheckSlot(key, nil); err != nil {
		return err
	}
	return b.store.retryWrite(ctx, "erase a slot", func(ctx context.Context, _ bool) error {
		if _, err := b.store.pool.Exec(ctx, `update slots set value = '' where key = $1`, key); err != nil {
			return err
		}
		_, err := b.store.pool.Exec(ctx, `delete from slots where key = $1`, key)
		return err
	})
}

// Slots implements blob.Slots.
func (b *Blobs) Slots(ctx context.Context, prefix string) ([]blob.SlotInfo, error) {
	q := rows.Query{Text: `select key, modified from slots where starts_with(key, $1) order by key`, Args: []any{prefix}}
	return rows.List(ctx, &b.store.methods, "list the slots", q, rows.ScanFields(func(info *blob.SlotInfo) []any {
		return []any{&info.Key, (*rows.Time)(&info.Modified)}
	}))
}
