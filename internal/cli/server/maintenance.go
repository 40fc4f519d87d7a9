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
	// maintenanceDelay is the time between the first answer and the start-up tasks, because
	// more requests usually follow.
	maintenanceDelay = 2 * time.Second
	// maintenanceIdle is the time after which the tasks start if no request was answered.
	maintenanceIdle = time.Minute
	// MaintenanceInterval is the minimum time between full scans of the store. Without it,
	// each client would cause a scan, because each starts its own process.
	MaintenanceInterval = time.Hour
)

// Maintenance runs the start-up tasks once, in the background: it deletes expired
// checkpoints and repairs the effects of crashes.
type Maintenance struct {
	Log   *slog.Logger
	Run   func(context.Context) error
	Delay time.Duration
	// Idle, if not 0, is the time after which the tasks start if no request was answered.
	Idle time.Duration

	answered chan struct{}
	once     sync.Once
	cancel   context.CancelFunc
	done     sync.WaitGroup
}

// Start runs the tasks after the first answer, or after Idle. Close stops them.
func (u *Maintenance) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.answered, u.cancel = make(chan struct{}), cancel
	u.done.Go(func() {
		if !u.waitForAnswer(ctx) {
			return
		}
		if err := u.Run(ctx); err != nil && ctx.Err() == nil {
			u.Log.WarnContext(ctx, "checkpoint maintenance failed", "error", err)
		}
	})
}

// waitForAnswer waits until the tasks should start. It returns false if ctx ends first.
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

// NotifyAnswered reports that a request was answered.
func (u *Maintenance) NotifyAnswered() { u.once.Do(func() { close(u.answered) }) }

// Close stops the tasks and waits for them.
func (u *Maintenance) Close() {
	if u.cancel == nil {
		return // Start was not called
	}
	u.cancel()
	u.done.Wait()
}

// NotifyWriter calls OnWrite after each write.
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

// notifyAfterAnswer returns a handler that calls notify after each answer.
func notifyAfterAnswer(h http.Handler, notify func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer notify()
		h.ServeHTTP(w, r)
	})
}

// MaintainCheckpoints deletes the checkpoints of inactive sessions and, at most once per
// MaintenanceInterval, scans the store. If there are no checkpoints, it creates nothing.
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
		c.Log.InfoContext(ctx, "deleted the checkpoints of inactive sessions",
			"sessions", gone.Sessions, "checkpoints", gone.Checkpoints, "bytes", gone.Stored)
	}
}

// maintainedRecently reports whether any process has scanned the store within
// MaintenanceInterval. A time in the future means that the clock was set back.
func maintainedRecently(c *app.CheckpointStore, cfg *config.Config) bool {
	info, err := os.Stat(MaintenanceStampPath(cfg))
	if err != nil {
		return false
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < MaintenanceInterval
}

// MaintenanceStampPath returns the path of the file whose modification time is the time of
// the last scan.
func MaintenanceStampPath(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "checkpoints.surveyed")
}
