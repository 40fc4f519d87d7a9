package mcp_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
)

// newStore opens a store for runs and session documents on disk.
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

// newCheckpoints opens a checkpoint service with its index in a store and its blobs in
// files.
func newCheckpoints(t *testing.T, store *sqlite.Store, now func() time.Time) *checkpoint.Service {
	t.Helper()
	blobs, err := blob.OpenFiles(blob.FilesOptions{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.New(checkpoint.Options{Index: store, Blobs: blobs, Store: checkpoint.Store{Mode: checkpoint.ModeSQLite}, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}
