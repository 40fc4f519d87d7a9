package postgres

import (
	"context"
	"testing"
)

// Setting gives a setting of a connection of the store.
func Setting(tb testing.TB, s *Store, name string) string {
	tb.Helper()
	var value string
	if err := s.pool.QueryRow(context.Background(), `select current_setting($1)`, name).Scan(&value); err != nil {
		tb.Fatal(err)
	}
	return value
}

// Migrate brings the tables of a store to the embedded version and then carries
// out more steps, as a later version would.
func Migrate(ctx context.Context, s *Store, more ...string) error {
	steps := append(schemaSteps(), more...)
	return s.try(ctx, "migrate", func(ctx context.Context, _ bool) error { return s.migrate(ctx, steps) })
}

// The words of a text as they are indexed, and the rows of a commit's words.
var (
	PlainWords = plainWords
	Notes      = notes
)

// CommonRows is how many rows count for one word of a search, MaxNote the size
// of one.
const (
	CommonRows = commonRows
	MaxNote    = maxNote
)
