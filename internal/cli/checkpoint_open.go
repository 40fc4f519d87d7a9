package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/journal/checkpoints"
)

// checkpointStore opens the checkpoints when the first call needs them, on the store
// that the runs are in. That they cannot be opened is the answer to that call; the
// next one tries again.
type checkpointStore struct {
	store *store
	key   masterKey
	now   func() time.Time
	log   *slog.Logger
	// readOnly has them read only, whatever the settings say.
	readOnly bool

	// turn is held by who looks at what follows, or changes it.
	turn   chan struct{}
	opened *checkpoints.Checkpoints
	closed bool
}

// newCheckpointStore makes one that is opened later. It must be closed before the
// store is.
func (a *app) newCheckpointStore(s *store, key masterKey) *checkpointStore {
	return &checkpointStore{store: s, key: key, now: a.host.Now, log: s.log, turn: make(chan struct{}, 1)}
}

// open gives the checkpoints. Calls that come while they are being opened wait for
// it, each as long as its own context lasts.
func (c *checkpointStore) open(ctx context.Context) (*checkpoints.Checkpoints, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, guideway.Errorf(guideway.CodeUnavailable, "wait for the checkpoints to be opened: %w", ctx.Err())
	}
	if c.opened != nil {
		return c.opened, nil
	}
	if c.closed {
		return nil, context.Canceled
	}
	options, err := c.options()
	if err != nil {
		return nil, &checkpoints.Locked{Cause: err}
	}
	opened, err := checkpoints.Open(ctx, options)
	if err != nil {
		return nil, notOpened(err)
	}
	c.opened = opened
	return opened, nil
}

// openListed gives the checkpoints to be listed and counted, which needs no master
// key: where that cannot be had nothing else is possible, and all else is refused with
// the reason. done must be called.
func (c *checkpointStore) openListed(ctx context.Context) (opened *checkpoints.Checkpoints, done func(), err error) {
	opened, err = c.open(ctx)
	var locked *checkpoints.Locked
	if !errors.As(err, &locked) {
		return opened, func() {}, err
	}
	options, _ := c.options() // it may be this that has no key
	opened, err = checkpoints.Listed(ctx, options, locked.Cause)
	if err != nil {
		return nil, nil, notOpened(err)
	}
	return opened, func() {
		if err := opened.Close(); err != nil {
			c.log.Warn("the checkpoints did not close", "error", err)
		}
	}, nil
}

// where says what keeps the checkpoints; before they are opened, what is to.
func (c *checkpointStore) where() checkpoint.Store {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	switch cfg := c.store.cfg; {
	case c.opened != nil:
		return c.opened.Store()
	case cfg.UsesPostgres():
		return checkpoint.Store{Mode: checkpoint.ModePostgres}
	case cfg.Store == config.StoreFiles:
		return checkpoint.Store{Mode: checkpoint.ModeFiles}
	default:
		return checkpoint.Store{Mode: checkpoint.ModeSQLite}
	}
}

func (c *checkpointStore) options() (checkpoints.Options, error) {
	cfg := c.store.cfg
	source, err := c.key.source(cfg)
	return checkpoints.Options{
		DataDir: cfg.DataDir, Store: cfg.Store, Journal: c.journal, BlobDir: cfg.Checkpoints.Dir, Program: version(),
		Limits: checkpointLimits(cfg.Checkpoints), Encryption: source, ReadOnly: c.readOnly || cfg.Checkpoints.ReadOnly,
		Active: c.isActive, Now: c.now, Logger: c.log,
	}, err
}

// journal shares the store of the runs.
func (c *checkpointStore) journal(ctx context.Context) (checkpoint.Index, error) {
	journal, err := c.store.openKeeper(ctx)
	if err != nil {
		return nil, err
	}
	index, ok := journal.(checkpoint.Index)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInternal, "a %T keeps no checkpoints", journal)
	}
	return index, nil
}

// isActive says whether a run is under way.
func (c *checkpointStore) isActive(ctx context.Context, id string) (bool, error) {
	journal, err := c.store.openKeeper(ctx)
	if err != nil {
		return false, err
	}
	r, err := journal.Run(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return false, nil
	}
	return r.Status == guide.StatusRunning || r.Status == guide.StatusWaiting, err
}

// close closes what was opened. Calls that are under way end first.
func (c *checkpointStore) close() {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	c.closed = true
	if c.opened == nil {
		return
	}
	if err := c.opened.Close(); err != nil {
		c.log.Warn("the checkpoints did not close", "error", err)
	}
	c.opened = nil
}

