package cli

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/pause"
	"github.com/guideway-dev/guideway/internal/privatefile"
)

const (
	// upkeepDelay is how long what is done at start-up waits behind the first
	// answer: others follow it closely.
	upkeepDelay = 2 * time.Second
	// upkeepIdle is when it is done though nobody has asked anything.
	upkeepIdle = time.Minute
	// surveyEvery is how often all that is stored is looked through: each client
	// starts a process of its own.
	surveyEvery = time.Hour
)

// upkeep does once, beside the answers, what a start-up is the occasion for: old
// checkpoints go, and what a crash has left.
type upkeep struct {
	log   *slog.Logger
	keep  func(context.Context) error
	delay time.Duration
	// idle, if not 0, is when it begins without an answer.
	idle time.Duration

	first  chan struct{}
	once   sync.Once
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// start waits for the first answer. close ends it.
func (u *upkeep) start() {
	ctx, cancel := context.WithCancel(context.Background())
	u.first, u.cancel = make(chan struct{}), cancel
	u.done.Go(func() {
		if !u.wait(ctx) {
			return
		}
		if err := u.keep(ctx); err != nil && ctx.Err() == nil {
			u.log.WarnContext(ctx, "checkpoints could not be looked after", "error", err)
		}
	})
}

// wait says false where it ends first.
func (u *upkeep) wait(ctx context.Context) bool {
	var idle <-chan time.Time
	if u.idle > 0 {
		timer := time.NewTimer(u.idle)
		defer timer.Stop()
		idle = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-idle:
		return true
	case <-u.first:
	}
	return pause.For(ctx, u.delay) == nil
}

// answered tells that an answer was given.
func (u *upkeep) answered() { u.once.Do(func() { close(u.first) }) }

// close ends what is under way, and waits for that.
func (u *upkeep) close() {
	if u.cancel == nil {
		return // it was not started
	}
	u.cancel()
	u.done.Wait()
}

// afterWrite is an output that tells of what is written.
type afterWrite struct {
	io.Writer
	tell func()
}

// Write implements io.Writer.
func (a afterWrite) Write(p []byte) (int, error) {
	n, err := a.Writer.Write(p)
	a.tell()
	return n, err
}

// afterAnswer is a handler that tells of what it has answered.
func afterAnswer(h http.Handler, tell func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer tell()
		h.ServeHTTP(w, r)
	})
}

// keepCheckpoints retires sessions without activity and, once in a while, looks
// through all that is stored. Where there are no checkpoints it makes nothing.
func (c *checkpointStore) keepCheckpoints(ctx context.Context) error {
	cfg := c.store.cfg
	if cfg.Checkpoints.ReadOnly || !hasCheckpoints(cfg) {
		return nil
	}
	opened, err := c.open(ctx)
	if err != nil {
		return err
	}
	if c.surveyedLately(cfg) {
		if cfg.Checkpoints.Retention <= 0 {
			return nil
		}
		gone, err := opened.Cleanup(ctx, checkpoint.CleanupRequest{OlderThan: cfg.Checkpoints.Retention})
		c.tellRetired(ctx, gone)
		return err
	}
	kept, err := opened.Maintain(ctx)
	c.tellRetired(ctx, kept.Retired)
	if err != nil {
		return err
	}
	return privatefile.Replace(surveyedPath(cfg), "")
}

func (c *checkpointStore) tellRetired(ctx context.Context, gone checkpoint.Cleaned) {
	if gone.Checkpoints > 0 {
		c.log.InfoContext(ctx, "checkpoints of sessions without activity are gone",
			"sessions", gone.Sessions, "checkpoints", gone.Checkpoints, "bytes", gone.Stored)
	}
}

// surveyedLately says whether any process has looked through everything a short
// while ago. A time to come is that of a clock that was set back since.
func (c *checkpointStore) surveyedLately(cfg *config.Config) bool {
	info, err := os.Stat(surveyedPath(cfg))
	if err != nil {
		return false
	}
	age := time.Since(info.ModTime())
	return age >= 0 && age < surveyEvery
}

// surveyedPath is the file whose age that is.
func surveyedPath(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "checkpoints.surveyed")
}
