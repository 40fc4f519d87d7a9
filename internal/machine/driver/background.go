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

// executeJob drives the run of a job until it rests. The job has served its purpose when the
// run rests, when another process drives it, or when its lease was released with another job.
// If the store is not available before that, or the process ends, it returns an error, so
// that the job is executed again.
func (b *Background) executeJob(ctx context.Context, j run.Job) error {
	const first, longest = 100 * time.Millisecond, 5 * time.Second
	defer b.watchers.dropRecent(j.Run)
	for delay := first; ; delay = min(2*delay, longest) {
		_, err := b.Drive(ctx, j.User, j.Run, func(u Update) { b.watchers.sendUpdate(j.Run, u) })
		var released releasedError
		hasJob := errors.As(err, &released)
		switch {
		case err == nil, guideway.ErrorCode(err) == guideway.CodeConflict, errors.Is(err, errLost), lacksTools(err), hasJob && ctx.Err() != nil:
			return nil
		case ctx.Err() != nil:
			return err
		}
		b.log.Warn("a machine run was interrupted", "run", j.Run, "error", err)
		if hasJob || guideway.ErrorCode(err) != guideway.CodeUnavailable || errors.Is(err, errUntrusted) {
			return nil
		}
		if delay == longest || ctxsleep.For(ctx, delay) != nil {
			return err
		}
	}
}

// Wait returns the status of a run as soon as it pauses, waits or ends, or after the given
// patience. The run may be driven by another process.
func (b *Background) Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*Status, error) {
	if patience <= 0 {
		return b.Status(ctx, c, id)
	}
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	signal := b.o.Journal.Watch(waiting)
	at, err := b.o.Journal.Latest(waiting)
	for err == nil && waiting.Err() == nil {
		s, err := b.Status(ctx, c, id)
		if err != nil || s.Status != machineengine.StatusRunning {
			return s, err
		}
		at, err = b.awaitChange(waiting, signal, id, at)
		if err != nil && waiting.Err() == nil {
			return nil, err
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return b.Status(ctx, c, id)
}

// awaitChange waits for a change of a run after a position of the feed, and returns the
// position of the last change. It also returns when changes may have been missed.
func (b *Background) awaitChange(ctx context.Context, signal <-chan struct{}, id string, at int64) (int64, error) {
	const page = 500
	for {
		list, reset, err := b.o.Journal.Changes(ctx, at, page)
		changed := reset
		if reset && len(list) == 0 { // the feed is new
			at = 0
		}
		for _, c := range list {
			at, changed = c.Pos, changed || c.ID == id
		}
		if err != nil || changed {
			return at, err
		}
		if len(list) == page {
			continue
		}
		select {
		case <-ctx.Done():
			return at, ctx.Err()
		case _, open := <-signal:
			if !open {
				return at, ctxsleep.For(ctx, time.Second) // the store does not watch
			}
		}
	}
}
