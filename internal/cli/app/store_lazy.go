package app

import (
	"context"
	"time"

	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
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
