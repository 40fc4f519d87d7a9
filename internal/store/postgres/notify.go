package postgres

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// notifyInterval is the minimum time between two notifications of other processes. A
	// notification within each transaction would serialize all commits of the server; one
	// notification after several commits is cheap.
	notifyInterval = 5 * time.Millisecond
	// maintainEvery is the number of commits of a process after which it maintains the
	// feed, and the number of changes without a position from which they get positions.
	maintainEvery = 1000
)

// notifier does the work after a commit that the commit need not wait for: it notifies
// other processes and maintains the feed.
type notifier struct {
	store *Store
	// commits counts the commits since the last notification.
	commits atomic.Int64
	wakeup  chan struct{}
	closing chan struct{}
	done    sync.WaitGroup
	once    sync.Once
}

func newNotifier(s *Store) *notifier {
	return &notifier{store: s, wakeup: make(chan struct{}, 1), closing: make(chan struct{})}
}

// afterCommit wakes the notifier, whose notification also reaches this process.
func (s *Store) afterCommit() {
	s.notifier.commits.Add(1)
	s.notifier.once.Do(func() { s.notifier.done.Go(s.notifier.runLoop) })
	select {
	case s.notifier.wakeup <- struct{}{}:
	default:
	}
}

// runLoop sends notifications until the notifier is closed. If there were commits after the
// last notification, it then sends one more.
func (t *notifier) runLoop() {
	ctx := context.Background()
	var unsettled int64
	for open := true; open; {
		select {
		case <-t.wakeup:
		case <-t.closing:
			open = false
		}
		n := t.commits.Swap(0)
		if n == 0 {
			continue
		}
		t.notifyOthers(ctx)
		if !open {
			return
		}
		if unsettled += n; unsettled >= maintainEvery {
			unsettled = 0
			t.maintainFeed(ctx)
		}
		select {
		case <-time.After(notifyInterval):
		case <-t.closing:
		}
	}
}

// notifyOthers sends one notification. If it fails, listeners find the change by polling.
func (t *notifier) notifyOthers(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.store.callTimeout)
	defer cancel()
	if _, err := t.store.pool.Exec(ctx, `select pg_notify($1, '')`, t.store.channelName()[0]); err != nil {
		t.store.log.WarnContext(ctx, "cannot notify other processes of a change", "error", err)
	}
}

func (t *notifier) maintainFeed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, t.store.callTimeout)
	defer cancel()
	if err := t.store.maintainFeed(ctx); err != nil {
		t.store.log.WarnContext(ctx, "cannot maintain the feed of changes", "error", err)
	}
}

// close ends the notifier. It must be called after the last commit.
func (t *notifier) close() {
	close(t.closing)
	t.done.Wait()
}
