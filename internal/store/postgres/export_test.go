package postgres

import (
	"context"
	"testing"
	"time"
)

// ConnSetting returns a setting of a connection of the store.
func ConnSetting(tb testing.TB, s *Store, name string) string {
	tb.Helper()
	var value string
	if err := s.pool.QueryRow(context.Background(), `select current_setting($1)`, name).Scan(&value); err != nil {
		tb.Fatal(err)
	}
	return value
}

// Migrate applies the migrations of this version and then the statements in more, as a
// later version would.
func Migrate(ctx context.Context, s *Store, more ...string) error {
	steps := append(migrations(), more...)
	return s.retryWrite(ctx, "migrate", func(ctx context.Context, _ bool) error { return s.applyMigrations(ctx, steps) })
}

// ExpireSchemaCheck makes the next call check the version of the tables.
func ExpireSchemaCheck(s *Store) {
	s.schemaCheck.mu.Lock()
	defer s.schemaCheck.mu.Unlock()
	s.schemaCheck.next = time.Time{}
}

// CommonRows is a limit of the search.
const CommonRows = commonRows
