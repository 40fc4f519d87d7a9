package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/indextest"
)

// TestCheckpoints runs the contract tests of the checkpoint index.
func TestCheckpoints(t *testing.T) {
	t.Parallel()
	indextest.Exercise(t, func(t *testing.T) indextest.Opener {
		path := filepath.Join(t.TempDir(), testFile)
		return func(t *testing.T) indextest.Index {
			t.Helper()
			s, err := Open(t.Context(), Options{Path: path})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
	})
}
