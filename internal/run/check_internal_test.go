package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestRunLocks checks that the lock of a run has one holder at a time and does not block other
// runs, that a wait ends with its context, and that no lock is kept after its last use.
func TestRunLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks runLocks
		lock := func(id string) func() {
			release, err := locks.lock(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return release
		}
		first, other := lock("r_a"), lock("r_b")
		ended, end := context.WithCancel(t.Context())
		end()
		if _, err := locks.lock(ended, "r_a"); !errors.Is(err, context.Canceled) {
			t.Errorf("a wait with an ended context returned %v", err)
		}
		var second func()
		go func() { second = lock("r_a") }()
		synctest.Wait()
		if second != nil {
			t.Error("a run is locked twice")
		}
		first()
		synctest.Wait()
		if second == nil {
			t.Fatal("a released run cannot be locked")
		}
		second()
		other()
		if len(locks.locks) != 0 {
			t.Errorf("after the last use, %d locks are kept", len(locks.locks))
		}
	})
}
