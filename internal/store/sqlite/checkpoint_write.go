package sqlite

import (
	"context"
	"errors"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

var _ checkpoint.Index = (*Store)(nil)

// maxAuditEntries is the approximate number of entries that the audit log keeps.
const maxAuditEntries = 100_000

// The statements that change checkpoints.
const (
	checkpointColumns = `id, user, session, run, run_seq, parent, branch, number, link, workflow, project, agent, name, tags, kind, ` +
		`created, bytes, tokens, sum, blob, stored, base, key, problem`
	sqlInsertCheckpoint = `INSERT INTO checkpoints (` + checkpointColumns +
		`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlLineLast         = `SELECT last FROM checkpoint_lines WHERE user = ? AND session = ?`
	sqlCheckpointExists = `SELECT 1 FROM checkpoints WHERE id = ? AND user = ? AND session = ?`
	sqlInsertTag        = `INSERT INTO checkpoint_tags (tag, num) VALUES (?, ?)`
	sqlInsertKeywords   = `INSERT INTO checkpoint_words (rowid, scope, text) VALUES (?, ?, ?)`
	sqlSwapCheckpoint   = `UPDATE checkpoints SET blob = ?, stored = ?, base = ?, key = ? WHERE id = ? AND user = ? AND session = ? AND blob = ?`
	sqlRemoveFind       = `SELECT num, parent FROM checkpoints WHERE id = ? AND user = ? AND session = ?`
	sqlReparent         = `UPDATE checkpoints SET parent = ? WHERE parent = ?`
	sqlHasDependent     = `SELECT id FROM checkpoints WHERE base = ? LIMIT 1`
	sqlInsertDeleted    = `INSERT INTO checkpoint_gone (id, at) VALUES (?, ?) ON CONFLICT DO NOTHING`
	sqlMarkCheckpoint   = `UPDATE checkpoints SET problem = ? WHERE id = ? AND user = ? AND session = ?`
	sqlEnsureLine       = `INSERT INTO checkpoint_lines (user, session, run, workflow, project, last, count, stored, bytes, touched) VALUES (?, ?, '', '', '', 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING`
	sqlDescribeLine     = `UPDATE checkpoint_lines SET run = ?, workflow = ?, project = ? WHERE user = ? AND session = ? AND last <= ?`
	sqlInsertAudit      = `INSERT INTO checkpoint_audit (at, action, user, session, checkpoint, client, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`
	sqlDropEmptyLine    = `DELETE FROM checkpoint_lines WHERE user = ?1 AND session = ?2 AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE user = ?1 AND session = ?2)`
	sqlPruneDeleted     = `DELETE FROM checkpoint_gone WHERE at < ?`
	sqlUpdateLine       = `
		UPDATE checkpoint_lines SET (last, count, stored, bytes) = (
			SELECT max(checkpoint_lines.last, coalesce(max(number), 0)), coalesce(sum(kind <> 'piece'), 0), coalesce(sum(stored), 0), coalesce(sum(bytes), 0)
			FROM checkpoints WHERE user = ?1 AND session = ?2
		), touched = max(touched, ?3) WHERE user = ?1 AND session = ?2`
)

// checkpointStatements returns the statements of a save, which stay prepared.
func checkpointStatements() []string {
	return []string{
		sqlInsertCheckpoint, sqlLineLast, sqlCheckpointExists, sqlInsertTag, sqlInsertKeywords, sqlSwapCheckpoint, sqlEnsureLine,
		sqlDescribeLine, sqlInsertAudit, sqlUpdateLine, sqlDropEmptyLine, sqlRemoveFind, sqlReparent, sqlHasDependent, sqlInsertDeleted,
	}
}

// Apply implements checkpoint.Index.
func (s *Store) Apply(ctx context.Context, c checkpoint.Change) error {
	const doing = "change the checkpoint index"
	if err := s.prepareCheckpoints(ctx, doing); err != nil {
		return err
	}
	return s.commitShared(ctx, doing, func(ctx context.Context, t *txn) error {
		if c.Add != nil {
			if err := t.addCheckpoint(ctx, c); err != nil {
				return err
			}
		}
		for _, swap := range c.Swaps {
			if err := t.swapCheckpoint(ctx, c.Series, swap); err != nil {
				return err
			}
		}
		if err := t.removeCheckpoints(ctx, c); err != nil {
			return err
		}
		for _, mark := range c.Marks {
			if _, err := t.execStatement(ctx, sqlMarkCheckpoint, mark.Problem, mark.ID, c.Series.User, c.Series.Session); err != nil {
				return err
			}
		}
		if err := t.updateLine(ctx, c); err != nil {
			return err
		}
		return t.addAuditEntries(ctx, c.Audit)
	})
}

// prepareCheckpoints prepares the statements of a save. It must be called before the
// transaction, which occupies the only connection.
func (s *Store) prepareCheckpoints(ctx context.Context, doing string) error {
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	for _, text := range checkpointStatements() {
		if _, err := s.writer.prepareStatement(ctx, text); err != nil {
			return s.wrapError(doing, err)
		}
	}
	return nil
}

// rowExists reports whether a query has a row.
func (t *txn) rowExists(ctx context.Context, text string, args ...any) (bool, error) {
	var one any
	err := t.queryRow(ctx, text, args, []any{&one})
	if errors.Is(err, errNoRow) {
		return false, nil
	}
	return err == nil, err
}

// addCheckpoint adds a record. It returns a conflict if the series has changed since the
// caller read it, unless the change adopts the record.
func (t *txn) addCheckpoint(ctx context.Context, c checkpoint.Change) error {
	r := *c.Add
	if r.Kind == checkpoint.KindFragment {
		r.Number = 0
	} else if !c.Adopt {
		var last int64
		err := t.queryRow(ctx, sqlLineLast, []any{c.Series.User, c.Series.Session}, []any{&last})
		if err != nil && !errors.Is(err, errNoRow) {
			return err
		}
		if r.Number != last+1 {
			return rows.Conflictf("the session %s is at checkpoint %d, not %d", c.Series.Session, last, r.Number-1)
		}
	}
	if !c.Adopt && r.Parent != "" {
		there, err := t.rowExists(ctx, sqlCheckpointExists, r.Parent, c.Series.User, c.Series.Session)
		if err != nil {
			return err
		}
		if !there {
			return rows.Conflictf("the checkpoint %s no longer exists", r.Parent)
		}
	}
	tags := encodeList(r.Tags)
	result, err := t.execStatement(ctx, sqlInsertCheckpoint, dialect().Values(rows.CheckpointFields(&r, &tags))...)
	if err != nil {
		return err // the error has CodeConflict if the record already exists
	}
	num, err := result.LastInsertId()
	if err != nil {
		return err
	}
	for _, tag := range r.Tags {
		if _, err := t.execStatement(ctx, sqlInsertTag, tag, num); err != nil {
			return err
		}
	}
	if c.NoWords {
		return nil
	}
	text := strings.Join([]string{r.Name, strings.Join(r.Tags, "\n"), r.Workflow, c.Words}, "\n")
	_, err = t.execStatement(ctx, sqlInsertKeywords, num, checkpointScope(r), text)
	return err
}

// checkpointScope returns search tokens for the owner, the session, the project and the
// workflow of a checkpoint, which make a search within one of these cheap.
func checkpointScope(r checkpoint.Record) string {
	return scopeToken('u', r.User) + " " + scopeToken('s', r.Session) + " " + scopeToken('p', r.Project) + " " + scopeToken('w', r.Workflow)
}

func (t *txn) swapCheckpoint(ctx context.Context, key checkpoint.SeriesKey, swap checkpoint.Swap) error {
	if swap.New.Base != "" {
		there, err := t.rowExists(ctx, sqlCheckpointExists, swap.New.Base, key.User, key.Session)
		if err != nil {
			return err
		}
		if !there {
			return rows.Conflictf("the checkpoint %s no longer exists", swap.New.Base)
		}
	}
	result, err := t.execStatement(ctx, sqlSwapCheckpoint,
		string(swap.New.Blob), swap.New.Stored, swap.New.Base, swap.New.Key, swap.ID, key.User, key.Session, string(swap.Old))
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		return rows.Conflictf("the checkpoint %s was deleted or stored again by another process", swap.ID)
	}
	return err
}

func (t *txn) removeCheckpoints(ctx context.Context, c checkpoint.Change) error {
	for _, id := range c.Remove {
		var num int64
		var parent string
		err := t.queryRow(ctx, sqlRemoveFind, []any{id, c.Series.User, c.Series.Session}, []any{&num, &parent})
		if errors.Is(err, errNoRow) {
			return rows.Conflictf("the checkpoint %s is already deleted", id)
		}
		if err != nil {
			return err
		}
		if _, err := t.execStatement(ctx, sqlReparent, parent, id); err != nil {
			return err
		}
		for _, text := range sqlRemoveRecord() {
			if _, err := t.execStatement(ctx, text, num); err != nil {
				return err
			}
		}
		if _, err := t.execStatement(ctx, sqlInsertDeleted, id, fromTime(c.At)); err != nil {
			return err
		}
	}
	for _, id := range c.Remove {
		needed, err := t.rowExists(ctx, sqlHasDependent, id)
		if err != nil {
			return err
		}
		if needed {
			return rows.Conflictf("another checkpoint depends on the checkpoint %s", id)
		}
	}
	return nil
}

// updateLine updates the row of a series, and deletes it if the series has no checkpoints
// left.
func (t *txn) updateLine(ctx context.Context, c checkpoint.Change) error {
	user, session := c.Series.User, c.Series.Session
	var touched int64
	if c.Touch {
		touched = fromTime(c.At)
	}
	if c.Add != nil {
		if _, err := t.execStatement(ctx, sqlEnsureLine, user, session); err != nil {
			return err
		}
		if r := c.Add; r.Kind != checkpoint.KindFragment {
			if _, err := t.execStatement(ctx, sqlDescribeLine, r.Run, r.Workflow, r.Project, user, session, r.Number); err != nil {
				return err
			}
		}
	}
	if _, err := t.execStatement(ctx, sqlUpdateLine, user, session, touched); err != nil {
		return err
	}
	if len(c.Remove) == 0 {
		return nil
	}
	if _, err := t.execStatement(ctx, sqlPruneDeleted, fromTime(c.At.Add(-rows.DeletedRetention))); err != nil {
		return err
	}
	_, err := t.execStatement(ctx, sqlDropEmptyLine, user, session)
	return err
}

// addAuditEntries appends to the audit log and occasionally deletes its oldest entries.
func (t *txn) addAuditEntries(ctx context.Context, list []checkpoint.Entry) error {
	for _, e := range list {
		result, err := t.execStatement(ctx, sqlInsertAudit, dialect().Values(rows.EntryFields(&e))...)
		if err != nil {
			return err
		}
		num, err := result.LastInsertId()
		if err != nil {
			return err
		}
		if num%1024 == 0 {
			if _, err := t.execStatement(ctx, `DELETE FROM checkpoint_audit WHERE num <= ?`, num-maxAuditEntries); err != nil {
				return err
			}
		}
	}
	return nil
}

// Note implements checkpoint.Auditor.
func (s *Store) Note(ctx context.Context, list []checkpoint.Entry) error {
	if len(list) == 0 {
		return nil
	}
	return s.commitShared(ctx, "write the audit log", func(ctx context.Context, t *txn) error { return t.addAuditEntries(ctx, list) })
}
