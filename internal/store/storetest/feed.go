package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// testTimeout ends a test that hangs.
const testTimeout = 60 * time.Second

// feedTests cover the feed of changes.
func feedTests() []subtest {
	return []subtest{
		{"the feed contains every change once, with its subject", testFeed},
		{"the feed is read in pages, in order", testFeedPages},
		{"a watcher of another process is notified", testWatch},
		{"a watch ends with its context", testWatchEnds},
		{"a reader that follows sees every change once, in order", testFollowFeed},
	}
}

func testFeed(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	r = appendEvent(t, s, r, "two")
	d := newDocument("bob", "0123456789ab", "review", "doc-1")
	requireNoError(t, s.CreateDocument(ctx, d, nil))
	_, err := s.UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d.Updated = minutesAfter(3)
		return d, nil, nil
	})
	requireNoError(t, err)
	requireNoError(t, s.DeleteDocument(ctx, d.Ref, minutesAfter(4)))
	requireNoError(t, s.RestoreDocument(ctx, d.Ref, minutesAfter(5)))
	ofRun := func(at time.Time, op string, seq int64) run.Change {
		return run.Change{
			At: at, Subject: run.SubjectRun, Op: op, User: "ada", ID: "r_a",
			Workflow: r.Workflow, Project: r.Project.ID, Seq: seq,
		}
	}
	ofDocument := func(at time.Time, op string, seq int64) run.Change {
		return run.Change{
			At: at, Subject: run.SubjectSession, Op: op, User: "bob", ID: "doc-1",
			Workflow: "review", Project: "0123456789ab", Seq: seq,
		}
	}
	list, reset, err := f.openStore(t).Changes(ctx, 0, 100)
	requireNoError(t, err)
	if reset {
		t.Error("the feed reports a reset without pruning")
	}
	for i := range list {
		if i > 0 && list[i].Pos <= list[i-1].Pos {
			t.Errorf("position %d follows %d", list[i].Pos, list[i-1].Pos)
		}
		if list[i].Subject == run.SubjectRun { // the workflow and the project of a change of a run may be empty
			if list[i].Workflow == "" {
				list[i].Workflow = r.Workflow
			}
			if list[i].Project == "" {
				list[i].Project = r.Project.ID
			}
		}
	}
	latest, err := s.Latest(ctx)
	requireNoError(t, err)
	checkEqual(t, "the last position", latest, list[len(list)-1].Pos)
	for i := range list {
		list[i].Pos = 0
	}
	checkEqual(t, "changes", list, []run.Change{
		ofRun(startTime(), run.OpCreated, 1), ofRun(r.Updated, run.OpChanged, 2),
		ofDocument(startTime(), run.OpCreated, 1), ofDocument(minutesAfter(3), run.OpChanged, 2),
		ofDocument(minutesAfter(4), run.OpDeleted, 2), ofDocument(minutesAfter(5), run.OpCreated, 2),
	})
}

func testFeedPages(t *testing.T, f *fixture) {
	const total = 30
	s, ctx := f.openStore(t), t.Context()
	for i := range total {
		createRun(t, s, newRecord(fmt.Sprintf("r_%02d", i), "ada"))
	}
	var after int64
	for i := 0; i < total; {
		list, reset, err := s.Changes(ctx, after, 7)
		requireNoError(t, err)
		if reset || len(list) == 0 || len(list) > 7 {
			t.Fatalf("%d changes after %d, reset %v", len(list), after, reset)
		}
		for _, c := range list {
			checkEqual(t, "id", c.ID, fmt.Sprintf("r_%02d", i))
			after, i = c.Pos, i+1
		}
	}
	list, reset, err := s.Changes(ctx, after, 7)
	requireNoError(t, err)
	if len(list) != 0 || reset {
		t.Fatalf("reading after the last change: %d changes, reset %v", len(list), reset)
	}
}

func testWatch(t *testing.T, f *fixture) {
	here, there := f.openStore(t), f.openStore(t)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	own, foreign := here.Watch(ctx), there.Watch(ctx)
	follow := func(s Store, woken <-chan struct{}, after int64) int64 {
		for {
			list, _, err := s.Changes(ctx, after, 100)
			requireNoError(t, err)
			if len(list) > 0 {
				return list[len(list)-1].Pos
			}
			if _, open := <-woken; !open {
				t.Fatal("a watcher was not notified of a change")
			}
		}
	}
	var a, b int64
	r := createRun(t, here, newRecord("r_a", "ada"))
	for i := range 5 {
		a, b = follow(here, own, a), follow(there, foreign, b)
		r = appendEvent(t, here, r, fmt.Sprint(i))
	}
}

func testWatchEnds(t *testing.T, f *fixture) {
	s := f.openStore(t)
	ctx, cancel := context.WithCancel(t.Context())
	var watches []<-chan struct{}
	for range 5 {
		watches = append(watches, s.Watch(ctx))
	}
	still := s.Watch(t.Context())
	cancel()
	for _, w := range watches {
		for range w { // the channel is closed, possibly after a value
			continue
		}
	}
	for range s.Watch(ctx) { // the context has already ended
		continue
	}
	createRun(t, s, newRecord("r_a", "ada"))
	if _, open := <-still; !open {
		t.Error("a different watch was ended")
	}
}

// testFollowFeed checks that readers in two processes receive all changes of concurrent
// writers in both processes with Watch and Changes.
func testFollowFeed(t *testing.T, f *fixture) {
	const share = 15
	stores := []Store{f.openStore(t), f.openStore(t)}
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	type followed struct {
		changes []run.Change
		err     error
	}
	readers := make(chan followed, 2)
	for _, s := range stores {
		woken := s.Watch(ctx)
		go func() {
			list, err := followFeed(ctx, s, woken, concurrency*share)
			readers <- followed{list, err}
		}()
	}
	errs := runConcurrently(concurrency, func(i int) error {
		s, r := stores[i%2], newRecord(fmt.Sprintf("r_%d", i), "ada")
		if err := s.Create(ctx, newDefinition(r), createCommit(r)); err != nil {
			return err
		}
		for n := range share - 1 {
			c := appendCommit(r, fmt.Sprint(n))
			if err := s.Append(ctx, c); err != nil {
				return err
			}
			r = c.Record
		}
		return nil
	})
	for _, err := range errs {
		requireNoError(t, err)
	}
	for range stores {
		got := <-readers
		requireNoError(t, got.err)
		last, seqs := int64(0), map[string]int64{}
		for _, c := range got.changes {
			if c.Pos <= last {
				t.Fatalf("position %d follows %d", c.Pos, last)
			}
			if c.Seq != seqs[c.ID]+1 {
				t.Fatalf("change %[2]d of %[1]s follows %[3]d", c.ID, c.Seq, seqs[c.ID])
			}
			last, seqs[c.ID] = c.Pos, c.Seq
		}
		checkEqual(t, "changes", len(got.changes), concurrency*share)
	}
}

// followFeed reads changes until it has read the given number of changes.
func followFeed(ctx context.Context, s run.Feed, woken <-chan struct{}, most int) ([]run.Change, error) {
	var seen []run.Change
	var after int64
	for {
		list, reset, err := s.Changes(ctx, after, 10)
		if err != nil || reset {
			return seen, fmt.Errorf("after position %d: reset %v, %w", after, reset, err)
		}
		seen = append(seen, list...)
		if len(seen) >= most {
			return seen, nil
		}
		if len(list) > 0 {
			after = list[len(list)-1].Pos
			continue
		}
		if _, open := <-woken; !open {
			return seen, fmt.Errorf("the watch ended after %d changes: %w", len(seen), ctx.Err())
		}
	}
}
