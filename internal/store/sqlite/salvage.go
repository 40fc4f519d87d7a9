package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// Salvaged is the readable content of a damaged file. It is not verified: the MAC chains of
// the runs show which events are unchanged.
type Salvaged struct {
	Runs        []run.Record
	Definitions []run.Definition
	Documents   []session.Document
	// Events has the events of each run in order, with possible gaps, including the events
	// of runs whose record is lost.
	Events map[string][]run.Event
	// Problems describe the rows that could not be read, and a replaced schema table.
	Problems []string
}

// Salvage reads the readable rows of a damaged file without changing the file. It skips
// rows on lost pages. If SQLite's schema table is lost, Salvage copies the file and
// replaces the schema table of the copy by the schema table of a new store. If nothing is
// readable even then, it returns an error.
func Salvage(ctx context.Context, path string) (*Salvaged, error) {
	switch err := checkHeader(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no store %s to salvage", path).WithFix("select the data directory of the store with --data-dir")
	case err != nil:
		return nil, salvageError(path, err)
	}
	out, err := salvageFile(ctx, path)
	if err == nil || !IsDamaged(err) {
		return out, salvageError(path, err)
	}
	copied, remove, copyErr := copyWithNewSchema(ctx, path)
	if copyErr != nil {
		return nil, salvageError(path, errors.Join(err, copyErr))
	}
	defer remove()
	out, copyErr = salvageFile(ctx, copied)
	if copyErr != nil || len(out.Runs)+len(out.Definitions)+len(out.Documents)+len(out.Events) == 0 {
		return nil, salvageError(path, errors.Join(err, ctx.Err()))
	}
	out.Problems = slices.Insert(out.Problems, 0, fmt.Sprintf("the schema table of the file could not be used and was replaced in a copy by that of a new store: %v", err))
	return out, nil
}

// salvageError does the same as wrapStoreError, except for a store with nothing to salvage:
// then the fix must not be to salvage the store.
func salvageError(path string, err error) error {
	if !IsDamaged(err) {
		return wrapStoreError(path, "salvage data", err)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "salvage data: nothing in the store %s can be read: %w", path, err).
		WithFix("restore a backup of the file, or move it away to start a new store")
}

// salvageFile reads a file with its own schema table. If a table is missing, it returns an
// error for a damaged file.
func salvageFile(ctx context.Context, path string) (*Salvaged, error) {
	db, err := sql.Open("sqlite", dataSource(path, "mode=ro", readPragmas()...))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	out := &Salvaged{Events: map[string][]run.Event{}}
	tables := out.tableReaders()
	for _, t := range tables {
		var there bool
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, t.table).Scan(&there)
		if err == nil && !there {
			err = fmt.Errorf("there is no table %s: %w", t.table, rows.ErrInvalidValue)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, t := range tables {
		problem, err := t.readTable(ctx, db)
		if err != nil {
			return nil, err
		}
		if problem != "" {
			out.Problems = append(out.Problems, problem)
		}
	}
	for _, events := range out.Events {
		slices.SortFunc(events, func(a, b run.Event) int { return cmp.Compare(a.Seq, b.Seq) })
	}
	return out, nil
}

// tableReaders returns the readers of the tables. They append the rows to s.
func (s *Salvaged) tableReaders() []tableReader {
	return []tableReader{
		{"runs", runColumns, func(row rows.Scanner, num *int64) error {
			var r run.Record
			err := row.Scan(append([]any{num}, rows.RunFields(&r)...)...)
			return appendIfRead(&s.Runs, r, err)
		}},
		{"definitions", "hash, text", func(row rows.Scanner, num *int64) error {
			var d run.Definition
			err := row.Scan(num, &d.Hash, &d.Text)
			return appendIfRead(&s.Definitions, d, err)
		}},
		{"documents", documentColumns, func(row rows.Scanner, num *int64) error {
			d, err := rows.ScanDocument(row, num)
			return appendIfRead(&s.Documents, d, err)
		}},
		{"events", "run, " + eventColumns, func(row rows.Scanner, num *int64) error {
			var id string
			var e run.Event
			err := row.Scan(append([]any{num, &id}, rows.EventFields(&e)...)...)
			if err == nil {
				s.Events[id] = append(s.Events[id], e)
			}
			return err
		}},
	}
}

// readPragmas returns the pragmas for a damaged file. cell_size_check makes SQLite check
// the cells that it reads, and writable_schema makes it open a truncated file; nothing is
// written.
func readPragmas() []string {
	return []string{"query_only(1)", "busy_timeout(5000)", "cell_size_check(1)", "writable_schema(1)"}
}

// appendIfRead appends a scanned item to a list unless err is set.
func appendIfRead[T any](list *[]T, item T, err error) error {
	if err == nil {
		*list = append(*list, item)
	}
	return err
}

// tableReader reads one table.
type tableReader struct {
	table, columns string
	// scan scans a row: its number and then the columns.
	scan func(row rows.Scanner, num *int64) error
}

// selectRows returns the query for some rows of the table.
func (t tableReader) selectRows(which string) string {
	return "SELECT rowid, " + t.columns + " FROM " + t.table + " WHERE rowid " + which
}

// readTable reads the table from both ends up to the damage, and then the rows in between
// one by one, until many consecutive rows are missing. It only returns an error if the
// context has ended.
func (t tableReader) readTable(ctx context.Context, db *sql.DB) (problem string, err error) {
	const patience = 2000 // more rows than fit on a page
	below, above := int64(0), int64(math.MaxInt64)
	damage := t.scanRows(ctx, db, &below, t.selectRows("> ? ORDER BY rowid"), math.MinInt64)
	switch {
	case damage == nil:
		return "", nil
	case !IsDamaged(damage): // the whole table is lost or unreadable
		return "table " + t.table + ": " + damage.Error(), ctx.Err()
	}
	_ = t.scanRows(ctx, db, &above, t.selectRows("< ? AND rowid > ? ORDER BY rowid DESC"), math.MaxInt64, below)
	one, err := db.PrepareContext(ctx, t.selectRows("= ?"))
	if err != nil {
		return "table " + t.table + ": " + err.Error(), ctx.Err()
	}
	defer one.Close()
	missing := 0
	for num := below + 1; num < above && missing < patience && ctx.Err() == nil; num++ {
		var at int64
		if missing++; t.scan(one.QueryRowContext(ctx, num), &at) == nil {
			missing = 0
		}
	}
	return fmt.Sprintf("table %s: some rows after row %d could not be read: %v", t.table, below, damage), ctx.Err()
}

// scanRows scans the rows of a query until a row cannot be read, and sets last to the
// number of the last readable row.
func (t tableReader) scanRows(ctx context.Context, db *sql.DB, last *int64, text string, args ...any) error {
	found, err := db.QueryContext(ctx, text, args...)
	return eachRow(found, err, func(row rows.Scanner) error {
		var num int64
		err := t.scan(row, &num)
		if err == nil {
			*last = num
		}
		return err
	})
}
