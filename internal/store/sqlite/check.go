package sqlite

import (
	"context"
	"os"
	"slices"

	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Health is the result of a check of the file.
type Health struct {
	Path string `json:"path"`
	// Bytes is the size of the file, its write-ahead log and its shared-memory file.
	Bytes int64 `json:"bytes"`
	// Schema is the number of the last migration. SQLite is the version of the library.
	Schema int    `json:"schema"`
	SQLite string `json:"sqlite"`
	// Runs is the number of runs.
	Runs int64 `json:"runs"`
	// Problems lists the first errors that were found. It is empty if the file is intact.
	Problems []string `json:"problems"`
}

// Check reads the whole file. Damage is reported in Health and not as an error.
func (s *Store) Check(ctx context.Context) (Health, error) {
	h := Health{Path: s.o.Path, Problems: []string{}}
	err := s.withReadAccess(ctx, "check the store", func() error {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if info, err := os.Stat(s.o.Path + suffix); err == nil {
				h.Bytes += info.Size()
			}
		}
		err := s.readers.db.QueryRowContext(ctx, `SELECT sqlite_version(), user_version FROM pragma_user_version`).Scan(&h.SQLite, &h.Schema)
		if err == nil {
			err = s.readers.db.QueryRowContext(ctx, `SELECT count(*) FROM runs`).Scan(&h.Runs)
		}
		if err == nil {
			h.Problems, err = s.quickCheck(ctx)
		}
		if IsDamaged(err) {
			h.Problems, err = append(h.Problems, err.Error()), nil
		}
		return err
	})
	return h, err
}

// quickCheck returns the errors that SQLite finds on the pages. It does not compare indexes
// with tables.
func (s *Store) quickCheck(ctx context.Context) ([]string, error) {
	list, err := rows.Collect(ctx, s.readers, rows.Query{Text: `PRAGMA quick_check(20)`, Varies: true}, scanValue[string])
	list = slices.DeleteFunc(list, func(text string) bool { return text == "ok" })
	return append([]string{}, list...), err
}

// scanValue scans a row with one column.
func scanValue[T any](row rows.Scanner) (value T, err error) {
	err = row.Scan(&value)
	return value, err
}
