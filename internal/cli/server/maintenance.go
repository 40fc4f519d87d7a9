package server

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	// maintenanceDelay is how long what is done at start-up waits behind the first
	// answer: others follow it closely.
	maintenanceDelay = 2 * time.Second
	// maintenanceIdle is when it is done though nobody has asked anything.
	maintenanceIdle = time.Minute
	// MaintenanceInterval is how often all that is stored is looked through: each client
	// starts a process of its own.
	MaintenanceInterval = time.Hour
)

// Maintenance does once, beside the answers, what a start-up is the occasion for: old
// checkpoints go, and what a crash has left.
type Maintenance struct {
	Log   *slog.Logger
	Run   func(context.Context) error
	Delay time.Duration
	// idle, if not 0, is when it begins without an answer.
	Idle time.Duration

	answered chan struct{}
	once     sync.Once
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// Start waits for the first answer. close ends it.
func (u *Maintenance) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.answered, u.cancel = make(chan struct{}), cancel
	u.done.Go(func() {
		if !u.waitForAnswer(ctx) {
			return
		}
		if err := u.Run(ctx); err != nil && ctx.Err() == nil {
			u.Log.WarnContext(ctx, "checkpoints could not be looked after", "error", err)
		}
	})
}

// waitForAnswer says false where it ends first.
func (u *Maintenance) waitForAnswer(ctx context.Context) bool {
	var idle <-chan time.Time
	if u.Idle > 0 {
		timer := time.NewTimer(u.Idle)
		defer timer.Stop()
		idle = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-idle:
		return true
	case <-u.answered:
	}
	return ctxsleep.For(ctx, u.Delay) == nil
}

// NotifyAnswered tells that an answer was given.
func (u *Maintenance) NotifyAnswered() { u.once.Do(func() { close(u.answered) }) }

// Close ends what is under way, and waits for that.
func (u *Maintenance) Close() {
	if u.cancel == nil {
		return // it was not started
	}
	u.cancel()
	u.done.Wait()
}

// NotifyWriter is an output that tells of what is written.
type NotifyWriter struct {
	io.Writer
	OnWrite func()
}

// Write implements io.Writer.
func (a NotifyWriter) Write(p []byte) (int, error) {
	n, err := a.Writer.Write(p)
	a.OnWrite()
	return n, err
}

// notifyAfterAnswer is a handler that tells of what it has answered.
func notifyAfterAnswer(h http.Handler, tell func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer tell()
		h.ServeHTTP(w, r)
	})
}

// MaintainCheckpoints retires sessions without activity and, once in a while, looks
// through all that is stored. Where there are no checkpoints it makes nothing.
func MaintainCheckpoints(ctx context.Context, c *app.CheckpointStore) error {
	cfg := c.Store.Cfg
	if cfg.Checkpoints.ReadOnly || !app.CheckpointsExist(cfg) {
		return nil
	}
	opened, err := c.Open(ctx)
	if err != nil {
		return err
	}
	if maintainedRecently(c, cfg) {
		if cfg.Checkpoints.Retention <= 0 {
			return nil
		}
		gone, err := opened.Cleanup(ctx, checkpoint.CleanupRequest{OlderThan: cfg.Checkpoints.Retention})
		logRetired(ctx, c, gone)
		return err
	}
	kept, err := opened.Maintain(ctx)
	logRetired(ctx, c, kept.Retired)
	if err != nil {
		return err
	}
	return atomicfile.Replace(MaintenanceStampPath(cfg), "")
}

func logRetired(ctx context.Context, c *app.CheckpointStore, gone checkpoint.Cleaned) {
	if gone.Checkpoints > 0 {
		c.Log.InfoContext(ctx, "checkpoints of sessions without activity are gone",
			"sessions", gone.Sessions, "checkpoints", gone.Checkpoints, "bytes", gone.Stored)
	}
}

// maintainedRecently says whether any process has looked through everything a short
// while ago. A time to come is that of a clock that was set back since.
func maintainedRecently(c *app.CheckpointStore, cfg *config.Config) bool {
	info, err := os.Stat(MaintenanceStampPath(cfg))
	if err != nil {
		return false
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < MaintenanceInterval
}

// MaintenanceStampPath is the file whose age that is.
func MaintenanceStampPath(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "checkpoints.surveyed")
}
