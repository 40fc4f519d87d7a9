package rows

import (
	"context"
	"errors"
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
}

// NewMethods returns the methods of a store.
func NewMethods(d Dialect, a Access) Methods { return Methods{dialect: d, access: a} }

// query returns a constant query with the values of its parameters.
func (m *Methods) query(text string, args ...any) Query {
	return Query{Text: text, Args: m.dialect.convert(args)}
}

// convert replaces values by those of columns.
func (d Dialect) convert(args []any) []any {
	for i, arg := range args {
		args[i] = d.Value(arg)
	}
	return args
}

// queryOne scans the row of a query. It returns missing if there is no row.
func (m *Methods) queryOne(ctx context.Context, doing string, missing error, q Query, into ...any) error {
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
