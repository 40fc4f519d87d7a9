package mcpserver_test

import (
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/journal/sqlite"
)

// newStore opens a store for runs and session documents, on a disk.
func newStore(t *testing.T) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), sqlite.Options{Path: filepath.Join(t.TempDir(), "store.db")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}
