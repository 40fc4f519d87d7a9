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
func CopyFile(ctx context.Context, from, to string) (c rows.Copied, err error) {
	const doing = "copy the database"
	db, err := openRaw(from)
	if err != nil {
		return c, wrapStoreError(from, doing, err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return c, wrapStoreError(from, doing, err)
	}
	copied, err := openRaw(to)
	if err != nil {
		return c, wrapStoreError(to, doing, err)
	}
	defer copied.Close()
	c.Rows = map[string]int64{}
	if err := copied.QueryRowContext(ctx, "PRAGMA user_version").Scan(&c.Schema); err != nil {
		return c, wrapStoreError(to, doing, err)
	}
	for _, table := range []string{"runs", "events", "documents", "checkpoints"} {
		var n int64
		if err := copied.QueryRowContext(ctx, "SELECT count(*) FROM "+table).Scan(&n); err == nil { // other databases do not have the table
			c.Rows[table] = n
		}
	}
	return c, nil
}

// CheckUnused returns an error if another process has a store open. It also moves the
// write-ahead log of the store into its file. It does not report a damaged store.
func CheckUnused(ctx context.Context, path string) error {
	db, err := openRaw(path)
	if err != nil {
		return wrapStoreError(path, "replace the store", err)
	}
	defer db.Close()
	if _, err = db.ExecContext(ctx, "PRAGMA journal_mode = DELETE"); IsDamaged(err) {
		return nil
	}
	return wrapStoreError(path, "replace the store", err)
}

// openRaw opens an existing database without a check of its tables.
func openRaw(path string) (*sql.DB, error) {
	_, _ = driver.OFDLocking(true) // see prepareFile
	return sql.Open("sqlite", dataSource(path, "mode=rw", "busy_timeout(5000)"))
}
