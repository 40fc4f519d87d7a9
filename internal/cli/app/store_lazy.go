package app

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/checkpoints"
)

// MCP and HTTP are wired before the journal is open. These types open it at the first call,
// as the run service does.

// WithOpened opens a store and makes a call on it.
func WithOpened[S, T any](ctx context.Context, open func(context.Context) (S, error), call func(S) (T, error)) (T, error) {
	o, err := open(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return call(o)
}

// doWithOpened is WithOpened for a call that returns only an error.
func doWithOpened(ctx context.Context, s *Store, call func(*Opened) error) error {
	o, err := s.Open(ctx)
	if err != nil {
		return err
	}
	return call(o)
}

// LazyStore implements session.Store, run.Feed and hookstate.Store on a store that opens at the first call.
type LazyStore struct{ Store *Store }

var (
	_ session.Store   = LazyStore{}
	_ run.Feed        = LazyStore{}
	_ hookstate.Store = LazyStore{}
)

// CreateDocument implements session.Store. So do the methods below.
func (l LazyStore) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	return doWithOpened(ctx, l.Store, func(o *Opened) error { return o.CreateDocument(ctx, d, log) })
}

// UpdateDocument changes a document.
func (l LazyStore) UpdateDocument(ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error)) (session.Document, error) {
	return WithOpened(ctx, l.Store.Open, func(o *Opened) (session.Document, error) { return o.UpdateDocument(ctx, ref, change) })
}

// DeleteDocument marks a document as deleted.
func (l LazyStore) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return doWithOpened(ctx, l.Store, func(o *Opened) error { return o.DeleteDocument(ctx, ref, at) })
}

// RestoreDocument restores a deleted document.
func (l LazyStore) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return doWithOpened(ctx, l.Store, func(o *Opened) error { return o.RestoreDocument(ctx, ref, at) })
}

// PurgeDocument erases a deleted document.
func (l LazyStore) PurgeDocument(ctx context.Context, ref session.Ref) error {
	return doWithOpened(ctx, l.Store, func(o *Opened) error { return o.PurgeDocument(ctx, ref) })
}

// Documents lists documents.
func (l LazyStore) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	return WithOpened(ctx, l.Store.Open, func(o *Opened) ([]session.Document, error) { return o.Documents(ctx, f) })
}

// Summaries lists summaries of documents.
func (l LazyStore) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	return WithOpened(ctx, l.Store.Open, func(o *Opened) ([]session.Summary, error) { return o.Summaries(ctx, f) })
}

// Projects lists projects.
func (l LazyStore) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	return WithOpened(ctx, l.Store.Open, func(o *Opened) ([]session.ProjectSummary, error) { return o.Projects(ctx, user) })
}

// ValidationLog returns the validation log of a document.
func (l LazyStore) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	return WithOpened(ctx, l.Store.Open, func(o *Opened) ([]session.LogEntry, error) { return o.ValidationLog(ctx, ref, limit) })
}

// Changes implements run.Feed. So do the methods below.
func (l LazyStore) Changes(ctx context.Context, after int64, limit int) (list []run.Change, reset bool, err error) {
	o, err := l.Store.Open(ctx)
	if err != nil {
		return nil, false, err
	}
	return o.Changes(ctx, after, limit)
}

// Latest returns the position of the last change.
func (l LazyStore) Latest(ctx context.Context) (int64, error) {
	return WithOpened(ctx, l.Store.Open, func(o *Opened) (int64, error) { return o.Latest(ctx) })
}

// Watch returns a channel that signals changes. If the store does not open, the channel is
// closed, and Changes returns the error.
func (l LazyStore) Watch(ctx context.Context) <-chan struct{} {
	o, err := l.Store.Open(ctx)
	if err != nil {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return o.Watch(ctx)
}

// HookState implements hookstate.Store. So does ChangeHookState. Neither needs the key of the
// journal.
func (l LazyStore) HookState(ctx context.Context, ref hookstate.Ref, now time.Time) (hookstate.Entry, error) {
	return WithOpened(ctx, l.Store.openJournalAlone, func(j JournalStore) (hookstate.Entry, error) { return j.HookState(ctx, ref, now) })
}

// ChangeHookState changes an entry.
func (l LazyStore) ChangeHookState(ctx context.Context, ref hookstate.Ref, now time.Time, change func(hookstate.Entry) (hookstate.Entry, error)) error {
	j, err := l.Store.openJournalAlone(ctx)
	if err != nil {
		return err
	}
	return j.ChangeHookState(ctx, ref, now, change)
}

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

// SessionOf returns the session of a checkpoint, or "".
func (l LazyCheckpoints) SessionOf(ctx context.Context, id string) string {
	session, _ := callListed(ctx, l, func(s *checkpoint.Service) (string, error) { return s.SessionOf(ctx, id), nil })
	return session // the request for the checkpoint returns the error
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
