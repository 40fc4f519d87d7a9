package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/guideway-dev/guideway/internal/checkpoint"
)

var _ checkpoint.Mender = (*Store)(nil)

// sqlMend makes right what follows from the records of checkpoints: SQLite's
// indices, and the lines.
func sqlMend() []string {
	const ofLine = `FROM checkpoints c WHERE c.user = l.user AND c.session = l.session`
	return []string{
		`REINDEX checkpoints`,
		`REINDEX checkpoint_tags`,
		`REINDEX checkpoint_lines`,
		`DELETE FROM checkpoint_lines AS l WHERE NOT EXISTS (SELECT 1 ` + ofLine + `)`,
		`INSERT INTO checkpoint_lines (user, session, run, workflow, project, last, count, stored, bytes, touched)
			SELECT user, session, run, workflow, project, max(number), 0, 0, 0, created FROM checkpoints WHERE true GROUP BY user, session
			ON CONFLICT DO NOTHING`,
		`UPDATE checkpoint_lines AS l SET (last, count, stored, bytes) = (
			SELECT coalesce(max(number), 0), coalesce(sum(kind <> 'piece'), 0), coalesce(sum(stored), 0), coalesce(sum(bytes), 0) ` + ofLine + `)`,
	}
}

// Mend implements checkpoint.Mender.
func (s *Store) Mend(ctx context.Context) error {
	return s.write(ctx, "mend the index of checkpoints", func(ctx context.Context, t *txn) error {
		for _, text := range sqlMend() {
			if _, err := t.exec(ctx, text); err != nil {
				return err
			}
		}
		return nil
	})
}

// Drop implements checkpoint.Mender.
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
		for _, table := range []string{"checkpoints", "checkpoint_lines", "checkpoint_tags", "checkpoint_words_data", "checkpoint_gone"} {
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
