package sqlite

import (
	"context"
	"database/sql"
	"os"
	"slices"
)

// Health is what a check of the file has found.
type Health struct {
	Path string `json:"path"`
	// Bytes is the size of the file and of those beside it.
	Bytes int64 `json:"bytes"`
	// Schema is the number of the last migration, SQLite the library's version.
	Schema int    `json:"schema"`
	SQLite string `json:"sqlite"`
	// Runs is how many runs there are.
	Runs int64 `json:"runs"`
	// Problems are what is damaged, the first few; none is a sound file.
	Problems []string `json:"problems"`
}

// Check looks through the whole file. Damage is no error, but what keeps it from
// looking is.
func (s *Store) Check(ctx context.Context) (Health, error) {
	h := Health{Path: s.o.Path, Problems: []string{}}
	err := s.read(ctx, "check the store", func() error {
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
			h.Problems, err = problems(ctx, s.readers.db)
		}
		if IsDamaged(err) {
			h.Problems, err = append(h.Problems, err.Error()), nil
		}
		return err
	})
	return h, err
}

// problems has SQLite look at every page, but not compare indices with tables.
func problems(ctx context.Context, db *sql.DB) ([]string, error) {
	rows, err := db.QueryContext(ctx, `PRAGMA quick_check(20)`)
	list, err := collect(rows, err, func(row scanner) (text string, err error) {
		err = row.Scan(&text)
		return text, err
	})
	list = slices.DeleteFunc(list, func(text string) bool { return text == "ok" })
	return append([]string{}, list...), err
}
