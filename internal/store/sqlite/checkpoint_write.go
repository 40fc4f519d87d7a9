package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

var _ checkpoint.Index = (*Store)(nil)

const (
	// keepGone is how long it is remembered that a checkpoint was deleted.
	keepGone = 45 * 24 * time.Hour
	// keepAudit is about how many entries of the audit log are kept.
	keepAudit = 100_000
)

// The statements of changes to checkpoints.
const (
	checkpointColumns = `id, user, session, run, run_seq, parent, branch, number, link, workflow, project, agent, name, tags, kind, ` +
		`created, bytes, tokens, sum, blob, stored, base, key, problem`
	sqlInsertCheckpoint = `INSERT INTO checkpoints (` + checkpointColumns +
		`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	sqlLineLast       = `SELECT last FROM checkpoint_lines WHERE user = ? AND session = ?`
	sqlInLine         = `SELECT 1 FROM checkpoints WHERE id = ? AND user = ? AND session = ?`
	sqlInsertTag      = `INSERT INTO checkpoint_tags (tag, num) VALUES (?, ?)`
	sqlInsertKeywords = `INSERT INTO checkpoint_words (rowid, scope, text) VALUES (?, ?, ?)`
	sqlSwapCheckpoint = `UPDATE checkpoints SET blob = ?, stored = ?, base = ?, key = ? WHERE id = ? AND user = ? AND session = ? AND blob = ?`
	sqlRemoveFind     = `SELECT num, parent FROM checkpoints WHERE id = ? AND user = ? AND session = ?`
	sqlReparent       = `UPDATE checkpoints SET parent = ? WHERE parent = ?`
	sqlHasDependent   = `SELECT id FROM checkpoints WHERE base = ? LIMIT 1`
	sqlInsertGone     = `INSERT INTO checkpoint_gone (id, at) VALUES (?, ?) ON CONFLICT DO NOTHING`
	sqlMarkCheckpoint = `UPDATE checkpoints SET problem = ? WHERE id = ? AND user = ? AND session = ?`
	sqlEnsureLine     = `INSERT INTO checkpoint_lines (user, session, run, workflow, project, last, count, stored, bytes, touched) VALUES (?, ?, '', '', '', 0, 0, 0, 0, 0) ON CONFLICT DO NOTHING`
	sqlDescribeLine   = `UPDATE checkpoint_lines SET run = ?, workflow = ?, project = ? WHERE user = ? AND session = ? AND last <= ?`
	sqlInsertAudit    = `INSERT INTO checkpoint_audit (at, action, user, session, checkpoint, client, detail) VALUES (?, ?, ?, ?, ?, ?, ?)`
	sqlDropEmptyLine  = `DELETE FROM checkpoint_lines WHERE user = ?1 AND session = ?2 AND NOT EXISTS (SELECT 1 FROM checkpoints WHERE user = ?1 AND session = ?2)`
	sqlForgetGone     = `DELETE FROM checkpoint_gone WHERE at < ?`
	sqlUpdateLine     = `
		UPDATE checkpoint_lines SET (last, count, stored, bytes) = (
			SELECT max(checkpoint_lines.last, coalesce(max(number), 0)), coalesce(sum(kind <> 'piece'), 0), coalesce(sum(stored), 0), coalesce(sum(bytes), 0)
			FROM checkpoints WHERE user = ?1 AND session = ?2
		), touched = max(touched, ?3) WHERE user = ?1 AND session = ?2`
)

// checkpointStatements are those of a save, which stay prepared.
func checkpointStatements() []string {
	return []string{
		sqlInsertCheckpoint, sqlLineLast, sqlInLine, sqlInsertTag, sqlInsertKeywords, sqlSwapCheckpoint, sqlEnsureLine,
		sqlDescribeLine, sqlInsertAudit, sqlUpdateLine, sqlDropEmptyLine, sqlRemoveFind, sqlReparent, sqlHasDependent, sqlInsertGone,
	}
}

// Apply implements checkpoint.Index.
func (s *Store) Apply(ctx context.Context, c checkpoint.Change) error {
	const doing = "change the index of checkpoints"
	if err := s.prepareCheckpoints(ctx, doing); err != nil {
		return err
	}
	return s.share(ctx, doing, func(ctx context.Context, t *txn) error {
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
			if _, err := t.exec(ctx, sqlMarkCheckpoint, mark.Problem, mark.ID, c.Series.User, c.Series.Session); err != nil {
				return err
			}
		}
		if err := t.updateLine(ctx, c); err != nil {
			return err
		}
		return t.audit(ctx, c.Audit)
	})
}

// prepareCheckpoints prepares the statements of a save. It is done before the
// transaction, which has the only connection.
func (s *Store) prepareCheckpoints(ctx context.Context, doing string) error {
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	defer s.leave()
	for _, text := range checkpointStatements() {
		if _, err := s.writer.prepare(ctx, text); err != nil {
			return s.fault(doing, err)
		}
	}
	return nil
}

func conflictf(format string, args ...any) error {
	return guideway.Errorf(guideway.CodeConflict, format, args...)
}

// isThere says whether a query gives a row.
func (t *txn) isThere(ctx context.Context, text string, args ...any) (bool, error) {
	var one any
	err := t.row(ctx, text, args, []any{&one})
	if errors.Is(err, errNone) {
		return false, nil
	}
	return err == nil, err
}

// addCheckpoint adds a record, if the line is as whoever made it has seen it.
func (t *txn) addCheckpoint(ctx context.Context, c checkpoint.Change) error {
	r := *c.Add
	if r.Kind == checkpoint.KindFragment {
		r.Number = 0
	} else if !c.Adopt {
		var last int64
		err := t.row(ctx, sqlLineLast, []any{c.Series.User, c.Series.Session}, []any{&last})
		if err != nil && !errors.Is(err, errNone) {
			return err
		}
		if r.Number != last+1 {
			return conflictf("the session %s is at checkpoint %d, not at %d", c.Series.Session, last, r.Number-1)
		}
	}
	if !c.Adopt && r.Parent != "" {
		there, err := t.isThere(ctx, sqlInLine, r.Parent, c.Series.User, c.Series.Session)
		if err != nil {
			return err
		}
		if !there {
			return conflictf("the checkpoint %s is gone", r.Parent)
		}
	}
	values, err := checkpointValues(r)
	if err != nil {
		return err
	}
	result, err := t.exec(ctx, sqlInsertCheckpoint, values...)
	if err != nil {
		return err // that it is there already is CodeConflict
	}
	num, err := result.LastInsertId()
	if err != nil {
		return err
	}
	for _, tag := range r.Tags {
		if _, err := t.exec(ctx, sqlInsertTag, tag, num); err != nil {
			return err
		}
	}
	if c.NoWords {
		return nil
	}
	text := strings.Join([]string{r.Name, strings.Join(r.Tags, "\n"), r.Workflow, c.Words}, "\n")
	_, err = t.exec(ctx, sqlInsertKeywords, num, checkpointScope(r), text)
	return err
}

// checkpointScope gives marks for the owner, the session, the project and the
// workflow, so that a search among few is cheap.
func checkpointScope(r checkpoint.Record) string {
	return mark('u', r.User) + " " + mark('s', r.Session) + " " + mark('p', r.Project) + " " + mark('w', r.Workflow)
}

func checkpointValues(r checkpoint.Record) ([]any, error) {
	tags := []byte("[]")
	if len(r.Tags) > 0 {
		var err error
		if tags, err = json.Marshal(r.Tags); err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "write the tags: %w", err)
		}
	}
	return []any{
		r.ID, r.User, r.Session, r.Run, r.RunSeq, r.Parent, r.Branch, r.Number, r.Link, r.Workflow, r.Project, r.Agent, r.Name,
		string(tags), string(r.Kind), fromTime(r.Created), r.Bytes, r.Tokens, r.Sum, string(r.Blob), r.Stored, r.Base, r.Key, r.Problem,
	}, nil
}

func (t *txn) swapCheckpoint(ctx context.Context, key checkpoint.SeriesKey, swap checkpoint.Swap) error {
	if swap.New.Base != "" {
		there, err := t.isThere(ctx, sqlInLine, swap.New.Base, key.User, key.Session)
		if err != nil {
			return err
		}
		if !there {
			return conflictf("the checkpoint %s is gone", swap.New.Base)
		}
	}
	result, err := t.exec(ctx, sqlSwapCheckpoint,
		string(swap.New.Blob), swap.New.Stored, swap.New.Base, swap.New.Key, swap.ID, key.User, key.Session, string(swap.Old))
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return errors.Join(err, conflictf("the checkpoint %s was stored again", swap.ID))
	}
	return nil
}

func (t *txn) removeCheckpoints(ctx context.Context, c checkpoint.Change) error {
	for _, id := range c.Remove {
		var num int64
		var parent string
		err := t.row(ctx, sqlRemoveFind, []any{id, c.Series.User, c.Series.Session}, []any{&num, &parent})
		if errors.Is(err, errNone) {
			return conflictf("the checkpoint %s is gone already", id)
		}
		if err != nil {
			return err
		}
		if _, err := t.exec(ctx, sqlReparent, parent, id); err != nil {
			return err
		}
		for _, text := range sqlRemoveRecord() {
			if _, err := t.exec(ctx, text, num); err != nil {
				return err
			}
		}
		if _, err := t.exec(ctx, sqlInsertGone, id, fromTime(c.At)); err != nil {
			return err
		}
	}
	for _, id := range c.Remove {
		needed, err := t.isThere(ctx, sqlHasDependent, id)
		if err != nil {
			return err
		}
		if needed {
			return conflictf("another checkpoint still needs %s", id)
		}
	}
	return nil
}

// updateLine adds a line up anew.
func (t *txn) updateLine(ctx context.Context, c checkpoint.Change) error {
	user, session := c.Series.User, c.Series.Session
	var touched int64
	if c.Touch {
		touched = fromTime(c.At)
	}
	if c.Add != nil {
		if _, err := t.exec(ctx, sqlEnsureLine, user, session); err != nil {
			return err
		}
		if r := c.Add; r.Kind != checkpoint.KindFragment {
			if _, err := t.exec(ctx, sqlDescribeLine, r.Run, r.Workflow, r.Project, user, session, r.Number); err != nil {
				return err
			}
		}
	}
	if _, err := t.exec(ctx, sqlUpdateLine, user, session, touched); err != nil {
		return err
	}
	if len(c.Remove) == 0 {
		return nil
	}
	if _, err := t.exec(ctx, sqlForgetGone, fromTime(c.At.Add(-keepGone))); err != nil {
		return err
	}
	_, err := t.exec(ctx, sqlDropEmptyLine, user, session)
	return err
}

// audit adds to the audit log, and drops what is too old now and then.
func (t *txn) audit(ctx context.Context, list []checkpoint.Entry) error {
	for _, e := range list {
		result, err := t.exec(ctx, sqlInsertAudit, fromTime(e.At), e.Action, e.User, e.Session, e.Checkpoint, e.Client, e.Detail)
		if err != nil {
			return err
		}
		num, err := result.LastInsertId()
		if err != nil {
			return err
		}
		if num%1024 == 0 {
			if _, err := t.exec(ctx, `DELETE FROM checkpoint_audit WHERE num <= ?`, num-keepAudit); err != nil {
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
	return s.share(ctx, "write the audit log", func(ctx context.Context, t *txn) error { return t.audit(ctx, list) })
}
