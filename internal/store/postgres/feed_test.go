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

// The oldest changes go, and a reader that has missed some is told.
func TestFeedIsPruned(t *testing.T) {
	t.Parallel()
	s := open(t, postgres.Options{URL: inSchema(t), KeepChanges: 20})
	r := create(t, s, "r_a")
	for range 99 {
		c := follow(r, 1, nil)
		must(t, s.Append(t.Context(), c))
		r = c.Record
		if r.Seq%7 == 0 {
			_, err := s.Latest(t.Context())
			must(t, err)
		}
	}
	latest, err := s.Latest(t.Context())
	must(t, err)
	if latest != 100 {
		t.Errorf("the last position is %d", latest)
	}
	read := func(after int64) ([]run.Change, bool) {
		list, reset, err := s.Changes(t.Context(), after, 1000)
		must(t, err)
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
			t.Errorf("behind %d: reset %v, first %d; want %v, %d", c.after, reset, list[0].Pos, c.reset, c.first)
		}
	}
	if list, reset := read(100); reset || len(list) != 0 {
		t.Errorf("behind the last one: %d changes, reset %v", len(list), reset)
	}
	// A reader that is ahead has read a feed that was rolled back.
	if list, reset := read(5000); !reset || len(list) == 0 || list[0].Pos != oldest {
		t.Errorf("ahead of the feed: %d changes, reset %v", len(list), reset)
	}
}

// A transaction that takes its time holds up nobody, and its change comes behind
// those that were read meanwhile.
func TestFeedDoesNotWait(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	c, err := pgx.Connect(t.Context(), u)
	must(t, err)
	defer c.Close(context.Background())
	tx, err := c.Begin(t.Context())
	must(t, err)
	_, err = tx.Exec(t.Context(), `insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
		values (now(), 'run', 'created', 'ada', 'r_slow', '', '', 1)`)
	must(t, err)
	create(t, s, "r_fast")
	ids := func() (ids []string) {
		list, _, err := s.Changes(t.Context(), 0, 10)
		must(t, err)
		for i, c := range list {
			if c.Pos != int64(i)+1 {
				t.Errorf("position %d at place %d", c.Pos, i+1)
			}
			ids = append(ids, c.ID)
		}
		return ids
	}
	if got := ids(); len(got) != 1 || got[0] != "r_fast" {
		t.Fatalf("got %v", got)
	}
	must(t, tx.Commit(t.Context()))
	if got := ids(); len(got) != 2 || got[1] != "r_slow" {
		t.Fatalf("got %v", got)
	}
}

// Where nobody reads the feed, it does not grow without an end.
func TestFeedNobodyReads(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	r := create(t, s, "r_a")
	must(t, s.Close())
	execute(t, u, `insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
		select now(), 'run', 'changed', 'ada', 'r_a', '', '', n from generate_series(2, 5000) n`)
	s = open(t, postgres.Options{URL: u, KeepChanges: 100})
	if n := number(t, u, `select (count(*) + (select count(*) from changes))::int from outbox`); n > 200 {
		t.Errorf("%d changes are kept", n)
	}
	must(t, s.Append(t.Context(), follow(r, 1, nil)))
	if latest, err := s.Latest(t.Context()); err != nil || latest != 5001 {
		t.Errorf("the last position is %d (%v)", latest, err)
	}
}

// A process that ends between its commit and its word of it is heard all the
// same.
func TestWatchLooks(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	s := open(t, postgres.Options{URL: u})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	woken := s.Watch(ctx)
	var after int64
	for range 3 { // the first may be there before the listener is
		execute(t, u, `insert into outbox (at, subject, op, user_id, item, workflow, project, seq)
			values (now(), 'run', 'created', 'ada', 'r_silent', '', '', 1)`)
		for seen := after; after == seen; {
			if _, open := <-woken; !open {
				t.Fatal("nobody was told")
			}
			list, _, err := s.Changes(ctx, after, 10)
			must(t, err)
			after += int64(len(list))
		}
	}
}

// Many who read at once give each change one position, without a gap.
func TestFeedIsReadTogether(t *testing.T) {
	t.Parallel()
	u := inSchema(t)
	stores := []*postgres.Store{open(t, postgres.Options{URL: u}), open(t, postgres.Options{URL: u})}
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
				d, c := begin(fmt.Sprintf("r_%d_%d", i, n), "ada", "an aim")
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
	must(t, err)
	for i, c := range list {
		if c.Pos != int64(i)+1 {
			t.Fatalf("position %d at place %d", c.Pos, i+1)
		}
	}
	if len(list) != writers*each {
		t.Errorf("%d changes, want %d", len(list), writers*each)
	}
}
