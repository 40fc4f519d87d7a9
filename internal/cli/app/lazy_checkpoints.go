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

// NewAutoSaver makes what saves runs by itself, and the run service of the store, which
// tells it of them.
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

// autoSaveTimeout bounds how long the end of a process waits for what is still to be
// saved: it is gone within a second of its signal.
const autoSaveTimeout = 800 * time.Millisecond

// CloseAutoSaver saves what waits, as far as the time allows. A run that was not saved
// loses nothing: its journal has all of it.
func CloseAutoSaver(s *Store, keeper *contexts.AutoSaver) {
	done := make(chan struct{})
	go func() {
		_ = keeper.Close() // it has nothing to fail with
		close(done)
	}()
	timer := time.NewTimer(autoSaveTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		s.Log.Warn("automatic checkpoints could not be saved before the end", "waiting", keeper.Health().Waiting)
	}
}

// LazyCheckpoints are the checkpoints on a store that is opened later.
type LazyCheckpoints struct{ Checkpoints *CheckpointStore }

var _ contexts.Checkpoints = LazyCheckpoints{}

// callListed opens them for one call that needs no content, and so no master key.
func callListed[T any](ctx context.Context, l LazyCheckpoints, call func(*checkpoint.Service) (T, error)) (T, error) {
	opened, done, err := l.Checkpoints.OpenListed(ctx)
	if err != nil {
		var none T
		return none, err
	}
	defer done()
	return call(opened.Service)
}

// Save stores a context; see checkpoint.Service, as for all methods.
func (l LazyCheckpoints) Save(ctx context.Context, who guideway.Principal, r checkpoint.SaveRequest) (*checkpoint.Saved, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (*checkpoint.Saved, error) { return s.Save(ctx, who, r) })
}

// Load gives a context as it was saved.
func (l LazyCheckpoints) Load(ctx context.Context, who guideway.Principal, r checkpoint.LoadRequest) (*checkpoint.Loaded, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (*checkpoint.Loaded, error) { return s.Load(ctx, who, r) })
}

// List gives checkpoints.
func (l LazyCheckpoints) List(ctx context.Context, who guideway.Principal, r checkpoint.ListRequest) (*checkpoint.Page, error) {
	return callListed(ctx, l, func(s *checkpoint.Service) (*checkpoint.Page, error) { return s.List(ctx, who, r) })
}

// Get gives what is known of a checkpoint.
func (l LazyCheckpoints) Get(ctx context.Context, who guideway.Principal, id string) (checkpoint.Record, error) {
	return callListed(ctx, l, func(s *checkpoint.Service) (checkpoint.Record, error) { return s.Get(ctx, who, id) })
}

// Diff says what changed from one checkpoint to another.
func (l LazyCheckpoints) Diff(ctx context.Context, who guideway.Principal, from, to string) (*checkpoint.Difference, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (*checkpoint.Difference, error) { return s.Diff(ctx, who, from, to) })
}

// StoreFragment stores a part of a context.
func (l LazyCheckpoints) StoreFragment(ctx context.Context, who guideway.Principal, session string, part json.RawMessage) (checkpoint.Fragment, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (checkpoint.Fragment, error) {
		return s.StoreFragment(ctx, who, session, part)
	})
}

// LoadFragment returns a part of a context that was kept.
func (l LazyCheckpoints) LoadFragment(ctx context.Context, who guideway.Principal, ref string) (json.RawMessage, error) {
	return WithOpened(ctx, l.Checkpoints.Open, func(s *checkpoints.Checkpoints) (json.RawMessage, error) { return s.LoadFragment(ctx, who, ref) })
}

// Store says where checkpoints are kept; before they are opened, where they are to
// be.
func (l LazyCheckpoints) Store() checkpoint.Store { return l.Checkpoints.storeInfo() }
