package postgres

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"

	"github.com/jackc/pgx/v5"
)

// pollInterval is how often the listener polls for changes without a notification: a
// process can end between its commit and its notification.
const pollInterval = 2 * time.Second

// Watch implements run.Feed.
func (s *Store) Watch(ctx context.Context) <-chan struct{} { return s.hub.addWatcher(ctx) }

// hub notifies the watchers of a process. While there are watchers, it has a separate
// connection that listens for changes of other processes.
type hub struct {
	store *Store

	mu       sync.Mutex
	watchers map[chan struct{}]struct{}
	stop     context.CancelFunc // ends the listener; nil if none runs
	closed   bool
	running  sync.WaitGroup
}

func newHub(s *Store) *hub { return &hub{store: s, watchers: map[chan struct{}]struct{}{}} }

func (h *hub) addWatcher(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	h.watchers[ch] = struct{}{}
	if h.stop == nil {
		// The listener serves all watchers, so it ends after the last of them.
		listening, stop := context.WithCancel(context.WithoutCancel(ctx))
		h.stop = stop
		h.running.Go(func() { h.runListener(listening) })
	}
	context.AfterFunc(ctx, func() { h.removeWatcher(ch) })
	return ch
}

// removeWatcher ends a watch.
func (h *hub) removeWatcher(ch chan struct{}) {
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

// notifyAll sends a value to every watcher that has none pending.
func (h *hub) notifyAll() {
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

// runListener notifies the watchers whenever a process reports changes, until the context
// ends. If the connection is lost, it reconnects and notifies all watchers, because
// notifications may have been missed.
func (h *hub) runListener(ctx context.Context) {
	delay := firstPause
	for ctx.Err() == nil {
		heard, err := h.listenUntilLost(ctx)
		if ctx.Err() != nil {
			return
		}
		if heard {
			delay = firstPause
		}
		h.store.log.WarnContext(ctx, "lost the connection that listens for changes", "error", err, "retry_in", delay)
		if ctxsleep.For(ctx, delay) != nil {
			return
		}
		delay = min(2*delay, 10*maxPause)
	}
}

// listenUntilLost listens on one connection until it is lost. heard reports whether it was
// established.
func (h *hub) listenUntilLost(ctx context.Context) (heard bool, err error) {
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
	if err := setUpConn(ctx, c, s.schema); err != nil {
		return false, err
	}
	if _, err := c.Exec(ctx, `listen `+s.channelName().Sanitize()); err != nil {
		return false, err
	}
	seen := int64(-1)
	for {
		newest, err := newestChange(ctx, c)
		if err != nil {
			return true, err
		}
		if newest != seen {
			h.notifyAll()
			seen = newest
		}
		if err := h.waitForNotifications(ctx, c); err != nil {
			return true, err
		}
	}
}

// waitForNotifications notifies the watchers at every notification, and returns after an
// interval without any.
func (h *hub) waitForNotifications(ctx context.Context, c *pgx.Conn) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, pollInterval)
		_, err := c.WaitForNotification(quiet)
		cancel()
		switch {
		case err == nil:
			h.notifyAll()
		case ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && !c.IsClosed():
			return nil
		default:
			return err
		}
	}
}

// newestChange returns a number that changes with the feed: changes get their positions in
// the order of their numbers in the outbox, each once.
func newestChange(ctx context.Context, c *pgx.Conn) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var n int64
	err := c.QueryRow(ctx, `select last + (select count(*) from outbox) from feed`).Scan(&n)
	return n, err
}

// channelName returns the channel on which processes with the same tables notify each
// other.
func (s *Store) channelName() pgx.Identifier { return pgx.Identifier{"guideway " + s.schema} }
