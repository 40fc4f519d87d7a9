package sqlite

import (
	"context"
	"errors"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// runColumns are the columns of a record, in the order of runValues and scanRun.
const runColumns = `id, user, client, workflow, name, version, hash, goal, project, project_path, project_branch, project_commit, ` +
	`status, kind, step, title, person, done, parent, parent_seq, created, updated, seq, head, handle`

func runValues(r run.Record) []any {
	return []any{
		r.ID, r.User, r.Client, r.Workflow, r.Name, r.Version, r.Hash, r.Goal, r.Project.ID, r.Project.Path, r.Project.Branch, r.Project.Commit,
		string(r.Status), string(r.Kind), r.Step, r.Title, r.Person, r.Done, r.Parent, r.ParentSeq,
		fromTime(r.Created), fromTime(r.Updated), r.Seq, r.Head, r.Handle,
	}
}

func scanRun(row scanner) (run.Record, error) { return scanRunAnd(row) }

// scanRunAnd scans a record after the given leading columns.
func scanRunAnd(row scanner, before ...any) (run.Record, error) {
	var r run.Record
	var created, updated int64
	err := row.Scan(append(before,
		&r.ID, &r.User, &r.Client, &r.Workflow, &r.Name, &r.Version, &r.Hash, &r.Goal,
		&r.Project.ID, &r.Project.Path, &r.Project.Branch, &r.Project.Commit,
		&r.Status, &r.Kind, &r.Step, &r.Title, &r.Person, &r.Done, &r.Parent, &r.ParentSeq, &created, &updated, &r.Seq, &r.Head, &r.Handle)...)
	r.Created, r.Updated = toTime(created), toTime(updated)
	return r, err
}

const eventColumns = `seq, at, kind, by_user, by_client, by_via, data, mac`

func scanEvent(row scanner) (run.Event, error) { return scanEventAnd(row) }

// scanEventAnd scans an event after the given leading columns.
func scanEventAnd(row scanner, before ...any) (run.Event, error) {
	var e run.Event
	var at int64
	err := row.Scan(append(before, &e.Seq, &at, &e.Kind, &e.By.User, &e.By.Client, &e.By.Via, (*[]byte)(&e.Data), &e.MAC)...)
	e.At = toTime(at)
	return e, err
}

// withReadAccess calls do, which only reads, while the store is open.
func (s *Store) withReadAccess(ctx context.Context, doing string, do func() error) error {
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	return s.wrapError(doing, do())
}

// orMissing replaces errNoRow by an error with CodeNotFound.
func orMissing(err error, format string, args ...any) error {
	if errors.Is(err, errNoRow) {
		return guideway.Errorf(guideway.CodeNotFound, format, args...)
	}
	return err
}

// Run implements run.Index.
func (s *Store) Run(ctx context.Context, id string) (r run.Record, err error) {
	err = s.withReadAccess(ctx, "read the run "+id, func() error {
		stmt, err := s.readers.prepareStatement(ctx, `SELECT `+runColumns+` FROM runs WHERE id = ?`)
		if err != nil {
			return err
		}
		r, err = scanRun(stmt.QueryRowContext(ctx, id))
		return orMissing(err, "there is no run %q", id)
	})
	return r, err
}

// Handle implements run.Index.
func (s *Store) Handle(ctx context.Context, token string) (run.Handle, error) {
	h := run.Handle{Token: token}
	err := s.withReadAccess(ctx, "look up a handle", func() error {
		err := s.readers.queryRow(ctx, `SELECT run, seq FROM handles WHERE token = ?`, []any{token}, []any{&h.Run, &h.Seq})
		return orMissing(err, "there is no such handle")
	})
	return h, err
}

// Outcome implements run.Log.
func (s *Store) Outcome(ctx context.Context, id, user, key string) (run.Handle, error) {
	h := run.Handle{Run: id}
	err := s.withReadAccess(ctx, "look up a command", func() error {
		var err error
		if id == "" {
			err = s.readers.queryRow(ctx, `SELECT run, seq, handle FROM requests WHERE user = ? AND key = ?`,
				[]any{user, key}, []any{&h.Run, &h.Seq, &h.Token})
		} else {
			err = s.readers.queryRow(ctx, `SELECT seq, handle FROM commands WHERE run = ? AND key = ?`,
				[]any{id, key}, []any{&h.Seq, &h.Token})
		}
		return orMissing(err, "no command has the key %q", key)
	})
	return h, err
}

// Events implements run.Log.
func (s *Store) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	return queryList(ctx, s, "read the events of the run "+id, s.readers.queryRows, scanEvent,
		`SELECT `+eventColumns+` FROM events WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?`, id, after, limit)
}

// Snapshot implements run.Log.
func (s *Store) Snapshot(ctx context.Context, id string) (snap *run.Snapshot, err error) {
	err = s.withReadAccess(ctx, "read the snapshot of the run "+id, func() error {
		var found run.Snapshot
		err := s.readers.queryRow(ctx, `SELECT seq, head, state, mac FROM snapshots WHERE run = ?`,
			[]any{id}, []any{&found.Seq, &found.Head, &found.State, &found.MAC})
		if errors.Is(err, errNoRow) {
			return nil
		}
		snap = &found
		return err
	})
	if err != nil {
		return nil, err
	}
	return snap, nil
}

// Definition implements run.Log.
func (s *Store) Definition(ctx context.Context, hash string) (run.Definition, error) {
	d := run.Definition{Hash: hash}
	err := s.withReadAccess(ctx, "read a pinned definition", func() error {
		var text []byte
		err := s.readers.queryRow(ctx, `SELECT text FROM definitions WHERE hash = ?`, []any{hash}, []any{&text})
		d.Text = string(text)
		return orMissing(err, "there is no definition %s", hash)
	})
	return d, err
}
