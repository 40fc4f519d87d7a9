package driver

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/run"
)

// Background executes the jobs of machine runs for servers: a call returns immediately while
// its run continues here, or in another process with the same store.
type Background struct {
	*Service
	log *slog.Logger

	ctx      context.Context //nolint:containedctx // the life of the server, not of a call
	stop     context.CancelFunc
	work     sync.WaitGroup
	watchers watchers
	changes  changeFeed
}

// NewBackground returns a Background that drives at most a number of runs at a time, if it is
// not 0. Close it after use.
func NewBackground(s *Service, workers int, log *slog.Logger) *Background {
	ctx, stop := context.WithCancel(context.Background())
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	b := &Background{Service: s, log: log, ctx: ctx, stop: stop}
	if workers > 0 {
		b.work.Go(func() { b.runWorker(workers) })
	}
	return b
}

// Close interrupts the runs in progress, which other processes continue, and closes the
// service.
func (b *Background) Close() {
	b.stop()
	b.work.Wait()
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := b.Service.Close(ctx); err != nil {
		b.log.Warn("cannot record that this process drives no more machine runs", "error", err)
	}
}

// runWorker executes jobs until Close.
func (b *Background) runWorker(workers int) {
	const pause = time.Second
	for b.ctx.Err() == nil {
		err := b.instance.Work(b.ctx, workers, b.executeJob)
		if err != nil && b.ctx.Err() == nil {
			b.log.Warn("cannot execute machine runs", "error", err)
		}
		_ = ctxsleep.For(b.ctx, pause) // after an error; otherwise the context has ended
	}
}

// executeJob drives the run of a job until it rests. If the run could not be loaded because
// the store is not available, it tries again. All other errors are recorded: the run released
// its lease with a job for another attempt.
func (b *Background) executeJob(ctx context.Context, j run.Job) error {
	const first, longest = 100 * time.Millisecond, 5 * time.Second
	defer b.watchers.dropRecent(j.Run)
	for delay := first; ; delay = min(2*delay, longest) {
		_, err := b.Drive(ctx, j.User, j.Run, func(u Update) { b.watchers.sendUpdate(j.Run, u) })
		if err == nil || ctx.Err() != nil || guideway.ErrorCode(err) == guideway.CodeConflict || errors.Is(err, errLost) {
			return nil
		}
		b.log.Warn("a machine run was interrupted", "run", j.Run, "error", err)
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || errors.Is(err, errUntrusted) || delay == longest || ctxsleep.For(ctx, delay) != nil {
			return nil
		}
	}
}

// Wait returns the status of a run as soon as it pauses, waits or ends, or after the given
// patience. The run may be driven by another process.
func (b *Background) Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*Status, error) {
	changed, cancel := b.changes.watchRun(b, id)
	defer cancel()
	s, err := b.Status(ctx, c, id)
	t := time.NewTimer(max(patience, 0))
	defer t.Stop()
	for err == nil && s.Status == machineengine.StatusRunning && patience > 0 {
		select {
		case <-changed:
		case <-t.C:
			return b.Status(ctx, c, id)
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		s, err = b.Status(ctx, c, id)
	}
	return s, err
}

// changeFeed notifies the waiting calls of this process of changes of runs. While there are
// such calls, one reader reads the feed of the store for all of them.
type changeFeed struct {
	mu      sync.Mutex
	waiting map[chan struct{}]string
	stop    context.CancelFunc
}

// watchRun returns a channel that receives a value after a change of a run, until cancel is
// called.
func (f *changeFeed) watchRun(b *Background, id string) (changed <-chan struct{}, cancel func()) {
	c := make(chan struct{}, 1)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.waiting == nil {
		f.waiting = map[chan struct{}]string{}
	}
	f.waiting[c] = id
	if f.stop == nil {
		ctx, stop := context.WithCancel(b.ctx)
		f.stop = stop
		b.work.Go(func() { f.readFeed(ctx, b) })
	}
	return c, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if delete(f.waiting, c); len(f.waiting) == 0 && f.stop != nil {
			f.stop()
			f.stop = nil
		}
	}
}

// readFeed notifies the waiting calls until the context ends. If changes may have been
// missed, it notifies all of them.
func (f *changeFeed) readFeed(ctx context.Context, b *Background) {
	const page = 500
	signal := b.o.Journal.Watch(ctx)
	at, err := b.o.Journal.Latest(ctx)
	f.notify(func(string) bool { return true }) // changes before the first position
	for ctx.Err() == nil {
		var list []run.Change
		reset := false
		if err == nil {
			list, reset, err = b.o.Journal.Changes(ctx, at, page)
		}
		changed := map[string]bool{}
		for _, c := range list {
			at = c.Pos
			changed[c.ID] = true
		}
		f.notify(func(id string) bool { return reset || err != nil || changed[id] })
		if len(list) == page {
			continue
		}
		if err != nil {
			_ = ctxsleep.For(ctx, time.Second)
			at, err = b.o.Journal.Latest(ctx)
			continue
		}
		select {
		case _, open := <-signal:
			if !open {
				return
			}
		case <-ctx.Done():
		}
	}
}

// notify notifies the calls that wait for a run.
func (f *changeFeed) notify(concerns func(id string) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c, id := range f.waiting {
		if concerns(id) {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
}
