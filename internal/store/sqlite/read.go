package sqlite

import (
	"context"
	"errors"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// runColumns are the columns of rows.RunFields.
const runColumns = `id, user, client, workflow, name, version, hash, goal, project, project_path, project_branch, project_commit, ` +
	`status, kind, step, title, person, done, parent, parent_seq, created, updated, seq, head, handle`

func scanRun(row scanner) (run.Record, error) { return scanRunAnd(row) }

// scanRunAnd scans a record after the given leading columns.
func scanRunAnd(row scanner, before ...any) (r run.Record, err error) {
	err = row.Scan(append(before, rows.RunFields(&r)...)...)
	return r, err
}

const eventColumns = `seq, at, kind, by_user, by_client, by_via, data, mac`

func scanEvent(row scanner) (run.Event, error) { return scanEventAnd(row) }

// scanEventAnd scans an event after the given leading columns.
func scanEventAnd(row scanner, before ...any) (e run.Event, err error) {
	err = row.Scan(append(before, rows.EventFields(&e)...)...)
	return e, err
}

// withReadAccess calls do, which must only read, and keeps the store open during the call.
func (s *Store) withReadAccess(ctx context.Context, doing string, do func() error) error {
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	return s.wrapError(doing, do())
}

// readRow scans the row of a constant query. It returns missing if there is no row.
func (s *Store) readRow(ctx context.Context, doing string, missing error, text string, args, into []any) error {
	err := s.withReadAccess(ctx, doing, func() error { return s.readers.queryRow(ctx, text, args, into) })
	if errors.Is(err, errNoRow) {
		return missing
	}
	return err
}

// Run implements run.Index.
func (s *Store) Run(ctx context.Context, id string) (r run.Record, err error) {
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no run %q", id)
	err = s.readRow(ctx, "read the run "+id, missing, `SELECT `+runColumns+` FROM runs WHERE id = ?`, []any{id}, rows.RunFields(&r))
	return r, err
}

// Handle implements run.Index.
func (s *Store) Handle(ctx context.Context, token string) (run.Handle, error) {
	h := run.Handle{Token: token}
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no such handle")
	err := s.readRow(ctx, "look up a handle", missing, `SELECT run, seq FROM handles WHERE token = ?`, []any{token}, []any{&h.Run, &h.Seq})
	return h, err
}

// Outcome implements run.Log.
func (s *Store) Outcome(ctx context.Context, id, user, key string) (run.Handle, error) {
	h := run.Handle{Run: id}
	text, args := `SELECT run, seq, handle FROM commands WHERE run = ? AND key = ?`, []any{id, key}
	missing := guideway.Errorf(guideway.CodeNotFound, "no command of run %s has the key %q", id, key)
	if id == "" {
		text, args = `SELECT run, seq, handle FROM requests WHERE user = ? AND key = ?`, []any{user, key}
		missing = guideway.Errorf(guideway.CodeNotFound, "no request has the key %q", key)
	}
	err := s.readRow(ctx, "look up a command", missing, text, args, []any{&h.Run, &h.Seq, &h.Token})
	return h, err
}

// Events implements run.Log.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	return queryList(ctx, s, "read the events of the run "+id, s.readers.queryRows, scanEvent,
		`SELECT `+eventColumns+` FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?`, id, after, limit)
}

// Snapshot implements run.Log.
func (s *Store) Snapshot(ctx context.Context, id string) (snap *run.Snapshot, err error) {
	snap = &run.Snapshot{}
	err = s.readRow(ctx, "read the snapshot of the run "+id, errNoRow, `SELECT seq, head, state, mac FROM snapshots WHERE run = ?`,
		[]any{id}, []any{&snap.Seq, &snap.Head, &snap.State, &snap.MAC})
	if errors.Is(err, errNoRow) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return snap, nil
}

// Definition implements run.Log.
func (s *Store) Definition(ctx context.Context, hash string) (run.Definition, error) {
	d := run.Definition{Hash: hash}
	missing := guideway.Errorf(guideway.CodeNotFound, "there is no definition %s", hash)
	err := s.readRow(ctx, "read a pinned definition", missing, `SELECT text FROM definitions WHERE hash = ?`, []any{hash}, []any{(*rows.Text)(&d.Text)})
	return d, err
}
