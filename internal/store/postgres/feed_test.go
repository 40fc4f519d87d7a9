package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestFeedIsPruned checks that the oldest changes are deleted, and that a reader that
// missed some of them is told to start again.
func TestFeedIsPruned(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgres.Options{URL: newSchemaURL(t), KeepChanges: 20})
	r := createTestRun(t, s, "r_a")
	for range 99 {
		c := newCommit(r, 1, nil)
		requireNoError(t, s.Append(t.Context(), c))
		r = c.Record
		if r.Seq%7 == 0 {
			_, err := s.Latest(t.Context())
			requireNoError(t, err)
		}
	}
	latest, err := s.Latest(t.Context())
	requireNoError(t, err)
	if latest != 100 {
		t.Errorf("the last position is %d", latest)
	}
	read := func(after int64) ([]run.Change, bool) {
		list, reset, err := s.Changes(t.Context(), after, 1000)
		requireNoError(t, err)
		return list, reset
	}
	list, reset := read(0)
	if !reset || len(list) < 20 || len(list) > 24 || list[len(list)-1].Pos != 100 {
		t.Fatalf("%d changes, reset %v", len(list), reset)
	}
	oldest := list[0].Pos
	for _, c := range []struct {
		after int64
		reset bool
		first int64
	}{{oldest - 2, true, oldest}, {oldest - 1, false, oldest}, {oldest, false, oldest + 1}, {99, false, 100}, {1, true, oldest}} {
		if list, reset := read(c.after); reset != c.reset || list[0].Pos != c.first {
			t.Errorf("after %d: reset %v, first %d; want %v, %d", c.after, reset, list[0].Pos, c.reset, c.first)
		}
	}
	if list, reset := read(100); reset || len(list) != 0 {
		t.Errorf("reading after the last change: %d changes, reset %v", len(list), reset)
	}
	// A position after the end means that the feed was rolled back.
	if list, reset := read(5000); !reset || len(list) == 0 || list[0].Pos != oldest {
		t.Errorf("reading after the end of the feed: %d changes, reset %v", len(list), reset)
	}
}

// TestFeedDoesNotWait checks that a slow transaction delays no reader, and that its change
// gets a position after the changes that were read before.
func TestFeedDoesNotWait(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	c, err := pgx.Connect(t.Context(), u)
	requireNoError(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	requireNoError(t, err)
	_, err = tx.Exec(t.Context(), `insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
		values (now(), 'run', 'created', 'ada', 'r_slow', '', '', 1)`)
	requireNoError(t, err)
	createTestRun(t, s, "r_fast")
	ids := func() (ids []string) {
		list, _, err := s.Changes(t.Context(), 0, 10)
		requireNoError(t, err)
		for i, c := range list {
			if c.Pos != int64(i)+1 {
				t.Errorf("change %[2]d has the position %[1]d", c.Pos, i+1)
			}
			ids = append(ids, c.ID)
		}
		return ids
	}
	if got := ids(); len(got) != 1 || got[0] != "r_fast" {
		t.Fatalf("got %v", got)
	}
	requireNoError(t, tx.Commit(t.Context()))
	if got := ids(); len(got) != 2 || got[1] != "r_slow" {
		t.Fatalf("got %v", got)
	}
}

// TestFeedWithoutReader checks that a feed without readers stays bounded.
func TestFeedWithoutReader(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	r := createTestRun(t, s, "r_a")
	requireNoError(t, s.Close())
	execSQL(t, u, `insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
		select now(), 'run', 'changed', 'ada', 'r_a', '', '', n from generate_series(2, 5000) n`)
	s = openStore(t, postgres.Options{URL: u, KeepChanges: 100})
	if n := queryNumber(t, u, `select (count(*) + (select count(*) from changes))::int from outbox`); n > 200 {
		t.Errorf("%d changes are kept", n)
	}
	requireNoError(t, s.Append(t.Context(), newCommit(r, 1, nil)))
	if latest, err := s.Latest(t.Context()); err != nil || latest != 5001 {
		t.Errorf("the last position is %d (%v)", latest, err)
	}
}

// TestWatchPolls checks that a watch reports the commit of a process that ended before it
// notified other processes.
func TestWatchPolls(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	woken := s.Watch(ctx)
	var after int64
	for range 3 { // the first commit may be made before the listener is connected
		execSQL(t, u, `insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
			values (now(), 'run', 'created', 'ada', 'r_silent', '', '', 1)`)
		for seen := after; after == seen; {
			if _, open := <-woken; !open {
				t.Fatal("the watch got no notification")
			}
			list, _, err := s.Changes(ctx, after, 10)
			requireNoError(t, err)
			after += int64(len(list))
		}
	}
}

// TestConcurrentReaders checks that the feed contains each change once, without gaps, after
// writers and readers of the feed have run concurrently.
func TestConcurrentReaders(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	stores := []*postgres.Store{openStore(t, postgres.Options{URL: u}), openStore(t, postgres.Options{URL: u})}
	const writers, readers, each = 4, 6, 60
	ctx, done := context.WithCancel(t.Context())
	var reading, writing sync.WaitGroup
	for i := range readers {
		reading.Go(func() {
			for ctx.Err() == nil {
				if _, err := stores[i%2].Latest(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for i := range writers {
		writing.Go(func() {
			for n := range each {
				d, c := newTestRun(fmt.Sprintf("r_%d_%d", i, n), "ada", "an aim")
				if err := stores[i%2].Create(t.Context(), d, c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	writing.Wait()
	done()
	reading.Wait()
	list, _, err := stores[0].Changes(t.Context(), 0, 1000)
	requireNoError(t, err)
	for i, c := range list {
		if c.Pos != int64(i)+1 {
			t.Fatalf("change %[2]d has the position %[1]d", c.Pos, i+1)
		}
	}
	if len(list) != writers*each {
		t.Errorf("%d changes, want %d", len(list), writers*each)
	}
}

// TestFollowersDelayNoCommit checks that many followers of the feed use no connection of the
// pool, also while another process holds the row of the feed, and that each of them gets
// every change.
func TestFollowersDelayNoCommit(t *testing.T) {
	t.Parallel()
	const followers, commits = 100, 30
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u, MaxConns: 2})
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var reading sync.WaitGroup
	ready := make(chan struct{}, followers)
	for range followers {
		woken := s.Watch(ctx)
		reading.Go(func() {
			var after int64
			for first := true; after < commits; first = false {
				list, reset, err := s.Changes(ctx, after, 1000)
				if err != nil || reset {
					t.Errorf("after %d: reset %v, %v", after, reset, err)
					return
				}
				for _, c := range list {
					if after++; c.Pos != after {
						t.Errorf("position %d follows %d", c.Pos, after-1)
					}
				}
				if first {
					ready <- struct{}{}
				}
				if after == commits {
					return
				}
				if _, open := <-woken; !open {
					t.Errorf("a follower got %d of %d changes", after, commits)
					return
				}
			}
		})
	}
	for range followers {
		<-ready
	}
	other, err := pgx.Connect(ctx, u)
	requireNoError(t, err)
	defer other.Close(context.Background())
	tx, err := other.Begin(ctx)
	requireNoError(t, err)
	_, err = tx.Exec(ctx, `select from feed for update`)
	requireNoError(t, err)
	for i := range commits {
		createTestRun(t, s, fmt.Sprintf("r_%d", i))
	}
	requireNoError(t, tx.Commit(ctx))
	reading.Wait()
}