// checkpointLimits are the limits of the settings, where 0 does not bound.
func checkpointLimits(c config.Checkpoints) checkpoint.Limits {
	return checkpoint.Limits{
		PerLine: bound(c.Max), LineBytes: bound(c.MaxSession), CheckpointBytes: bound(c.MaxSize), RawBytes: bound(c.MaxContext),
		TotalBytes: bound(c.MaxTotal), Warn: float64(c.WarnAt) / 100, Clean: float64(c.CleanAt) / 100, Retention: bound(c.Retention),
	}
}

// bound says "no limit" as limits do.
func bound[T int | int64 | time.Duration](n T) T {
	if n <= 0 {
		return -1
	}
	return n
}

// checkpointDesk is what a command on checkpoints works with.
type checkpointDesk struct {
	checkpoints *checkpoints.Checkpoints
	person      guideway.Principal
	// here is the id of the project of the working directory.
	here string
}

// withCheckpoints opens the checkpoints for one command. The passphrase of an
// encryption may be asked for.
func (a *app) withCheckpoints(ctx context.Context, do func(context.Context, *checkpointDesk) error) error {
	return a.onCheckpoints(ctx, masterKey{host: a.host, asks: true}, do)
}

func (a *app) onCheckpoints(ctx context.Context, key masterKey, do func(context.Context, *checkpointDesk) error) error {
	return a.onCheckpointStore(ctx, key, do, func(c *checkpointStore) (*checkpoints.Checkpoints, func(), error) {
		opened, err := c.open(ctx)
		return opened, func() {}, err
	})
}

// listCheckpoints opens the checkpoints to be listed and counted. No passphrase is
// asked for, as none is needed.
func (a *app) listCheckpoints(ctx context.Context, do func(context.Context, *checkpointDesk) error) error {
	return a.onCheckpointStore(ctx, masterKey{host: a.host}, do, func(c *checkpointStore) (*checkpoints.Checkpoints, func(), error) {
		return c.openListed(ctx)
	})
}

func (a *app) onCheckpointStore(ctx context.Context, key masterKey, do func(context.Context, *checkpointDesk) error,
	open func(*checkpointStore) (*checkpoints.Checkpoints, func(), error),
) error {
	cfg, person, err := a.loadUser()
	if err != nil {
		return err
	}
	s := a.newStore(cfg, nil)
	defer s.close()
	c := a.newCheckpointStore(s, key)
	defer c.close()
	if cfg.Origin("log.level").Kind == config.OriginDefault {
		c.log = a.loggerFrom(cfg, slog.LevelError) // a command tells of warnings in its own words
	}
	opened, done, err := open(c)
	if err != nil {
		return err
	}
	defer done()
	return do(ctx, &checkpointDesk{checkpoints: opened, person: person, here: a.host.project().ID})
}

// wantLasting refuses to keep something where it would end with the command.
func (d *checkpointDesk) wantLasting() error {
	store := d.checkpoints.Store()
	if store.Mode != checkpoint.ModeMemory {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "nothing was kept: %s", store.Note).
		WithFix("make the data directory writable for this user, or name another with --data-dir")
}

// hasCheckpoints says whether checkpoints may be there already, without making
// anything.
func hasCheckpoints(cfg *config.Config) bool {
	if cfg.DataDir == "" {
		return false
	}
	if cfg.UsesPostgres() {
		return true
	}
	_, err := os.Stat(contextsDir(cfg))
	return err == nil
}

// contextsDir is the directory of the contents of checkpoints; with PostgreSQL only
// where one is set.
func contextsDir(cfg *config.Config) string {
	if cfg.Checkpoints.Dir != "" {
		return cfg.Checkpoints.Dir
	}
	return filepath.Join(cfg.DataDir, "contexts")
}

// checkpointNotes tells beside an answer where checkpoints are not kept as the
// settings say, and what else the caller should know.
func (h *Host) checkpointNotes(store checkpoint.Store, warnings []checkpoint.Warning) {
	s := h.errStyles()
	memory := false
	for _, w := range warnings {
		memory = memory || w.Code == checkpoint.WarnMemory
		where := ""
		if w.Path != "" {
			where = oneLine(w.Path) + ": "
		}
		fmt.Fprintf(h.Err, "%s %s%s\n", s.yellow("warning:"), where, oneLine(w.Message))
	}
	if store.Note != "" && !memory {
		fmt.Fprintf(h.Err, "%s checkpoints are kept in %s: %s\n", s.yellow("warning:"), store.Mode, oneLine(store.Note))
	}
}
