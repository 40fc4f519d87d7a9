package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// The statements of a commit.
const (
	sqlInsertDefinition = `INSERT INTO definitions (hash, text) VALUES (?, ?) ON CONFLICT DO NOTHING`
	sqlInsertRun        = `INSERT INTO runs (` + runColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlRunForCommit     = `SELECT num, seq FROM runs WHERE id = ?`
	sqlUpdateRun        = `UPDATE runs SET (` + runColumns + `) = (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) WHERE num = ?`
	sqlInsertEvent      = `INSERT INTO events (run, seq, at, kind, by_user, by_client, by_via, data, mac) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlInsertHandle     = `INSERT INTO handles (token, run, seq) VALUES (?, ?, ?)`
	sqlInsertCommand    = `INSERT INTO commands (run, key, seq, handle) VALUES (?, ?, ?, ?)`
	sqlInsertRequest    = `INSERT INTO requests (user, key, run, seq, handle) VALUES (?, ?, ?, ?, ?)`
	sqlPutSnapshot      = `INSERT INTO snapshots (run, seq, head, state, mac) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, head = excluded.head, state = excluded.state, mac = excluded.mac`
	sqlInsertWords = `INSERT INTO words (rowid, scope, text) VALUES (?, ?, ?)`
	sqlTakeDrive   = `INSERT INTO drives (run, user, instance, attended) VALUES (?, ?, ?, ?)
		ON CONFLICT (run) DO UPDATE SET instance = excluded.instance, attended = excluded.attended, cancelled = 0`
	sqlReleaseDrive = `DELETE FROM drives WHERE run = ?`
	sqlCancelDrive  = `UPDATE drives SET cancelled = 1 WHERE run = ?`
)

// Create implements run.Writer.
func (s *Store) Create(ctx context.Context, d run.Definition, c run.Commit) error {
	defer s.notifyOfJob(c)
	return s.commitShared(ctx, "create the run "+c.Record.ID, func(ctx context.Context, t *txn) error {
		if err := rows.CheckCommit(c); err != nil {
			return err
		}
		if _, err := t.execStatement(ctx, sqlInsertDefinition, d.Hash, []byte(d.Text)); err != nil {
			return err
		}
		result, err := t.execStatement(ctx, sqlInsertRun, dialect().Values(rows.RunFields(&c.Record))...)
		if err != nil {
			return err
		}
		num, err := result.LastInsertId()
		if err != nil {
			return err
		}
		var list []rows.Query
		if c.Key != "" {
			list = append(list, statement(sqlInsertRequest, c.Record.User, c.Key, c.Record.ID, c.Record.Seq, c.Record.Handle))
		}
		return t.insertCommit(ctx, list, num, c, run.OpCreated)
	})
}

// Append implements run.Writer.
func (s *Store) Append(ctx context.Context, c run.Commit) error {
	defer s.notifyOfJob(c)
	return s.commitShared(ctx, "add events to the run "+c.Record.ID, func(ctx context.Context, t *txn) error {
		if err := rows.CheckCommit(c); err != nil {
			return err
		}
		var num, seq int64
		err := t.queryRow(ctx, sqlRunForCommit, []any{c.Record.ID}, []any{&num, &seq})
		if errors.Is(err, errNoRow) {
			return guideway.Errorf(guideway.CodeNotFound, "there is no run %q", c.Record.ID)
		}
		if err != nil {
			return err
		}
		if seq != c.Expected {
			return guideway.Errorf(guideway.CodeConflict, "the run %s is at event %d, not %d", c.Record.ID, seq, c.Expected)
		}
		list := []rows.Query{statement(sqlUpdateRun, append(dialect().Values(rows.RunFields(&c.Record)), num)...)}
		if c.Key != "" {
			list = append(list, statement(sqlInsertCommand, c.Record.ID, c.Key, c.Record.Seq, c.Record.Handle))
		}
		return t.insertCommit(ctx, list, num, c, run.OpChanged)
	})
}

// statement returns a constant statement.
func statement(text string, args ...any) rows.Query { return rows.Query{Text: text, Args: args} }

// insertCommit executes statements and stores the parts that Create and Append have in
// common. num is the number of the run.
func (t *txn) insertCommit(ctx context.Context, list []rows.Query, num int64, c run.Commit, op string) error {
	r := c.Record
	for _, e := range c.Events {
		list = append(list, statement(sqlInsertEvent, append([]any{r.ID}, dialect().Values(rows.EventFields(&e))...)...))
	}
	if c.Handle != "" {
		list = append(list, statement(sqlInsertHandle, c.Handle, r.ID, r.Seq))
	}
	if snap := c.Snapshot; snap != nil {
		list = append(list, statement(sqlPutSnapshot, r.ID, snap.Seq, snap.Head, snap.State, snap.MAC))
	}
	list = append(list, driveStatements(c)...)
	if err := t.Queue(ctx, list...); err != nil {
		return err
	}
	if len(c.Terms) > 0 {
		t.words = append(t.words, wordsEntry{row: wordsRow(num, r.Seq), scope: runScope(r), text: strings.Join(c.Terms, " ")})
	}
	return t.AddChange(ctx, run.Change{
		At: r.Updated, Subject: run.SubjectRun, Op: op, User: r.User, ID: r.ID, Workflow: r.Workflow, Project: r.Project.ID, Seq: r.Seq,
	})
}

// driveStatements returns the statements for the drive and the job of a commit. A drive that
// begins ends the job.
func driveStatements(c run.Commit) (list []rows.Query) {
	if d := c.Drive; d != nil {
		switch d.Kind {
		case run.DriveTaken:
			list = append(list, statement(sqlTakeDrive, c.Record.ID, c.Record.User, d.Instance, d.Attended), statement(sqlDeleteJob, c.Record.ID))
		case run.DriveReleased:
			list = append(list, statement(sqlReleaseDrive, c.Record.ID))
		case run.DriveCancelled:
			list = append(list, statement(sqlCancelDrive, c.Record.ID))
		}
	}
	if c.Job != nil {
		list = append(list, insertJob(*c.Job))
	}
	return list
}
