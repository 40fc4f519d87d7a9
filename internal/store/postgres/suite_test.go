package postgres_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/storetest"
)

// TestJournal runs the contract tests, also with two stores on one database, as if two
// machines used it.
func TestJournal(t *testing.T) {
	t.Parallel()
	serverURL(t)
	storetest.Exercise(t, func(t *testing.T) storetest.Opener {
		u := newSchemaURL(t)
		return func(t *testing.T) storetest.Store { return openStore(t, postgres.Options{URL: u, MaxConns: 4}) }
	})
}
