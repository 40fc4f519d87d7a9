package postgres

import (
	"context"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

var _ checkpoint.Index = (*Store)(nil)

// auditRetention is how long entries of the audit log are kept.
const auditRetention = 400 * 24 * time.Hour

// Apply implements checkpoint.Index. It is one transaction that locks the row of the
// series, so that changes to a series are serialized.
func (s *Store) Apply(ctx context.Context, c checkpoint.Change) error {
	err := s.retryWrite(ctx, "change the checkpoint index", func(ctx context.Context, maybeCommitted bool) error {
		if maybeCommitted {
			if done, err := s.changeApplied(ctx, c); err != nil || done {
				return err
			}
		}
		err := pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error { return applyChange(ctx, tx, c) })
		if code, _ := sqlState(err); code == codeUniqueViolation {
			return rows.Conflictf("the checkpoint or its number already exists: %w", err)
		}
		return err
	})
	return markDiskFull(err)
}

// changeApplied reports whether a change whose response was lost was applied. It looks for
// one effect of the change.
func (s *Store) changeApplied(ctx context.Context, c checkpoint.Change) (done bool, err error) {
	switch {
	case c.Add != nil:
		err = s.pool.QueryRow(ctx, `select exists (select from checkpoints where id = $1 and blob = $2)`,
			byteString(c.Add.ID), byteString(c.Add.Blob)).Scan(&done)
	case len(c.Swaps) > 0:
		err = s.pool.QueryRow(ctx, `select exists (select from checkpoints where id = $1 and blob = $2)`,
			byteString(c.Swaps[0].ID), byteString(c.Swaps[0].New.Blob)).Scan(&done)
	case len(c.Remove) > 0:
		err = s.pool.QueryRow(ctx, `select exists (select from checkpoint_gone where id = $1)`, byteString(c.Remove[0])).Scan(&done)
	}
	return done, err
}

func applyChange(ctx context.Context, tx pgx.Tx, c checkpoint.Change) error {
	last, err := lockLine(ctx, tx, c)
	if err != nil {
		return err
	}
	if c.Add != nil {
		if err := addCheckpoint(ctx, tx, c, last); err != nil {
			return err
		}
	}
	for _, swap := range c.Swaps {
		if err := swapCheckpoint(ctx, tx, c.Series, swap); err != nil {
			return err
		}
	}
	if err := removeCheckpoints(ctx, tx, c); err != nil {
		return err
	}
	for _, mark := range c.Marks {
		_, err := tx.Exec(ctx, `update checkpoints set problem = $1 where id = $2 and user_id = $3 and session = $4`,
			byteString(mark.Problem), byteString(mark.ID), byteString(c.Series.User), byteString(c.Series.Session))
		if err != nil {
			return err
		}
	}
	if err := updateLine(ctx, tx, c); err != nil {
		return err
	}
	return addAuditEntries(ctx, tx, c.Audit)
}

// lockLine locks the row of the series until the end of the transaction and returns the
// number of its last checkpoint. It creates the row if a checkpoint is added.
func lockLine(ctx context.Context, tx pgx.Tx, c checkpoint.Change) (last int64, err error) {
	const most = 100 // a later attempt fails only if another transaction has just deleted the row
	for range most {
		err = tx.QueryRow(ctx, `select last from checkpoint_lines where user_id = $1 and session = $2 for update`,
			byteString(c.Series.User), byteString(c.Series.Session)).Scan(&last)
		if !isNoRows(err) {
			return last, err
		}
		if c.Add == nil {
			return 0, nil
		}
		_, err = tx.Exec(ctx, `insert into checkpoint_lines (user_id, session) values ($1, $2) on conflict do nothing`,
			byteString(c.Series.User), byteString(c.Series.Session))
		if err != nil {
			return 0, err
		}
	}
	return 0, rows.Conflictf("the session %s was deleted repeatedly during the call", c.Series.Session)
}

// addCheckpoint adds a record. It returns a conflict if the series has changed since the
// caller read it, unless the change adopts the record.
func addCheckpoint(ctx context.Context, tx pgx.Tx, c checkpoint.Change, last int64) error {
	r := *c.Add
	if r.Kind == checkpoint.KindFragment {
		r.Number = 0
	} else if !c.Adopt && r.Number != last+1 {
		return rows.Conflictf("the session %s is at checkpoint %d, not %d", c.Series.Session, last, r.Number-1)
	}
	if !c.Adopt && r.Parent != "" {
		if err := checkInLine(ctx, tx, c.Series, r.Parent); err != nil {
			return err
		}
	}
	tags := byteSlices(r.Tags)
	var plain *string
	if !c.NoWords {
		text := plainWords(toValidText(rows.Truncate(strings.Join([]string{r.Name, strings.Join(r.Tags, "\n"), r.Workflow, c.Words}, "\n"), 2*maxNote)))
		plain = &text
	}
	_, err := tx.Exec(ctx, `
		insert into checkpoints (id, user_id, session, run, run_seq, parent, branch, number, link, workflow, project, agent, name, tags,
			kind, created, bytes, tokens, sum, blob, stored, base, key, problem, vector)
		values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24,
			to_tsvector('guideway_words', $25::text) || array_to_tsvector(array[$26::text]))`,
		append(dialect().Values(rows.CheckpointFields(&r, &tags)), plain, userLexeme(r.User))...)
	return err
}

