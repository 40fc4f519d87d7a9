package checkpoint

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// flushInterval is the maximum time that an entry waits to be written.
	flushInterval = time.Second
	// flushLimit is the number of pending entries that triggers a write.
	flushLimit = 200
	// touchEvery is the minimum time between two writes of a series' last activity, so that
	// repeated loads of the series do not write it each time.
	touchEvery = time.Minute
)

// activityLog writes entries of the audit log and the time of the last activity of a series
// in the background. Pending entries are lost if the process is killed.
type activityLog struct {
	index    Index
	log      *slog.Logger
	readOnly bool

	mu      sync.Mutex
	entries []Entry
	touches map[SeriesKey]time.Time
	touched map[SeriesKey]time.Time
	closed  bool

	wake chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

func newActivityLog(index Index, log *slog.Logger, readOnly bool) *activityLog {
	l := &activityLog{
		index: index, log: log, readOnly: readOnly,
		touches: map[SeriesKey]time.Time{}, touched: map[SeriesKey]time.Time{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	l.done.Go(l.runLoop)
	return l
}

// addEntry queues an entry. With touch it also updates the last activity of the series, but
// not more often than touchEvery.
func (l *activityLog) addEntry(e Entry, touch bool) {
	if l.readOnly {
		return // nothing is written in read-only mode
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.entries = append(l.entries, e)
	if last := l.touched[e.SeriesKey]; touch && (e.At.Sub(last) >= touchEvery || e.At.Before(last)) {
		if len(l.touched) > 10_000 {
			clear(l.touched)
		}
		l.touches[e.SeriesKey], l.touched[e.SeriesKey] = e.At, e.At
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// runLoop writes pending entries after a delay, so that several are written together.
func (l *activityLog) runLoop() {
	for {
		select {
		case <-l.stop:
			l.flushEntries()
			return
		case <-l.wake:
		}
		l.mu.Lock()
		many := len(l.entries) >= flushLimit
		l.mu.Unlock()
		if !many {
			timer := time.NewTimer(flushInterval)
			select {
			case <-l.stop:
			case <-timer.C:
			}
			timer.Stop()
		}
		l.flushEntries()
	}
}

func (l *activityLog) flushEntries() {
	l.mu.Lock()
	entries, touches := l.entries, l.touches
	l.entries, l.touches = nil, map[SeriesKey]time.Time{}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if len(entries) > 0 {
		if err := l.index.Note(ctx, entries); err != nil {
			l.log.WarnContext(ctx, "entries could not be written to the audit log", "entries", len(entries), "error", err)
		}
	}
	for key, at := range touches {
		if err := l.index.Apply(ctx, Change{Series: key, At: at, Touch: true}); err != nil {
			l.log.WarnContext(ctx, "the time of the last activity of a session could not be updated", "session", key.Session, "error", err)
		}
	}
}

func (l *activityLog) closeLog() {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.mu.Unlock()
	if !already {
		close(l.stop)
	}
	l.done.Wait()
}
