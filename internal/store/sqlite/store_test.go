package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/store/storetest"
)

// TestContract runs the contract tests of run.Journal and session.Store.
func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Exercise(t, func(t *testing.T) storetest.Opener {
		path := filepath.Join(t.TempDir(), "guideway.db")
		return func(t *testing.T) storetest.Store {
			t.Helper()
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
