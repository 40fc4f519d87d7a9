package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Blobs is a store of blobs in the database: a checkpoint that was saved on one
// machine loads on another.
type Blobs struct {
	store *Store
	max   int64
}

var _ blob.Store = (*Blobs)(nil)

// Blobs gives the store of blobs in the same database. maxBytes bounds a blob; 0
// is blob.DefaultMaxBytes. It ends with the store.
func (s *Store) Blobs(maxBytes int64) *Blobs {
	if maxBytes <= 0 {
		maxBytes = blob.DefaultMaxBytes
	}
	return &Blobs{store: s, max: maxBytes}
}

// ofRoom marks an error that came of a full disk.
func ofRoom(err error) error {
	var known *guideway.Error
	if code, ok := sqlState(err); ok && code == codeDiskFull && errors.As(err, &known) {
		marked := *known
		marked.Err = blob.Full(known.Err)
		return &marked
	}
	return err
}

// Put implements blob.Blobs. To repeat it does no harm.
func (b *Blobs) Put(ctx context.Context, data []byte) (blob.Name, error) {
	if int64(len(data)) > b.max {
		return "", blob.TooLarge(int64(len(data)), b.max)
	}
	name := blob.NameOf(data)
	err := b.store.try(ctx, "write a blob", func(ctx context.Context, _ bool) error {
		if data == nil {
			data = []byte{}
		}
		_, err := b.store.pool.Exec(ctx, `insert into blobs (name, data, size) values ($1, $2, $3) on conflict do nothing`, string(name), data, len(data))
		return err
	})
	if err != nil {
		return "", ofRoom(err)
	}
	return name, nil
}

// Get implements blob.Blobs.
func (b *Blobs) Get(ctx context.Context, name blob.Name) ([]byte, error) {
	if !name.Valid() {
		return nil, blob.Missing(name)
	}
	var data []byte
	err := b.store.read(ctx, "read a blob", func(ctx context.Context) error {
		err := b.store.pool.QueryRow(ctx, `select data from blobs where name = $1`, string(name)).Scan(&data)
		if noRows(err) {
			return blob.Missing(name)
		}
		return err
	})
	if err != nil {
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
	return b.store.try(ctx, "delete blobs", func(ctx context.Context, _ bool) error {
		_, err := b.store.pool.Exec(ctx, `delete from blobs where name = any($1)`, list)
		return err
	})
}

// Each implements blob.Blobs. It holds no connection while visit works.
func (b *Blobs) Each(ctx context.Context, visit func(blob.Info) error) error {
	const page = 1000
	for after := ""; ; {
		list, err := readList(ctx, b.store, "list the blobs", func(row pgx.CollectableRow) (blob.Info, error) {
			var info blob.Info
			err := row.Scan((*string)(&info.Name), &info.Size, &info.Modified)
			return info, err
		}, `select name, size, modified from blobs where name > $1 order by name limit $2`, after, page)
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

// Sweep implements blob.Blobs. There are no leftovers: a row is there or not.
func (b *Blobs) Sweep(ctx context.Context, keep func(blob.Info) bool) (swept blob.Swept, err error) {
	err = b.Each(ctx, func(info blob.Info) error {
		if keep(info) {
			return nil
		}
		swept.Blobs++
		swept.Bytes += info.Size
		return b.Delete(ctx, info.Name)
	})
	return swept, err
}

// Slot implements blob.Slots.
func (b *Blobs) Slot(ctx context.Context, key string) (value []byte, err error) {
	if err := blob.CheckSlot(key, nil); err != nil {
		return nil, err
	}
	err = b.store.read(ctx, "read a slot", func(ctx context.Context) error {
		err := b.store.pool.QueryRow(ctx, `select value from slots where key = $1`, key).Scan(&value)
		if noRows(err) {
			return blob.NoSlot(key)
		}
		return err
	})
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
	err := b.store.try(ctx, "write a slot", func(ctx context.Context, doubt bool) error {
		var own bool
		// After an attempt without an answer, a slot with this value is its own.
		err := b.store.pool.QueryRow(ctx, `
			with made as (insert into slots (key, value) values ($1, $2) on conflict do nothing returning true)
			select exists (select from made) or ($3 and exists (select from slots where key = $1 and value = $2))`, key, value, doubt).Scan(&own)
		if err == nil && !own {
			return blob.SlotTaken(key)
		}
		return err
	})
	return ofRoom(err)
}

// EraseSlot implements blob.Slots. The row is overwritten before it is deleted;
// how long the server keeps older versions of it is the server's affair.
func (b *Blobs) EraseSlot(ctx context.Context, key string) error {
	if err := blob.CheckSlot(key, nil); err != nil {
		return err
	}
	return b.store.try(ctx, "erase a slot", func(ctx context.Context, _ bool) error {
		if _, err := b.store.pool.Exec(ctx, `update slots set value = '' where key = $1`, key); err != nil {
			return err
		}
		_, err := b.store.pool.Exec(ctx, `delete from slots where key = $1`, key)
		return err
	})
}

// Slots implements blob.Slots.
func (b *Blobs) Slots(ctx context.Context, prefix string) ([]blob.SlotInfo, error) {
	return readList(ctx, b.store, "list the slots", func(row pgx.CollectableRow) (blob.SlotInfo, error) {
		var info blob.SlotInfo
		err := row.Scan(&info.Key, &info.Modified)
		info.Modified = info.Modified.UTC()
		return info, err
	}, `select key, modified from slots where starts_with(key, $1) order by key`, prefix)
}
