package sqlite

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"
)

// watchers wakes those who watch the feed: at once for changes of this process,
// and by looking now and then for those of others. It looks only while somebody
// watches.
type watchers struct {
	db     *sql.DB
	every  time.Duration
	logger *slog.Logger

	mu     sync.Mutex
	all    map[*watcher]struct{}
	closed bool
	// stop ends the looking; nil while nobody looks.
	stop context.CancelFunc
	done sync.WaitGroup
}

// watcher is one who watches.
type watcher struct {
	wake   chan struct{}
	forget func() bool
}

func newWatchers(db *sql.DB, every time.Duration, logger *slog.Logger) *watchers {
	return &watchers{db: db, every: every, logger: logger, all: map[*watcher]struct{}{}}
}

// add gives a channel that gets values until the context ends.
func (w *watchers) add(ctx context.Context) <-chan struct{} {
	one := &watcher{wake: make(chan struct{}, 1)}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		close(one.wake)
		return one.wake
	}
	w.all[one] = struct{}{}
	one.forget = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.remove(one)
	})
	if w.stop == nil {
		var looking context.Context
		looking, w.stop = context.WithCancel(context.Background())
		w.done.Go(func() { w.look(looking) })
	}
	return one.wake
}

// remove ends a watch. The caller has the lock.
func (w *watchers) remove(one *watcher) {
	if _, there := w.all[one]; !there {
		return
	}
	delete(w.all, one)
	close(one.wake)
	if len(w.all) == 0 && w.stop != nil {
		w.stop()
		w.stop = nil
	}
}

// notify wakes all.
func (w *watchers) notify() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for one := range w.all {
		select {
		case one.wake <- struct{}{}:
		default: // a value is waiting already
		}
	}
}

// close ends all watches and waits for the looking to end.
func (w *watchers) close() {
	w.mu.Lock()
	w.closed = true
	for one := range w.all {
		one.forget()
		w.remove(one)
	}
	w.mu.Unlock()
	w.done.Wait()
}

// look wakes all when data_version shows that a commit of another connection
// has come. Where it cannot look it wakes all now and then, to be sure.
func (w *watchers) look(ctx context.Context) {
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
			w.logger.Warn("cannot look for changes of other processes", "error", err)
		}
		// The first look knows nothing of what came since the watch began.
		if failed = err != nil; failed || version != last {
			last = version
			w.notify()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// dataVersion reads the number that changes with each commit of another
// connection. It is a connection's own, so that one is kept.
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
