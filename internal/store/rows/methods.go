package rows

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
)

// ErrInvalidValue marks a value that a store cannot have written.
var ErrInvalidValue = errors.New("the content is invalid")

// Scanner is a row of a result.
type Scanner interface{ Scan(into ...any) error }

// Query is a query with its parameters $1, $2 and so on.
type Query struct {
	Text string
	Args []any
	// Varies reports whether the text depends on a filter. All other texts are constants,
	// so that a store can keep them prepared.
	Varies bool
}

// Reader runs queries.
type Reader interface {
	// Each calls visit for each row of a query, until visit returns an error.
	Each(ctx context.Context, q Query, visit func(Scanner) error) error
}

// Tx is a transaction that writes. Its Each can run statements that return rows.
type Tx interface {
	Reader
	// Queue executes statements whose results are not needed: before the next statement or,
	// at the latest, with the commit, which then returns their errors.
	Queue(ctx context.Context, list ...Query) error
	// Exec executes a statement and returns the number of affected rows.
	Exec(ctx context.Context, q Query) (int64, error)
	// AddChange adds a change to the feed. It must be the last statement.
	AddChange(ctx context.Context, c run.Change) error
	// AddCheckpoint adds the record r of a change, with its words.
	AddCheckpoint(ctx context.Context, c checkpoint.Change, r checkpoint.Record) error
}

// Write is a change of the database in one transaction.
type Write struct {
	// Doing describes the operation in errors.
	Doing string
	// Stored reports whether an earlier attempt, whose response was lost, was committed. If
	// it is nil, such an attempt is not repeated.
	Stored func(ctx context.Context, r Reader) (bool, error)
	// Do makes the change. It may be called more than once, also by another goroutine, and
	// must change nothing but the database.
	Do func(ctx context.Context, t Tx) error
}

// notStored is the function Stored of a write that can be repeated.
func notStored(context.Context, Reader) (bool, error) { return false, nil }

// Methods has the methods of a store that are the same for all databases.
type Methods struct {
	dialect Dialect
	access  Access
}

// Access has the functions by which a store runs statements. Their first text describes the
// operation in errors.
type Access struct {
	// Read calls do, which must only read. It may call do again after an error.
	Read func(ctx context.Context, doing string, do func(context.Context, Reader) error) error
	// Write makes a change, whose result it returns when it is durable.
	Write func(ctx context.Context, w Write) error
}

// NewMethods returns the methods of a store.
func NewMethods(d Dialect, a Access) Methods { return Methods{dialect: d, access: a} }

// query returns a constant query with the values of its parameters. In the text, {user} and
// {num} are replaced by the names of columns, and {now} by the time of the database.
func (m *Methods) query(text string, args ...any) Query {
	return Query{Text: m.dialect.text(text), Args: m.dialect.convert(args)}
}

// queries returns constant queries with the same parameters.
func (m *Methods) queries(texts []string, args ...any) (list []Query) {
	for _, text := range texts {
		list = append(list, m.query(text, slices.Clone(args)...))
	}
	return list
}

// text returns a statement with the names of the columns {user} and {num}, and {now}.
func (d Dialect) text(text string) string {
	return strings.NewReplacer("{user}", d.User, "{num}", d.Number, "{now}", d.Now).Replace(text)
}

// convert converts args to the values that the dialect stores in columns.
func (d Dialect) convert(args []any) []any {
	for i, arg := range args {
		args[i] = d.Value(arg)
	}
	return args
}

// QueryOne scans the row of a query. It returns missing if there is no row.
func QueryOne(ctx context.Context, m *Methods, doing string, missing error, q Query, into ...any) error {
	return m.access.Read(ctx, doing, func(ctx context.Context, r Reader) error {
		found, err := scanRow(ctx, r, q, into...)
		if err == nil && !found {
			return missing
		}
		return err
	})
}

// scanRow scans the row of a query and reports whether there is one.
func scanRow(ctx context.Context, r Reader, q Query, into ...any) (found bool, err error) {
	err = r.Each(ctx, q, func(row Scanner) error {
		found = true
		return row.Scan(into...)
	})
	return found, err
}

// List returns the rows of a query.
func List[T any](ctx context.Context, m *Methods, doing string, q Query, scan func(Scanner) (T, error)) (list []T, err error) {
	err = m.access.Read(ctx, doing, func(ctx context.Context, r Reader) (err error) {
		list, err = Collect(ctx, r, q, scan)
		return err
	})
	return list, err
}

// Collect returns the rows of a query.
func Collect[T any](ctx context.Context, r Reader, q Query, scan func(Scanner) (T, error)) (list []T, _ error) {
	err := r.Each(ctx, q, func(row Scanner) error {
		item, err := scan(row)
		list = append(list, item)
		return err
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// ScanFields returns a function that scans a row into the fields of an item.
func ScanFields[T any](fields func(*T) []any) func(Scanner) (T, error) {
	return func(row Scanner) (item T, err error) {
		err = row.Scan(fields(&item)...)
		return item, err
	}
}
