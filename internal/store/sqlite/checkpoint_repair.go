package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

var _ checkpoint.Repairer = (*Store)(nil)

// sqlRepair returns the statements that rebuild SQLite's indexes and the rows of series
// from the records of checkpoints.
func sqlRepair() []string {
	const ofLine = `FROM checkpoints c WHERE c.user = l.user AND c.session = l.session`
	return []string{
		`REINDEX checkpoints`,
		`REINDEX checkpoint_tags`,
		`REINDEX checkpoint_lines`,
		// Delete a record with unreadable tags; it is read again from its blob.
		`DELETE FROM checkpoints WHERE iif(json_valid(tags), json_type(tags) <> 'array', true)`,
		`DELETE FROM checkpoint_tags WHERE num NOT IN (SELECT num FROM checkpoints)`,
		`DELETE FROM checkpoint_words WHERE rowid NOT IN (SELECT num FROM checkpoints)`,
		`DELETE FROM checkpoint_lines AS l WHERE NOT EXISTS (SELECT 1 ` + ofLine + `)`,
		`INSERT INTO checkpoint_lines (user, session, run, workflow, project, last, count, stored, bytes, touched)
			SELECT user, session, run, workflow, project, max(number), 0, 0, 0, created FROM checkpoints WHERE true GROUP BY user, session
			ON CONFLICT DO NOTHING`,
		`UPDATE checkpoint_lines AS l SET (last, count, stored, bytes) = (
			SELECT coalesce(max(number), 0), coalesce(sum(kind <> 'piece'), 0), coalesce(sum(stored), 0), coalesce(sum(bytes), 0) ` + ofLine + `)`,
	}
}

// Repair implements checkpoint.Repairer.
func (s *Store) Repair(ctx context.Context) error {
	return s.commitShared(ctx, "repair the checkpoint index", func(ctx context.Context, t *txn) error {
		for _, text := range sqlRepair() {
			if _, err := t.execStatement(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Discard removes all metadata of checkpoints, with their audit log.
func (s *Store) Discard(ctx context.Context) error {
	return s.commitShared(ctx, "discard the checkpoint index", func(ctx context.Context, t *txn) error {
		for _, table := range []string{"checkpoints", "checkpoint_lines", "checkpoint_tags", "checkpoint_words", "checkpoint_gone", "checkpoint_audit"} {
			if _, err := t.execStatement(ctx, "DELETE FROM "+table); err != nil {
				return err
			}
		}
		return nil
	})
}

// Drop implements checkpoint.Repairer.
func (s *Store) Drop(ctx context.Context, ids []string) error {
	return s.commitShared(ctx, "drop damaged checkpoint records", func(ctx context.Context, t *txn) error {
		for _, id := range ids {
			var num int64
			err := t.queryRow(ctx, `DELETE FROM checkpoints WHERE id = ? RETURNING num`, []any{id}, []any{&num})
			if errors.Is(err, errNoRow) {
				continue
			}
			for _, text := range dialect().RemoveWords {
				if err == nil {
					_, err = t.execStatement(ctx, text, num)
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// CheckCheckpoints returns an error if SQLite finds damage in the checkpoint tables, which it
// reads completely, or if a table or column that a save or a repair needs is missing.
func (s *Store) CheckCheckpoints(ctx context.Context) error {
	const doing = "check the checkpoint index"
	return s.withReadAccess(ctx, doing, func() error {
		tables, err := rows.Collect(ctx, s.readers, rows.Query{Text: `SELECT name FROM sqlite_schema WHERE name GLOB 'checkpoint*' AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`}, scanValue[string])
		if err != nil {
			return err
		}
		for _, table := range tables {
			var text string
			if err := s.readers.db.QueryRowContext(ctx, `SELECT * FROM pragma_quick_check(?)`, table).Scan(&text); err != nil {
				return err
			}
			if text != "ok" {
				return fmt.Errorf("%s: %s: %w", table, text, rows.ErrInvalidValue)
			}
		}
		return s.compileStatements(ctx, slices.Concat(sqlRepair(), dialect().InsertsOfSave(), []string{sqlInsertCheckpoint(), sqlInsertTag, sqlInsertKeywords})...)
	})
}

// compileStatements compiles statements without executing them. An error means that the
// schema is damaged: a table or a column is missing.
func (s *Store) compileStatements(ctx context.Context, statements ...string) error {
	for _, text := range statements {
		compiled, err := s.readers.db.PrepareContext(ctx, text)
		if err != nil {
			return err
		}
		if err := compiled.Close(); err != nil {
			return err
		}
	}
	return nil
}

// compactWait bounds how long one attempt of Compact waits for readers, because writers wait
// for it. compactAttempts bounds the attempts.
const (
	compactWait     = 100 * time.Millisecond
	compactAttempts = 20
)

// Compact copies the write-ahead log into the file and truncates the log, so that deleted
// values are in neither. It returns CodeUnavailable if readers use the log the whole time.
func (s *Store) Compact(ctx context.Context) error { return s.compactLog(ctx, compactAttempts) }

func (s *Store) compactLog(ctx context.Context, attempts int) error {
	const doing = "truncate the write-ahead log"
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	for range attempts {
		if busy, err := s.truncateLog(ctx); err != nil || !busy {
			return s.wrapError(doing, err)
		}
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%s of %s: a reader uses the log", doing, s.o.Path).
		WithFix("end the program that reads the database; the next deletion, or the last process to close the database, truncates the log")
}

// truncateLog tries to truncate the write-ahead log. busy reports that a reader uses it.
func (s *Store) truncateLog(ctx context.Context) (busy bool, err error) {
	release, err := s.lock.acquireLock(ctx)
	if err != nil {
		return false, err
	}
	defer release()
	timeout := func(d time.Duration) error {
		_, err := s.writer.db.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
		return err
	}
	var pages, copied int64
	err = timeout(compactWait)
	if err == nil {
		err = s.writer.db.QueryRowContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`).Scan(&busy, &pages, &copied)
	}
	return busy, errors.Join(err, timeout(s.o.BusyTimeout))
}
