package sqlite

import (
	"context"
	"path/filepath"
	"runtime"
	"testing"
)

// Whoever prepares a statement beside a transaction waits for the only connection,
// and not with the lock that the transaction needs for its statements: a checkpoint
// beside a run's commit would hang both.
func TestPreparingBesideATransaction(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), Options{Path: filepath.Join(t.TempDir(), testFile)})
	if err != nil {
		t.Fatal(err)
	}
	prepared := make(chan error, 1)
	err = s.write(t.Context(), "test", func(context.Context, *txn) error {
		go func() { prepared <- s.prepareCheckpoints(context.Background(), "test") }()
		for s.writer.db.Stats().WaitCount == 0 {
			runtime.Gosched()
		}
		if !s.writer.mu.TryLock() {
			t.Error("the lock is held by who waits for the connection")
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
