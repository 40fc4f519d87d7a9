package postgres_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/journal/journaltest"
	"github.com/guideway-dev/guideway/internal/journal/postgres"
)

// Every promise of the contract is kept, by two stores on one database too, as
// two machines would have them.
func TestJournal(t *testing.T) {
	t.Parallel()
	server(t)
	journaltest.Exercise(t, func(t *testing.T) journaltest.Opener {
		u := inSchema(t)
		return func(t *testing.T) journaltest.Store { return open(t, postgres.Options{URL: u, MaxConns: 4}) }
	})
}
