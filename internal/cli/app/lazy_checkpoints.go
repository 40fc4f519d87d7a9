package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
)

// NewAutoSaver returns the auto-saver of runs, and sets the run service of the store, which
// notifies it.
func NewAutoSaver(s *Store, c *CheckpointStore) (*contexts.AutoSaver, error) {
	keeper, err := contexts.NewAutoSaver(contexts.AutoSaverOptions{
		Checkpoints: LazyCheckpoints{Checkpoints: c}, Now: c.now, Logger: s.Log,
		Off: !s.Cfg.Checkpoints.AutoSave || s.Cfg.Checkpoints.ReadOnly,
	})
	if err != nil {
		return nil, err
	}
	s.Runs, err = s.NewRuns(keeper)
	return keeper, err
}

// autoSaveTimeout limits how long the process waits for pending saves when it ends: it must
// exit within a second of its signal.
const autoSaveTimeout = 800 * time.Millisecond

// CloseAutoSaver saves the pending checkpoints within autoSaveTimeout. An unsaved run loses
// nothing, because its journal is complete.
func CloseAutoSaver(s *Store, keeper *contexts.AutoSaver) {
	done := make(chan struct{})
	go func() {
		_ = keeper.Close() // Close of the auto-saver never fails
		close(done)
	}()
	timer := time.NewTimer(autoSaveTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.Log.Warn("automatic checkpoints were not saved before the process ended; the journal of their runs is complete, and the checkpoints are saved when these runs are next listed or loaded", "waiting", keeper.Health().Waiting)
	}
}

// LazyCheckpoints implements contexts.Checkpoints on checkpoints that open at the first
// call.
type LazyCheckpoints struct{ Checkpoints *CheckpointStore }

var _ contexts.Checkpoints = LazyCheckpoints{}

// callListed opens the checkpoints for one call that reads no content and therefore needs
// no master key.
func callListed[T any](ctx context.Context, l LazyCheckpoints, call func(*checkpoint.Service) (T, error)) (T, error) {
	opened, done, err := l.Checkpoints.OpenListed(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return call(opened.Service)
}

// Save implements contexts.Checkpoints. So do the methods below.
func (l LazyCheckpoints) Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (*checkpoint.Saved, error) { return s.Save(ctx, who, r) })
}

// Load returns a context as it was saved.
func (l LazyCheckpoints) Load(ctx context.Context, who guideway.Principal, r checkpoint.LoadRequest) (*checkpoint.Loaded, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (*checkpoint.Loaded, error) { return s.Load(ctx, who, r) })
}

// List returns checkpoints.
func (l LazyCheckpoints) List(ctx context.Context, who guideway.Principal, r checkpoint.ListRequest) (*checkpoint.Page, error) {
	return callListed(ctx, l, func(s *checkpoint.Service) (*checkpoint.Page, error) { return s.List(ctx, who, r) })
}

// Get returns the record of a checkpoint.
func (l LazyCheckpoints) Get(ctx context.Context, who guideway.Principal, id string) (checkpoint.Record, error) {
	return callListed(ctx, l, func(s *checkpoint.Service) (checkpoint.Record, error) { return s.Get(ctx, who, id) })
}

// Diff returns the changes between two checkpoints.
func (l LazyCheckpoints) Diff(ctx context.Context, who guideway.Principal, from, to string) (*checkpoint.Difference, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (*checkpoint.Difference, error) { return s.Diff(ctx, who, from, to) })
}

// StoreFragment stores a part of a context.
func (l LazyCheckpoints) StoreFragment(ctx context.Context, who guideway.Principal, session string, part json.RawMessage) (checkpoint.Fragment, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (checkpoint.Fragment, error) {
		return s.StoreFragment(ctx, who, session, part)
	})
}

// Store describes where checkpoints are stored, or will be stored once they are open.
func (l LazyCheckpoints) Store() checkpoint.Store { return l.Checkpoints.storeInfo() }
