package sqlite

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"
)

// watchers notifies the watchers of the feed: immediately for changes of this process, and
// by polling for changes of others. It polls only while there is a watcher.
type watchers struct {
	db     *sql.DB
	every  time.Duration
	logger *slog.Logger

	mu       sync.Mutex
	watching map[*watcher]struct{}
	closed   bool
	// stop ends the polling. It is nil if nothing polls.
	stop context.CancelFunc
	done sync.WaitGroup
}

// watcher is one watch of the feed.
type watcher struct {
	wake   chan struct{}
	forget func() bool
}

func newWatchers(db *sql.DB, every time.Duration, logger *slog.Logger) *watchers {
	return &watchers{db: db, every: every, logger: logger, watching: map[*watcher]struct{}{}}
}

// addWatcher returns a channel that receives values until the context ends.
func (w *watchers) addWatcher(ctx context.Context) <-chan struct{} {
	one := &watcher{wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(one.wake)
		return one.wake
	}
	w.watching[one] = struct{}{}
	one.forget = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.removeWatcher(one)
	})
	if w.stop == nil {
		var looking context.Context
		looking, w.stop = context.WithCancel(context.Background())
		w.done.Go(func() { w.pollChanges(looking) })
	}
	return one.wake
}

// removeWatcher ends a watch. The caller holds the mutex.
func (w *watchers) removeWatcher(one *watcher) {
	if _, there := w.watching[one]; !there {
		return
	}
	delete(w.watching, one)
	close(one.wake)
	if len(w.watching) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// notifyAll notifies all watchers.
func (w *watchers) notifyAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.watching {
		select {
		case one.wake <- struct{}{}:
		default: // a notification is already pending
		}
	}
}

// closeAll ends all watches and waits for the polling to end.
func (w *watchers) closeAll() {
	w.mu.Lock()
	w.closed = true
	for one := range w.watching {
		one.forget()
		w.removeWatcher(one)
	}
	w.mu.Unlock()
	w.done.Wait()
}

// pollChanges notifies all watchers if data_version shows a commit of another connection.
// If reading it fails, pollChanges notifies them at each interval.
func (w *watchers) pollChanges(ctx context.Context) {
	ticker := time.NewTicker(w.every)
	defer ticker.Stop()
	var conn *sql.Conn
	defer func() {
		if conn != nil {
			_ = conn.Close()
		}
	}()
	last, failed := int64(-1), false
	for {
		version, err := dataVersion(ctx, w.db, &conn)
		if ctx.Err() != nil {
			return
		}
		if err != nil && !failed {
			w.logger.Warn("cannot poll for changes of other processes", "error", err)
		}
		// The first poll cannot know about changes between the beginning of the watch and
		// the poll.
		if failed = err != nil; failed || version != last {
			last = version
			w.notifyAll()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// dataVersion reads a number that changes with each commit of another connection. It is
// specific to a connection, so conn is kept open.
func dataVersion(ctx context.Context, db *sql.DB, conn **sql.Conn) (version int64, err error) {
	if *conn == nil {
		if *conn, err = db.Conn(ctx); err != nil {
			*conn = nil
			return 0, err
		}
	}
	if err = (*conn).QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version); err != nil {
		_ = (*conn).Close()
		*conn = nil
	}
	return version, err
}
