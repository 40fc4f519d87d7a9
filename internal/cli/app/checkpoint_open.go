package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
)

// CheckpointStore opens the checkpoints when the first call needs them, on the store
// that the runs are in. That they cannot be opened is the answer to that call; the
// next one tries again.
type CheckpointStore struct {
	Store *Store
	key   MasterKey
	now   func() time.Time
	Log   *slog.Logger
	// ReadOnly has them read only, whatever the settings say.
	ReadOnly bool

	// Lock is held by who looks at what follows, or changes it.
	Lock   chan struct{}
	opened *checkpoints.Checkpoints
	closed bool
}

// NewCheckpointStore makes one that is opened later. It must be closed before the
// store is.
func (a *App) NewCheckpointStore(s *Store, key MasterKey) *CheckpointStore {
	return &CheckpointStore{Store: s, key: key, now: a.Host.Now, Log: s.Log, Lock: make(chan struct{}, 1)}
}

// Open gives the checkpoints. Calls that come while they are being opened wait for
// it, each as long as its own context lasts.
func (c *CheckpointStore) Open(ctx context.Context) (*checkpoints.Checkpoints, error) {
	select {
	case c.Lock <- struct{}{}:
		defer func() { <-c.Lock }()
	case <-ctx.Done():
		return nil, guideway.Errorf(guideway.CodeUnavailable, "wait for the checkpoints to be opened: %w", ctx.Err())
	}
	if c.opened != nil {
		return c.opened, nil
	}
	if c.closed {
		return nil, context.Canceled
	}
	options, err := c.storeOptions()
	if err != nil {
		return nil, &checkpoints.Locked{Cause: err}
	}
	opened, err := checkpoints.Open(ctx, options)
	if err != nil {
		return nil, StoreOpenError(err)
	}
	c.opened = opened
	return opened, nil
}

// OpenListed gives the checkpoints to be listed and counted, which needs no master
// key: where that cannot be had nothing else is possible, and all else is refused with
// the reason. done must be called.
func (c *CheckpointStore) OpenListed(ctx context.Context) (opened *checkpoints.Checkpoints, done func(), err error) {
	opened, err = c.Open(ctx)
	var locked *checkpoints.Locked
	if !errors.As(err, &locked) {
		return opened, func() {}, err
	}
	options, _ := c.storeOptions() // it may be this that has no key
	opened, err = checkpoints.OpenLocked(ctx, options, locked.Cause)
	if err != nil {
		return nil, nil, StoreOpenError(err)
	}
	return opened, func() {
		if err := opened.Close(); err != nil {
			c.Log.Warn("the checkpoints did not close", "error", err)
		}
	}, nil
}

