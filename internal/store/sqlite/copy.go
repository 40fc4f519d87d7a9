package sqlite

import (
	"context"
	"database/sql"

	driver "modernc.org/sqlite"

	"github.com/guideway-dev/guideway/internal/store/rows"
)

// SchemaVersion returns the version of the tables that this version of the program creates.
func SchemaVersion() int { return len(migrations()) }

// CopyFile copies a database, which other processes may use, as of the time of the call. It
// neither migrates nor changes the database.
func CopyFile(ctx context.Context, from, to string) (rows.Copied, error) {
	c := rows.Copied{Rows: map[string]int64{}}
	err := useRaw(from, "copy the database", func(db *sql.DB) error {
		_, err := db.ExecContext(ctx, "VACUUM INTO ?", to)
		return err
	})
	if err != nil {
		return c, err
	}
	return c, useRaw(to, "read the copy", func(db *sql.DB) error {
		for _, table := range []string{"runs", "events", "documents", "checkpoints"} {
			var n int64
			if db.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n) == nil { // other databases do not have the table
				c.Rows[table] = n
			}
		}
		return db.QueryRowContext(ctx, "PRAGMA user_version").Scan(&c.Schema)
	})
}

// CheckUnused returns an error if another process has a store open. It also moves the
// write-ahead log of the store into its file. It does not report a damaged store.
func CheckUnused(ctx context.Context, path string) error {
	return useRaw(path, "replace the store", func(db *sql.DB) error {
		if _, err := db.ExecContext(ctx, "PRAGMA journal_mode = DELETE"); !IsDamaged(err) {
			return err
		}
		return nil
	})
}

// useRaw opens an existing database without a check of its tables.
func useRaw(path, doing string, do func(*sql.DB) error) error {
	_, _ = driver.OFDLocking(true) // see prepareFile
	db, err := sql.Open("sqlite", dataSource(path, "mode=rw", "busy_timeout(5000)"))
	if err == nil {
		defer db.Close()
		err = do(db)
	}
	return wrapStoreError(path, doing, err)
}
