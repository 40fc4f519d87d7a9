package driver

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Background drives runs in the background for servers: a call returns immediately while
// its run continues.
type Background struct {
	*Service
	log *slog.Logger

	ctx  context.Context //nolint:containedctx // the life of the server, not of a call
	stop context.CancelFunc
	work sync.WaitGroup
	mu   sync.Mutex
	// ends maps a run to the channel that is closed when its drive ends.
	ends     map[string]chan struct{}
	watchers watchers
}

// NewBackground returns a Background. Close it after use.
func NewBackground(s *Service, log *slog.Logger) *Background {
	ctx, stop := context.WithCancel(context.Background())
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Background{Service: s, log: log, ctx: ctx, stop: stop, ends: map[string]chan struct{}{}}
}

// Close interrupts the runs in progress. The runs can be resumed.
func (b *Background) Close() {
	b.stop()
	b.work.Wait()
}

// driveInBackground drives a run in the background, unless this process already drives it.
func (b *Background) driveInBackground(user, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends[id] != nil || b.ctx.Err() != nil {
		return
	}
	end := make(chan struct{})
	b.ends[id] = end
	b.work.Go(func() {
		err := b.Drive(b.ctx, user, id, func(u Update) { b.watchers.sendUpdate(id, u) })
		if err != nil && b.ctx.Err() == nil && guideway.ErrorCode(err) != guideway.CodeConflict && !errors.Is(err, errLost) {
			b.log.Warn("a machine run stopped; guideway machine resume continues the run", "run", id, "error", err)
		}
		b.mu.Lock()
		delete(b.ends, id)
		b.watchers.dropRecent(id)
		b.mu.Unlock()
		close(end)
	})
}

// driveAfter drives a run after a command that succeeded, and the runs that wait for it. It
// returns the result of the command. If id is empty, it drives the run in the result.
func (b *Background) driveAfter(ctx context.Context, c run.Caller, id string, s *Status, err error) (*Status, error) {
	if err != nil {
		return s, err
	}
	outermost, err := b.OutermostRun(ctx, c.User, cmp.Or(id, s.RunID))
	if err != nil {
		return nil, err
	}
	b.driveInBackground(c.User, outermost)
	return s, nil
}

// Start starts a run and drives it.
func (b *Background) Start(ctx context.Context, c run.Caller, r StartRequest) (*Status, error) {
	s, err := b.Service.Start(ctx, c, r)
	return b.driveAfter(ctx, c, "", s, err)
}

// Input answers the input request of a run and drives the run.
func (b *Background) Input(ctx context.Context, c run.Caller, id string, answer InputAnswer) (*Status, error) {
	s, err := b.Service.Input(ctx, c, id, answer)
	return b.driveAfter(ctx, c, id, s, err)
}

// Decide sets the outcome of a call and drives the run.
func (b *Background) Decide(ctx context.Context, c run.Caller, id string, answer OutcomeAnswer) (*Status, error) {
	s, err := b.Service.Decide(ctx, c, id, answer)
	return b.driveAfter(ctx, c, id, s, err)
}

// Cancel ends a run, and drives the run that waits for it.
func (b *Background) Cancel(ctx context.Context, c run.Caller, id, reason string) (*Status, error) {
	s, err := b.Service.Cancel(ctx, c, id, reason)
	return b.driveAfter(ctx, c, id, s, err)
}

// Wait returns the status of a run as soon as it pauses, waits or ends, or after the given
// patience. It continues a run whose process ended.
func (b *Background) Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*Status, error) {
	s, err := b.Status(ctx, c, id)
	if err != nil || s.Status != machineengine.StatusRunning {
		return s, err
	}
	outermost, err := b.OutermostRun(ctx, c.User, id)
	if err != nil {
		return nil, err
	}
	b.driveInBackground(c.User, outermost)
	b.mu.Lock()
	end := b.ends[outermost]
	b.mu.Unlock()
	if end == nil || patience <= 0 {
		return b.Status(ctx, c, id)
	}
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-end:
	case <-t.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return b.Status(ctx, c, id)
}