// storeInfo says what keeps the checkpoints; before they are opened, what is to.
func (c *CheckpointStore) storeInfo() checkpoint.Store {
	c.Lock <- struct{}{}
	defer func() { <-c.Lock }()
	switch cfg := c.Store.Cfg; {
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

func (c *CheckpointStore) storeOptions() (checkpoints.Options, error) {
	cfg := c.Store.Cfg
	source, err := c.key.keySource(cfg)
	return checkpoints.Options{
		DataDir: cfg.DataDir, Store: cfg.Store, Journal: c.openIndex, BlobDir: cfg.Checkpoints.Dir, Program: Version(),
		Limits: checkpointLimits(cfg.Checkpoints), Encryption: source, ReadOnly: c.ReadOnly || cfg.Checkpoints.ReadOnly,
		Active: c.isActive, Now: c.now, Logger: c.Log,
	}, err
}

// openIndex shares the store of the runs.
func (c *CheckpointStore) openIndex(ctx context.Context) (checkpoint.Index, error) {
	journal, err := c.Store.openJournalAlone(ctx)
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
func (c *CheckpointStore) isActive(ctx context.Context, id string) (bool, error) {
	journal, err := c.Store.openJournalAlone(ctx)
	if err != nil {
		return false, err
	}
	r, err := journal.Run(ctx, id)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return false, nil
	}
	return r.Status == engine.StatusRunning || r.Status == engine.StatusWaiting, err
}

// Close closes what was opened. Calls that are under way end first.
func (c *CheckpointStore) Close() {
	c.Lock <- struct{}{}
	defer func() { <-c.Lock }()
	c.closed = true
	if c.opened == nil {
		return
	}
	if err := c.opened.Close(); err != nil {
		c.Log.Warn("the checkpoints did not close", "error", err)
	}
	c.opened = nil
}

// checkpointLimits are the limits of the settings, where 0 does not bound.
func checkpointLimits(c config.Checkpoints) checkpoint.Limits {
	return checkpoint.Limits{
		PerSeries: orUnlimited(c.Max), SeriesBytes: orUnlimited(c.MaxSession), CheckpointBytes: orUnlimited(c.MaxSize), RawBytes: orUnlimited(c.MaxContext),
		TotalBytes: orUnlimited(c.MaxTotal), Warn: float64(c.WarnAt) / 100, Clean: float64(c.CleanAt) / 100, Retention: orUnlimited(c.Retention),
	}
}

// orUnlimited says "no limit" as limits do.
func orUnlimited[T int | int64 | time.Duration](n T) T {
	if n <= 0 {
		return -1
	}
	return n
}

// CheckpointDeps is what a command on checkpoints works with.
type CheckpointDeps struct {
	Checkpoints *checkpoints.Checkpoints
	User        guideway.Principal
	// ProjectID is the id of the project of the working directory.
	ProjectID string
}

// WithCheckpoints opens the checkpoints for one command. The passphrase of an
// encryption may be asked for.
func (a *App) WithCheckpoints(ctx context.Context, do func(context.Context, *CheckpointDeps) error) error {
	return a.withUnlockedCheckpoints(ctx, MasterKey{Host: a.Host, mayAsk: true}, do)
}

func (a *App) withUnlockedCheckpoints(ctx context.Context, key MasterKey, do func(context.Context, *CheckpointDeps) error) error {
	return a.withCheckpointStore(ctx, key, do, func(c *CheckpointStore) (*checkpoints.Checkpoints, func(), error) {
		opened, err := c.Open(ctx)
		return opened, func() {}, err
	})
}

// ListCheckpoints opens the checkpoints to be listed and counted. No passphrase is
// asked for, as none is needed.
func (a *App) ListCheckpoints(ctx context.Context, do func(context.Context, *CheckpointDeps) error) error {
	return a.withCheckpointStore(ctx, MasterKey{Host: a.Host}, do, func(c *CheckpointStore) (*checkpoints.Checkpoints, func(), error) {
		return c.OpenListed(ctx)
	})
}

func (a *App) withCheckpointStore(ctx context.Context, key MasterKey, do func(context.Context, *CheckpointDeps) error,
	open func(*CheckpointStore) (*checkpoints.Checkpoints, func(), error),
) error {
	cfg, person, err := a.LoadUser()
	if err != nil {
		return err
	}
	s := a.NewStore(cfg, nil)
	defer s.Close()
	c := a.NewCheckpointStore(s, key)
	defer c.Close()
	if cfg.Origin("log.level").Kind == config.OriginDefault {
		c.Log = a.newLogger(cfg, slog.LevelError) // a command tells of warnings in its own words
	}
	opened, done, err := open(c)
	if err != nil {
		return err
	}
	defer done()
	return do(ctx, &CheckpointDeps{Checkpoints: opened, User: person, ProjectID: a.Host.Project().ID})
}

// RequirePersistence refuses to keep something where it would end with the command.
func (d *CheckpointDeps) RequirePersistence() error {
	store := d.Checkpoints.Store()
	if store.Mode != checkpoint.ModeMemory {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "nothing was kept: %s", store.Note).
		WithFix("make the data directory writable for this user, or name another with --data-dir")
}

// CheckpointsExist says whether checkpoints may be there already, without making
// anything.
func CheckpointsExist(cfg *config.Config) bool {
	if cfg.DataDir == "" {
		return false
	}
	if cfg.UsesPostgres() {
		return true
	}
	_, err := os.Stat(CheckpointContentDir(cfg))
	return err == nil
}

// CheckpointContentDir is the directory of the contents of checkpoints; with PostgreSQL only
// where one is set.
func CheckpointContentDir(cfg *config.Config) string {
	if cfg.Checkpoints.Dir != "" {
		return cfg.Checkpoints.Dir
	}
	return filepath.Join(cfg.DataDir, "contexts")
}

// WriteCheckpointWarnings tells beside an answer where checkpoints are not kept as the
// settings say, and what else the caller should know.
func (h *Host) WriteCheckpointWarnings(store checkpoint.Store, warnings []checkpoint.Warning) {
	s := h.ErrStyles()
	memory := false
	for _, w := range warnings {
		memory = memory || w.Code == checkpoint.WarnMemory
		where := ""
		if w.Path != "" {
			where = OneLine(w.Path) + ": "
		}
		fmt.Fprintf(h.Err, "%s %s%s\n", s.Yellow("warning:"), where, OneLine(w.Message))
	}
	if store.Note != "" && !memory {
		fmt.Fprintf(h.Err, "%s checkpoints are kept in %s: %s\n", s.Yellow("warning:"), store.Mode, OneLine(store.Note))
	}
}
