//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway/internal/store/postgres"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// TestServerRestarts checks that a server that stops immediately, as after a power loss,
// has all acknowledged commits after its restart, and that clients only notice a delay.
func TestServerRestarts(t *testing.T) {
	t.Parallel()
	o := crash.NewServer(t)
	const stores, clients, steps, restarts = 2, 4, 150, 3
	var both []*postgres.Store
	for range stores {
		both = append(both, openStore(t, postgres.Options{URL: o.URL, Patience: testTimeout}))
	}
	for i := range clients {
		createTestRun(t, both[0], fmt.Sprintf("r_%d", i))
	}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- followFeed(ctx, both[1], clients+clients*steps) }()
	done := make(chan acks)
	go func() { done <- appendAll(t, both[0], clients, steps) }()
	for i := range restarts {
		// The next restart waits until more commits are made.
		for want := (i + 1) * clients * steps / (restarts + 1); ; {
			last, err := both[1].Latest(ctx)
			requireNoError(t, err)
			if last >= int64(want) {
				break
			}
		}
		o.Stop("immediate")
		o.Start()
	}
	all := <-done
	if there := all.checkJournal(t, both[1], o.URL+"&search_path=guideway"); there != clients*steps {
		t.Errorf("%d commits are stored, %d were made", there, clients*steps)
	}
	requireNoError(t, <-told)
}
