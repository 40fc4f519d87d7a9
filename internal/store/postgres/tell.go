package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// tellPause lies between two words to other processes. A notification
	// within the transaction would make all commits of the server wait for each
	// other; one for many changes, after them, costs next to nothing.
	tellPause = 5 * time.Millisecond
	// settleEvery is how many commits of a process may wait for positions where
	// nobody reads the feed.
	settleEvery = 1000
)

// teller does after commits what they need not wait for: it tells other
// processes of them and tidies the feed.
type teller struct {
	store *Store
	// commits counts those since the last telling.
	commits atomic.Int64
	ring    chan struct{}
	end     chan struct{}
	done    sync.WaitGroup
	once    sync.Once
}

func newTeller(s *Store) *teller {
	return &teller{store: s, ring: make(chan struct{}, 1), end: make(chan struct{})}
}

// changed is called after every commit of this process.
func (s *Store) changed() {
	s.hub.wake()
	s.tell.commits.Add(1)
	s.tell.once.Do(func() { s.tell.done.Go(s.tell.run) })
	select {
	case s.tell.ring <- struct{}{}:
	default:
	}
}

// run tells until the teller is closed, and then once more if it has to.
func (t *teller) run() {
	ctx := context.Background()
	var unsettled int64
	for open := true; open; {
		select {
		case <-t.ring:
		case <-t.end:
			open = false
		}
		n := t.commits.Swap(0)
		if n == 0 {
			continue
		}
		t.notify(ctx)
		if !open {
			return
		}
		if unsettled += n; unsettled >= settleEvery {
			unsettled = 0
			t.settle(ctx)
		}
		select {
		case <-time.After(tellPause):
		case <-t.end:
		}
	}
}

// notify tells once. Where it fails, listeners find the change by looking.
func (t *teller) notify(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.store.callTimeout)
	defer cancel()
	if _, err := t.store.pool.Exec(ctx, `select pg_notify($1, '')`, t.store.channel()[0]); err != nil {
		t.store.log.WarnContext(ctx, "other processes were not told of a change", "error", err)
	}
}

func (t *teller) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.store.callTimeout)
	defer cancel()
	if err := t.store.tidy(ctx); err != nil {
		t.store.log.WarnContext(ctx, "the feed was not tidied", "error", err)
	}
}

// close ends the teller. Nothing is committed any more.
func (t *teller) close() {
	close(t.end)
	t.done.Wait()
}
