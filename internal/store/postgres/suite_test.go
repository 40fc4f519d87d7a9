package postgres_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/blob/seal"
	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/store/sealed"
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

// TestEncryptedJournal runs the contract tests with encryption, whose data keys are in the
// database.
func TestEncryptedJournal(t *testing.T) {
	t.Parallel()
	serverURL(t)
	storetest.Exercise(t, func(t *testing.T) storetest.Opener {
		u, key := newSchemaURL(t), filepath.Join(t.TempDir(), "config", "key")
		return func(t *testing.T) storetest.Store {
			db := openStore(t, postgres.Options{URL: u, MaxConns: 4})
			return sealed.New(db, true, func(ctx context.Context) (*seal.Keys, error) {
				return seal.Open(ctx, db.Blobs(1<<20), seal.File{Path: key})
			})
		}
	})
}