// checkInLine returns an error if a checkpoint is not in the series.
func checkInLine(ctx context.Context, tx pgx.Tx, key checkpoint.SeriesKey, id string) error {
	var there bool
	err := tx.QueryRow(ctx, `select exists (select from checkpoints where id = $1 and user_id = $2 and session = $3)`,
		byteString(id), byteString(key.User), byteString(key.Session)).Scan(&there)
	if err == nil && !there {
		return rows.Conflictf("the checkpoint %s no longer exists", id)
	}
	return err
}

func swapCheckpoint(ctx context.Context, tx pgx.Tx, key checkpoint.SeriesKey, swap checkpoint.Swap) error {
	if swap.New.Base != "" {
		if err := checkInLine(ctx, tx, key, swap.New.Base); err != nil {
			return err
		}
	}
	tag, err := tx.Exec(ctx, `update checkpoints set blob = $1, stored = $2, base = $3, key = $4
		where id = $5 and user_id = $6 and session = $7 and blob = $8`,
		byteString(swap.New.Blob), swap.New.Stored, byteString(swap.New.Base), byteString(swap.New.Key),
		byteString(swap.ID), byteString(key.User), byteString(key.Session), byteString(swap.Old))
	if err == nil && tag.RowsAffected() == 0 {
		return rows.Conflictf("the checkpoint %s was deleted or stored again by another process", swap.ID)
	}
	return err
}

func removeCheckpoints(ctx context.Context, tx pgx.Tx, c checkpoint.Change) error {
	if len(c.Remove) == 0 {
		return nil
	}
	ids := byteSlices(c.Remove)
	for _, id := range c.Remove {
		var parent byteString
		err := tx.QueryRow(ctx, `delete from checkpoints where id = $1 and user_id = $2 and session = $3 returning parent`,
			byteString(id), byteString(c.Series.User), byteString(c.Series.Session)).Scan(&parent)
		if isNoRows(err) {
			return rows.Conflictf("the checkpoint %s is already deleted", id)
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `update checkpoints set parent = $1 where parent = $2`, parent, byteString(id)); err != nil {
			return err
		}
	}
	var needed bool
	if err := tx.QueryRow(ctx, `select exists (select from checkpoints where base = any($1::bytea[]))`, ids).Scan(&needed); err != nil {
		return err
	}
	if needed {
		return rows.Conflictf("another checkpoint depends on one of the checkpoints to delete")
	}
	if _, err := tx.Exec(ctx, `insert into checkpoint_gone (id, at) select id, $2 from unnest($1::bytea[]) id on conflict do nothing`, ids, c.At); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `delete from checkpoint_gone where at < $1`, c.At.Add(-rows.DeletedRetention))
	return err
}

// updateLine updates the row of a series, and deletes it if the series has no checkpoints
// left.
func updateLine(ctx context.Context, tx pgx.Tx, c checkpoint.Change) error {
	user, session := byteString(c.Series.User), byteString(c.Series.Session)
	if r := c.Add; r != nil && r.Kind != checkpoint.KindFragment {
		_, err := tx.Exec(ctx, `update checkpoint_lines set run = $3, workflow = $4, project = $5 where user_id = $1 and session = $2 and last <= $6`,
			user, session, byteString(r.Run), byteString(r.Workflow), byteString(r.Project), r.Number)
		if err != nil {
			return err
		}
	}
	var touched *time.Time
	if c.Touch {
		touched = &c.At
	}
	_, err := tx.Exec(ctx, `
		update checkpoint_lines l set last = greatest(l.last, t.last), count = t.count, stored = t.stored, bytes = t.bytes,
			touched = greatest(l.touched, $3::timestamptz)
		from (select coalesce(max(number), 0) as last, count(*) filter (where kind <> 'piece') as count,
				coalesce(sum(stored), 0) as stored, coalesce(sum(bytes), 0) as bytes
			from checkpoints where user_id = $1 and session = $2) t
		where l.user_id = $1 and l.session = $2`, user, session, touched)
	if err != nil || len(c.Remove) == 0 {
		return err
	}
	_, err = tx.Exec(ctx, `delete from checkpoint_lines where user_id = $1 and session = $2
		and not exists (select from checkpoints where user_id = $1 and session = $2)`, user, session)
	return err
}

// executor is a pool or a transaction.
type executor interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// addAuditEntries appends entries to the audit log, all in one round trip.
func addAuditEntries(ctx context.Context, e executor, list []checkpoint.Entry) error {
	if len(list) == 0 {
		return nil
	}
	var batch pgx.Batch
	for _, entry := range list {
		batch.Queue(`insert into checkpoint_audit (at, action, user_id, session, checkpoint, client, detail) values ($1, $2, $3, $4, $5, $6, $7)`,
			dialect().Values(rows.EntryFields(&entry))...)
	}
	return e.SendBatch(ctx, &batch).Close()
}

// Note implements checkpoint.Auditor. An entry may be written twice if the response of the
// server was lost.
func (s *Store) Note(ctx context.Context, list []checkpoint.Entry) error {
	if len(list) == 0 {
		return nil
	}
	err := s.retryWrite(ctx, "write the audit log", func(ctx context.Context, _ bool) error {
		if err := addAuditEntries(ctx, s.pool, list); err != nil {
			return err
		}
		_, err := s.pool.Exec(ctx, `delete from checkpoint_audit where at < now() - $1::interval`, auditRetention)
		return err
	})
	return markDiskFull(err)
}
