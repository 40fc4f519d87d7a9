package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"

	"github.com/jackc/pgx/v5"
)

// lookEvery is how often the listener looks for changes that nobody told of: a
// process can end between its commit and its word of it.
const lookEvery = 2 * time.Second

// Watch implements run.Feed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.hub.watch(ctx) }

// hub wakes the watchers of a process. While there are any it has a connection
// of its own that listens for the changes of other processes.
type hub struct {
	store *Store

	mu       sync.Mutex
	watchers map[chan struct{}]struct{}
	stop     context.CancelFunc // of the listener; nil where none runs
	closed   bool
	running  sync.WaitGroup
}

func newHub(s *Store) *hub { return &hub{store: s, watchers: map[chan struct{}]struct{}{}} }

func (h *hub) watch(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	h.watchers[ch] = struct{}{}
	if h.stop == nil {
		// The listener serves all watchers, so it ends with the last of them.
		listening, stop := context.WithCancel(context.WithoutCancel(ctx))
		h.stop = stop
		h.running.Go(func() { h.listen(listening) })
	}
	context.AfterFunc(ctx, func() { h.leave(ch) })
	return ch
}

// leave ends a watch.
func (h *hub) leave(ch chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, there := h.watchers[ch]; !there {
		return
	}
	delete(h.watchers, ch)
	close(ch)
	if len(h.watchers) == 0 {
		h.stop()
		h.stop = nil
	}
}

// wake gives every watcher a value, unless one waits for it already.
func (h *hub) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// close ends all watches and the listener.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	for ch := range h.watchers {
		delete(h.watchers, ch)
		close(ch)
	}
	if h.stop != nil {
		h.stop()
		h.stop = nil
	}
	h.mu.Unlock()
	h.running.Wait()
}

// listen wakes the watchers whenever a process tells of changes, until the
// context ends. It connects again when the connection is lost, and wakes all
// then: what happened meanwhile it was not told.
func (h *hub) listen(ctx context.Context) {
	delay := firstPause
	for ctx.Err() == nil {
		heard, err := h.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			delay = firstPause
		}
		h.store.log.WarnContext(ctx, "the connection that listens for changes is lost", "error", err, "again", delay)
		if ctxsleep.For(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, 10*longPause)
	}
}

// hear listens on one connection until it is lost; heard says that it was there.
func (h *hub) hear(ctx context.Context) (heard bool, err error) {
	s := h.store
	c, err := pgx.ConnectConfig(ctx, s.pool.Config().ConnConfig)
	if err != nil {
		return false, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = c.Close(closing)
	}()
	if err := setUp(ctx, c, s.schema); err != nil {
		return false, err
	}
	if _, err := c.Exec(ctx, `listen `+s.channel().Sanitize()); err != nil {
		return false, err
	}
	seen := int64(-1)
	for {
		newest, err := newestChange(ctx, c)
		if err != nil {
			return true, err
		}
		if newest != seen {
			h.wake()
			seen = newest
		}
		if err := h.await(ctx, c); err != nil {
			return true, err
		}
	}
}

// await wakes the watchers at every notification, until there was none for a
// while.
func (h *hub) await(ctx context.Context, c *pgx.Conn) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, lookEvery)
		_, err := c.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			h.wake()
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !c.IsClosed():
			return nil
		default:
			return err
		}
	}
}

// newestChange is a number that changes with the feed: positions are given to
// changes in the order of their numbers in the outbox, each once.
func newestChange(ctx context.Context, c *pgx.Conn) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var n int64
	err := c.QueryRow(ctx, `select last + (select count(*) from outbox) from feed`).Scan(&n)
	return n, err
}

// channel is what processes on the same tables tell each other on.
func (s *Store) channel() pgx.Identifier { return pgx.Identifier{"guideway " + s.schema} }
