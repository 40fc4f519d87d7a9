package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// Events implements run.Log.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	var list []run.Event
	err := s.read(ctx, "read events", func(ctx context.Context) (err error) {
		list, err = s.events(ctx, id, after, limit)
		return err
	})
	return list, err
}

func (s *Store) events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	rows, err := s.pool.Query(ctx, `
		select seq, at, kind, by_user, by_client, via, data, mac from events where run = $1 and seq > $2 order by seq limit $3`,
		octets(id), after, max(limit, 0))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (run.Event, error) {
		var e run.Event
		err := row.Scan(&e.Seq, &e.At, (*octets)(&e.Kind), (*octets)(&e.By.User), (*octets)(&e.By.Client), (*octets)(&e.By.Via),
			(*[]byte)(&e.Data), &e.MAC)
		e.At = e.At.UTC()
		return e, err
	})
}

// Snapshot implements run.Log.
func (s *Store) Snapshot(ctx context.Context, id string) (*run.Snapshot, error) {
	var found *run.Snapshot
	err := s.read(ctx, "read a snapshot", func(ctx context.Context) error {
		var snap run.Snapshot
		err := s.pool.QueryRow(ctx, `select seq, head, state, mac from snapshots where run = $1`, octets(id)).
			Scan(&snap.Seq, &snap.Head, &snap.State, &snap.MAC)
		if noRows(err) {
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
	err := s.readRow(ctx, "read a definition", missing, `select text from definitions where hash = $1`, []any{octets(hash)}, []any{(*octets)(&d.Text)})
	return d, err
}

// Outcome implements run.Log.
func (s *Store) Outcome(ctx context.Context, id, user, key string) (run.Handle, error) {
	sql, args := `select run, seq, handle from commands where run = $1 and key = $2`, []any{octets(id), octets(key)}
	if id == "" {
		sql, args = `select run, seq, handle from requests where user_id = $1 and key = $2`, []any{octets(user), octets(key)}
	}
	var h run.Handle
	missing := guideway.Errorf(guideway.CodeNotFound, "no command or request with this key is known")
	err := s.readRow(ctx, "read an outcome", missing, sql, args, []any{(*octets)(&h.Run), &h.Seq, (*octets)(&h.Token)})
	return h, err
}
