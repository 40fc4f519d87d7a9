package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

var _ checkpoint.Repairer = (*Store)(nil)

// sqlMend makes right what follows from the records of checkpoints: SQLite's
// indices, and the lines.
func sqlMend() []string {
	const ofLine = `FROM checkpoints c WHERE c.user = l.user AND c.session = l.session`
	return []string{
		`REINDEX checkpoints`,
		`REINDEX checkpoint_tags`,
		`REINDEX checkpoint_lines`,
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
	return s.write(ctx, "mend the index of checkpoints", func(ctx context.Context, t *txn) error {
		for _, text := range sqlMend() {
			if _, err := t.exec(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Drop implements checkpoint.Repairer.
func (s *Store) Drop(ctx context.Context, ids []string) error {
	return s.write(ctx, "drop damaged records of checkpoints", func(ctx context.Context, t *txn) error {
		for _, id := range ids {
			var num int64
			err := t.row(ctx, `SELECT num FROM checkpoints WHERE id = ?`, []any{id}, []any{&num})
			if errors.Is(err, errNone) {
				continue
			}
			if err != nil {
				return err
			}
			for _, text := range sqlRemoveRecord() {
				if _, err := t.exec(ctx, text, num); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// sqlRemoveRecord are the statements that take a record out, by its num.
func sqlRemoveRecord() []string {
	return []string{
		`DELETE FROM checkpoints WHERE num = ?`, `DELETE FROM checkpoint_tags WHERE num = ?`, `DELETE FROM checkpoint_words WHERE rowid = ?`,
	}
}

// CheckCheckpoints gives an error where the tables of checkpoints are damaged, as
// far as SQLite can tell. It reads all of them.
func (s *Store) CheckCheckpoints(ctx context.Context) error {
	const doing = "check the index of checkpoints"
	return s.read(ctx, doing, func() error {
		rows, err := s.readers.rows(ctx, `SELECT name FROM sqlite_schema WHERE name GLOB 'checkpoint*' AND type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'`)
		tables, err := collect(rows, err, func(row scanner) (name string, err error) {
			err = row.Scan(&name)
			return name, err
		})
		if err != nil {
			return err
		}
		for _, table := range tables {
			var text string
			if err := s.readers.db.QueryRowContext(ctx, `SELECT * FROM pragma_quick_check(?)`, table).Scan(&text); err != nil {
				return err
			}
			if text != "ok" {
				return fmt.Errorf("%s: %s: %w", table, text, errGarbled)
			}
		}
		return nil
	})
}

// briefly is how long to compact the file waits for readers: writers wait for it.
const briefly = 100 * time.Millisecond

// Compact moves what the write-ahead log has into the file and gives the log's
// room back. Where somebody still reads the log it stays.
func (s *Store) Compact(ctx context.Context) error {
	const doing = "give back the room of the write-ahead log"
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	defer s.leave()
	release, err := s.lock.acquire(ctx)
	if err != nil {
		return s.fault(doing, err)
	}
	defer release()
	timeout := func(d time.Duration) error {
		_, err := s.writer.db.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA busy_timeout = %d", d.Milliseconds()))
		return err
	}
	err = timeout(briefly)
	if err == nil {
		_, err = s.writer.db.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`)
	}
	return s.fault(doing, errors.Join(err, timeout(s.o.BusyTimeout)))
}
