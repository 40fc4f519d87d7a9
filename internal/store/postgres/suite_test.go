package postgres_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/storetest"
)

// Every promise of the contract is kept, by two stores on one database too, as
// two machines would have them.
func TestJournal(t *testing.T) {
	t.Parallel()
	server(t)
	storetest.Exercise(t, func(t *testing.T) storetest.Opener {
		u := inSchema(t)
		return func(t *testing.T) storetest.Store { return open(t, postgres.Options{URL: u, MaxConns: 4}) }
	})
}
