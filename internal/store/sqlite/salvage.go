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
)

// Salvaged is what could be read of a damaged file. Nothing of it was checked:
// the chains tell what is as it was written.
type Salvaged struct {
	Runs        []run.Record
	Definitions []run.Definition
	Documents   []session.Document
	// Events are those of each run, in order but perhaps with gaps; also of
	// runs whose record is gone.
	Events map[string][]run.Event
	// Problems say which rows could not be read.
	Problems []string
}

// Salvage reads what can be read of a file, however damaged, without changing
// it. It passes over rows on pages that are gone. Where the list of the tables is
// gone, that of a new store takes its place, in a copy. Where nothing at all can
// be read it gives an error.
func Salvage(ctx context.Context, path string) (*Salvaged, error) {
	switch err := wantHeader(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil, guideway.Errorf(guideway.CodeNotFound, "there is no store %s to salvage", path)
	case err != nil:
		return nil, lost(path, err)
	}
	out, err := salvage(ctx, path)
	if err == nil || !IsDamaged(err) {
		return out, lost(path, err)
	}
	copied, remove, copyErr := withNewTables(ctx, path)
	if copyErr != nil {
		return nil, lost(path, errors.Join(err, copyErr))
	}
	defer remove()
	out, copyErr = salvage(ctx, copied)
	if copyErr != nil || len(out.Runs)+len(out.Definitions)+len(out.Documents)+len(out.Events) == 0 {
		return nil, lost(path, errors.Join(err, ctx.Err()))
	}
	out.Problems = slices.Insert(out.Problems, 0, fmt.Sprintf("the list of the tables: that of a new store was taken: %v", err))
	return out, nil
}

// lost is fault for a store of which nothing can be salvaged: to salvage it is no
// way out.
func lost(path string, err error) error {
	if !IsDamaged(err) {
		return fault(path, "salvage", err)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "salvage: nothing of the store %s can be read: %w", path, err).
		WithFix("restore a backup of the file, or move it away to begin anew")
}

// salvage reads a file by its own list of tables. The error is damaged where that
// lacks one.
func salvage(ctx context.Context, path string) (*Salvaged, error) {
	db, err := sql.Open("sqlite", dataSource(path, "mode=ro", salvagePragmas()...))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	out := &Salvaged{Events: map[string][]run.Event{}}
	tables := out.tables()
	for _, t := range tables {
		var there bool
		err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?`, t.table).Scan(&there)
		if err == nil && !there {
			err = fmt.Errorf("there is no table %s: %w", t.table, errGarbled)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, t := range tables {
		problem, err := t.read(ctx, db)
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

// tables are those that are read, into s.
func (s *Salvaged) tables() []salvager {
	return []salvager{
		{"runs", runColumns, func(row scanner, num *int64) error {
			r, err := scanRunAnd(row, num)
			return keep(&s.Runs, r, err)
		}},
		{"definitions", "hash, text", func(row scanner, num *int64) error {
			var d run.Definition
			err := row.Scan(num, &d.Hash, &d.Text)
			return keep(&s.Definitions, d, err)
		}},
		{"documents", "user, " + documentColumns, func(row scanner, num *int64) error {
			var user string
			d, err := scanDocument(row, "", num, &user)
			d.User = user
			return keep(&s.Documents, d, err)
		}},
		{"events", "run, " + eventColumns, func(row scanner, num *int64) error {
			var id string
			e, err := scanEventAnd(row, num, &id)
			if err == nil {
				s.Events[id] = append(s.Events[id], e)
			}
			return err
		}},
	}
}

// salvagePragmas have SQLite look closely at what it reads, and look at all into
// a file that was cut off, which takes writable_schema; nothing is written.
func salvagePragmas() []string {
	return []string{"query_only(1)", "busy_timeout(5000)", "cell_size_check(1)", "writable_schema(1)"}
}

// keep adds to a list what was scanned well.
func keep[T any](list *[]T, item T, err error) error {
	if err == nil {
		*list = append(*list, item)
	}
	return err
}

// salvager reads one table.
type salvager struct {
	table, columns string
	// scan scans a row: its number, then the columns.
	scan func(row scanner, num *int64) error
}

// query reads some rows of the table.
func (t salvager) query(which string) string {
	return "SELECT rowid, " + t.columns + " FROM " + t.table + " WHERE rowid " + which
}

// read reads the table from both ends until it comes to damage, and then tries
// the rows in between, until very many in a row are not there. It gives an error
// only where the context has ended.
func (t salvager) read(ctx context.Context, db *sql.DB) (problem string, err error) {
	const patience = 2000 // a page holds fewer rows
	below, above := int64(0), int64(math.MaxInt64)
	damage := t.scanAll(ctx, db, &below, t.query("> ? ORDER BY rowid"), math.MinInt64)
	switch {
	case damage == nil:
		return "", nil
	case !IsDamaged(damage): // the table itself is gone, or nothing can be read
		return t.table + ": " + damage.Error(), ctx.Err()
	}
	_ = t.scanAll(ctx, db, &above, t.query("< ? AND rowid > ? ORDER BY rowid DESC"), math.MaxInt64, below)
	one, err := db.PrepareContext(ctx, t.query("= ?"))
	if err != nil {
		return t.table + ": " + err.Error(), ctx.Err()
	}
	defer one.Close()
	missing := 0
	for num := below + 1; num < above && missing < patience && ctx.Err() == nil; num++ {
		var at int64
		if missing++; t.scan(one.QueryRowContext(ctx, num), &at) == nil {
			missing = 0
		}
	}
	return fmt.Sprintf("%s: some rows behind the row %d could not be read: %v", t.table, below, damage), ctx.Err()
}

// scanAll scans the rows of a query until one cannot be read; last is then the
// number of the last one that could.
func (t salvager) scanAll(ctx context.Context, db *sql.DB, last *int64, text string, args ...any) error {
	rows, err := db.QueryContext(ctx, text, args...)
	_, err = collect(rows, err, func(row scanner) (struct{}, error) {
		var num int64
		err := t.scan(row, &num)
		if err == nil {
			*last = num
		}
		return struct{}{}, err
	})
	return err
}
