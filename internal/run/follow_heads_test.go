package run_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestFollowHeads checks that a machine that only follows the journal detects a rollback of
// the runs that another machine has continued, also if the journal did not answer for a time,
// and that it learns nothing from the restored copy that hides the rollback.
func TestFollowHeads(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	heads := newMemoryHeads()
	other := b.newService(t, func(o *run.Options) { o.Heads = heads })
	a := startRun(t, b.Service, "guarded", nil)
	id := a.RunID
	before, events := b.journal.records[id], b.journal.events[id]
	follow := func() {
		synctest.Test(t, func(t *testing.T) {
			ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
			defer stop()
			other.FollowHeads(ctx)
		})
	}
	if _, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "PLAN of the work"}); err != nil {
		t.Fatal(err)
	}
	checkFault := func(want run.FaultKind) {
		t.Helper()
		report, err := other.Verify(t.Context(), "")
		if err != nil || len(report.Faults) != 1 || report.Faults[0].Run != id || report.Faults[0].Kind != want {
			t.Errorf("verify: %+v, %v; want %s", report, err, want)
		}
	}
	b.journal.failing = guideway.Errorf(guideway.CodeUnavailable, "the store is away")
	follow()
	b.journal.records[id], b.journal.events[id] = before, events
	checkFault(run.FaultTruncated)
	follow()
	checkFault(run.FaultTruncated)
	delete(b.journal.records, id)
	checkFault(run.FaultMissing)
}

// TestFollowHeadsOfANewFeed checks that a machine that follows the journal also records the
// heads of the runs whose changes are in a new feed, which begins at its first position.
func TestFollowHeadsOfANewFeed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newTestBench(t)
		heads := newMemoryHeads()
		other := b.newService(t, func(o *run.Options) { o.Heads = heads })
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			other.FollowHeads(ctx)
		}()
		for range 3 {
			startRun(t, b.Service, "guarded", nil)
		}
		<-time.After(time.Minute)
		b.journal.mu.Lock()
		b.journal.changes = nil
		b.journal.mu.Unlock()
		a := startRun(t, b.Service, "guarded", nil)
		<-time.After(time.Minute)
		stop()
		<-ended
		if known, err := heads.Heads(); err != nil || len(known) != 4 || known[a.RunID].Seq == 0 {
			t.Errorf("the heads are %+v, %v", known, err)
		}
	})
}
