package app

import (
	"cmp"
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
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
)

// CheckpointStore opens the checkpoints at the first call, in the store of the runs. If
// that fails, the call returns the error and the next call tries again.
type CheckpointStore struct {
	Store *Store
	key   MasterKey
	now   func() time.Time
	Log   *slog.Logger
	// ReadOnly opens the checkpoints read-only, regardless of the settings.
	ReadOnly bool

	// Lock guards the fields below.
	Lock   chan struct{}
	opened *checkpoints.Checkpoints
	closed bool
}

// NewCheckpointStore returns a store that opens at the first call. It must be closed before
// s.
func (a *App) NewCheckpointStore(s *Store, key MasterKey) *CheckpointStore {
	return &CheckpointStore{Store: s, key: key, now: a.Host.Now, Log: s.Log, Lock: make(chan struct{}, 1)}
}

// Open returns the checkpoints. Concurrent calls wait until the checkpoints are open or
// their own context is done.
func (c *CheckpointStore) Open(ctx context.Context) (*checkpoints.Checkpoints, error) {
	select {
	case c.Lock <- struct{}{}:
		defer func() { <-c.Lock }()
	case <-ctx.Done():
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the wait for the store of checkpoints to open ended: %w", ctx.Err())
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

// OpenListed returns the checkpoints for listing and counting, which needs no master key.
// If the key is not available, all other calls on the checkpoints fail with the reason. If
// err is nil, the caller must call done.
func (c *CheckpointStore) OpenListed(ctx context.Context) (opened *checkpoints.Checkpoints, done func(), err error) {
	opened, err = c.Open(ctx)
	var locked *checkpoints.Locked
	if !errors.As(err, &locked) {
		return opened, func() {}, err
	}
	options, _ := c.storeOptions() // fails again if the key is missing; the options are still valid
	opened, err = checkpoints.OpenLocked(ctx, options, locked.Cause)
	if err != nil {
		return nil, nil, StoreOpenError(err)
	}
	return opened, func() {
		if err := opened.Close(); err != nil {
			c.Log.Warn("cannot close the store of checkpoints", "error", err)
		}
	}, nil
}

// storeInfo describes where checkpoints are stored, or will be stored once they are open.
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
		Limits: checkpointLimits(cfg.Checkpoints), Encryption: source, PersonalData: cfg.Context.PersonalData, ReadOnly: c.ReadOnly || cfg.Checkpoints.ReadOnly,
		Active: c.isActive, Now: c.now, Logger: c.Log,
	}, err
}

// openIndex returns the checkpoint index in the store of the runs.
func (c *CheckpointStore) openIndex(ctx context.Context) (checkpoint.Index, error) {
	journal, err := c.Store.openJournalAlone(ctx)
	if err != nil {
		return nil, err
	}
	index, ok := journal.(checkpoint.Index)
	if !ok {
		return nil, guideway.Errorf(guideway.CodeInternal, "the journal %T does not store checkpoints", journal)
	}
	return index, nil
}

// isActive reports whether a run is running or waiting.
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

// Close closes the checkpoints after the calls in progress have returned.
func (c *CheckpointStore) Close() {
	c.Lock <- struct{}{}
	defer func() { <-c.Lock }()
	c.closed = true
	if c.opened == nil {
		return
	}
	if err := c.opened.Close(); err != nil {
		c.Log.Warn("cannot close the store of checkpoints", "error", err)
	}
	c.opened = nil
}

// checkpointLimits returns the limits of the settings, in which 0 means no limit.
func checkpointLimits(c config.Checkpoints) checkpoint.Limits {
	return checkpoint.Limits{
		PerSeries: orUnlimited(c.Max), SeriesBytes: orUnlimited(c.MaxSession), CheckpointBytes: orUnlimited(c.MaxSize), RawBytes: orUnlimited(c.MaxContext),
		TotalBytes: orUnlimited(c.MaxTotal), Warn: float64(c.WarnAt) / 100, Clean: float64(c.CleanAt) / 100, Retention: orUnlimited(c.Retention),
	}
}

// orUnlimited returns n, or -1, which means no limit, if n is not positive.
func orUnlimited[T int | int64 | time.Duration](n T) T {
	if n <= 0 {
		return -1
	}
	return n
}

// CheckpointDeps are the dependencies of a command on checkpoints.
type CheckpointDeps struct {
	Checkpoints *checkpoints.Checkpoints
	Runs        *run.Service
	User        guideway.Principal
	// ProjectID is the id of the project of the working directory.
	ProjectID string
}

// WithCheckpoints opens the checkpoints for one command. It may prompt for the passphrase.
func (a *App) WithCheckpoints(ctx context.Context, do func(context.Context, *CheckpointDeps) error) error {
	return a.withCheckpointStore(ctx, MasterKey{Host: a.Host, mayAsk: true}, do, func(c *CheckpointStore) (*checkpoints.Checkpoints, func(), error) {
		opened, err := c.Open(ctx)
		return opened, func() {}, err
	})
}

// ListCheckpoints opens the checkpoints for listing and counting. It does not prompt for
// the passphrase.
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
		c.Log = a.newLogger(cfg, slog.LevelError) // the command prints the warnings
	}
	opened, done, err := open(c)
	if err != nil {
		return err
	}
	defer done()
	runs, err := s.NewRuns(nil)
	if err != nil {
		return err
	}
	return do(ctx, &CheckpointDeps{Checkpoints: opened, Runs: runs, User: person, ProjectID: a.Host.Project().ID})
}

// RequirePersistence returns an error if checkpoints are only in memory and would be lost
// when the command ends.
func (d *CheckpointDeps) RequirePersistence() error {
	store := d.Checkpoints.Store()
	if store.Mode != checkpoint.ModeMemory {
		return nil
	}
	return guideway.Errorf(guideway.CodeUnavailable, "nothing was saved: %s", store.Note).
		WithFix("make the directory writable for this user and check that its disk is not full, or select a different one with --data-dir or --checkpoints-dir")
}

// CheckpointsExist reports whether there may be checkpoints. It creates nothing.
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

// CheckpointContentDir returns the directory of the contents of checkpoints. With
// PostgreSQL, the directory is used only if it is configured.
func CheckpointContentDir(cfg *config.Config) string {
	return cmp.Or(cfg.Checkpoints.Dir, filepath.Join(cfg.DataDir, "contexts"))
}

// WriteCheckpointWarnings prints the warnings, and a note if checkpoints are not stored in
// the configured place.
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
		fmt.Fprintf(h.Err, "%s checkpoints are stored in %s: %s\n", s.Yellow("warning:"), store.Mode, OneLine(store.Note))
	}
}
