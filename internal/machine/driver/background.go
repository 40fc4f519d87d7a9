package driver

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// Background drives runs beside the calls that began them, for servers: a call
// answers at once, and the run goes on.
type Background struct {
	*Service
	log *slog.Logger

	ctx  context.Context //nolint:containedctx // the life of the server, not of a call
	stop context.CancelFunc
	work sync.WaitGroup
	mu   sync.Mutex
	// ends are closed when a drive ends, by run.
	ends     map[string]chan struct{}
	watchers watchers
}

// NewBackground makes a Background. Close releases it.
func NewBackground(s *Service, log *slog.Logger) *Background {
	ctx, stop := context.WithCancel(context.Background())
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &Background{Service: s, log: log, ctx: ctx, stop: stop, ends: map[string]chan struct{}{}}
}

// Close stops the runs that are being driven; they can be gone on with.
func (b *Background) Close() {
	b.stop()
	b.work.Wait()
}

// drive goes on with a run in the background; where it is being driven already,
// that does.
func (b *Background) drive(user, id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ends[id] != nil || b.ctx.Err() != nil {
		return
	}
	end := make(chan struct{})
	b.ends[id] = end
	b.work.Go(func() {
		err := b.Drive(b.ctx, user, id, func(u Update) { b.watchers.tell(id, u) })
		if err != nil && b.ctx.Err() == nil && guideway.ErrorCode(err) != guideway.CodeConflict && !errors.Is(err, errLost) {
			b.log.Warn("a run of a machine stopped; it can be gone on with", "run", id, "error", err)
		}
		b.mu.Lock()
		delete(b.ends, id)
		b.watchers.forget(id)
		b.mu.Unlock()
		close(end)
	})
}

// Start begins a run and drives it.
func (b *Background) Start(ctx context.Context, c run.Caller, r StartRequest) (*Status, error) {
	s, err := b.Service.Start(ctx, c, r)
	if err == nil {
		b.drive(c.User, s.RunID)
	}
	return s, err
}

// Input gives a run what it waits for, and drives it.
func (b *Background) Input(ctx context.Context, c run.Caller, id string, value json.RawMessage) (*Status, error) {
	s, err := b.Service.Input(ctx, c, id, value)
	if err == nil {
		b.drive(c.User, id)
	}
	return s, err
}

// Decide says what became of a call, and drives the run.
func (b *Background) Decide(ctx context.Context, c run.Caller, id string, decision machineengine.Decision, result string) (*Status, error) {
	s, err := b.Service.Decide(ctx, c, id, decision, result)
	if err == nil {
		b.drive(c.User, id)
	}
	return s, err
}

// Wait answers where a run stands as soon as it rests, or after so long. A run that
// was at work when its process ended is gone on with.
func (b *Background) Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*Status, error) {
	s, err := b.Status(ctx, c, id)
	if err != nil || s.Status != machineengine.StatusRunning {
		return s, err
	}
	b.drive(c.User, id)
	b.mu.Lock()
	end := b.ends[id]
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
