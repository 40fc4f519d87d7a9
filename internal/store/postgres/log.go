package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Events implements run.Log.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	var list []run.Event
	err := s.retryRead(ctx, "read events", func(ctx context.Context) (err error) {
		list, err = s.queryEvents(ctx, id, after, limit)
		return err
	})
	return list, err
}

func (s *Store) queryEvents(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	found, err := s.pool.Query(ctx, `
		select seq, at, kind, by_user, by_client, via, data, mac from events where run = $1 and seq > $2 order by seq limit $3`,
		byteString(id), after, max(limit, 0))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(found, func(row pgx.CollectableRow) (e run.Event, err error) {
		err = row.Scan(rows.EventFields(&e)...)
		return e, err
	})
}

// Snapshot implements run.Log.
func (s *Store) Snapshot(ctx context.Context, id string) (*run.Snapshot, error) {
	var found *run.Snapshot
	err := s.retryRead(ctx, "read a snapshot", func(ctx context.Context) error {
		var snap run.Snapshot
		err := s.pool.QueryRow(ctx, `select seq, head, state, mac from snapshots where run = $1`, byteString(id)).
			Scan(&snap.Seq, &snap.Head, &snap.State, &snap.MAC)
		if isNoRows(err) {
			return nil
		}
		found = &snap
		return err
	})
	if err != nil {
		return nil, err
	}
	return found, nil
}

// Definition implements run.Log.
func (s *Store) Definition(ctx context.Context, hash string) (run.Definition, error) {
	d := run.Definition{Hash: hash}
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no definition %s", hash)
	err := s.queryRow(ctx, "read a definition", missing, `select text from definitions where hash = $1`, []any{byteString(hash)}, []any{(*byteString)(&d.Text)})
	return d, err
}

// Outcome implements run.Log.
func (s *Store) Outcome(ctx context.Context, id, user, key string) (run.Handle, error) {
	sql, args := `select run, seq, handle from commands where run = $1 and key = $2`, []any{byteString(id), byteString(key)}
	missing := guideway.Errorf(guideway.CodeNotFound, "no command of run %s has the key %q", id, key)
	if id == "" {
		sql, args = `select run, seq, handle from requests where user_id = $1 and key = $2`, []any{byteString(user), byteString(key)}
		missing = guideway.Errorf(guideway.CodeNotFound, "no request has the key %q", key)
	}
	var h run.Handle
	err := s.queryRow(ctx, "read an outcome", missing, sql, args, []any{(*byteString)(&h.Run), &h.Seq, (*byteString)(&h.Token)})
	return h, err
}
