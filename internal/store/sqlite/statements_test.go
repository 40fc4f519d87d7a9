package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
)

// TestPrepareDuringTransaction checks that a caller that prepares a statement does not hold
// the mutex while it waits for the only connection. Otherwise, it would deadlock with a
// transaction, which needs the mutex for its own statements.
func TestPrepareDuringTransaction(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), testFile)})
	if err != nil {
		t.Fatal(err)
	}
	prepared := make(chan error, 1)
	err = s.commitShared(t.Context(), "test", func(context.Context, *txn) error {
		go func() {
			_, err := s.writer.prepareStatement(context.Background(), "SELECT 1")
			prepared <- err
		}()
		for s.writer.db.Stats().WaitCount == 0 {
			runtime.Gosched()
		}
		if !s.writer.mu.TryLock() {
			t.Error("the mutex is held while waiting for the connection")
			return nil
		}
		s.writer.mu.Unlock()
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := <-prepared; err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
