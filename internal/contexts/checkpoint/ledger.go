package checkpoint

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// ledgerEvery is how often what has come together is written.
	ledgerEvery = time.Second
	// ledgerMost is how much may come together before it is written at once.
	ledgerMost = 200
	// touchEvery is how exact the time of the last activity is: a line that is
	// loaded again and again is not written again and again.
	touchEvery = time.Minute
)

// ledger writes what loads leave behind, beside the answers: entries of the audit
// log, and that a line was touched. What it has not written yet ends with a
// process that is killed.
type ledger struct {
	index    Index
	log      *slog.Logger
	readOnly bool

	mu      sync.Mutex
	entries []Entry
	touches map[LineKey]time.Time
	touched map[LineKey]time.Time
	closed  bool

	wake chan struct{}
	stop chan struct{}
	done sync.WaitGroup
}

func newLedger(index Index, log *slog.Logger, readOnly bool) *ledger {
	l := &ledger{
		index: index, log: log, readOnly: readOnly,
		touches: map[LineKey]time.Time{}, touched: map[LineKey]time.Time{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	l.done.Go(l.work)
	return l
}

// note remembers what is to be written.
func (l *ledger) note(e Entry, touch bool) {
	if l.readOnly {
		return // there the log has it
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	l.entries = append(l.entries, e)
	if last := l.touched[e.LineKey]; touch && (e.At.Sub(last) >= touchEvery || e.At.Before(last)) {
		if len(l.touched) > 10_000 {
			clear(l.touched)
		}
		l.touches[e.LineKey], l.touched[e.LineKey] = e.At, e.At
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// work writes a while after something came, so that what comes together is
// written together.
func (l *ledger) work() {
	for {
		select {
		case <-l.stop:
			l.flush()
			return
		case <-l.wake:
		}
		l.mu.Lock()
		many := len(l.entries) >= ledgerMost
		l.mu.Unlock()
		if !many {
			timer := time.NewTimer(ledgerEvery)
			select {
			case <-l.stop:
			case <-timer.C:
			}
			timer.Stop()
		}
		l.flush()
	}
}

func (l *ledger) flush() {
	l.mu.Lock()
	entries, touches := l.entries, l.touches
	l.entries, l.touches = nil, map[LineKey]time.Time{}
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if len(entries) > 0 {
		if err := l.index.Note(ctx, entries); err != nil {
			l.log.WarnContext(ctx, "loads of checkpoints could not be noted in the audit log", "entries", len(entries), "error", err)
		}
	}
	for key, at := range touches {
		if err := l.index.Apply(ctx, Change{Line: key, At: at, Touch: true}); err != nil {
			l.log.WarnContext(ctx, "the last activity of a session could not be noted", "session", key.Session, "error", err)
		}
	}
}

func (l *ledger) close() {
	l.mu.Lock()
	already := l.closed
	l.closed = true
	l.mu.Unlock()
	if !already {
		close(l.stop)
	}
	l.done.Wait()
}
