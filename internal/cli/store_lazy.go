package cli

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// The surfaces are wired before the journal is open: what they hold opens it at
// the first call, as the run service does.

// withOpened opens a store, where that has not happened yet, and makes a call on it.
func withOpened[S, T any](ctx context.Context, open func(context.Context) (S, error), call func(S) (T, error)) (T, error) {
	o, err := open(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return call(o)
}

// doOpened is withOpened for a call that returns an error alone.
func doOpened(ctx context.Context, s *store, call func(*opened) error) error {
	o, err := s.open(ctx)
	if err != nil {
		return err
	}
	return call(o)
}

// lazyStore is the store of session documents, and the feed, on a store that is
// opened later.
type lazyStore struct{ store *store }

var (
	_ session.Store = lazyStore{}
	_ run.Feed      = lazyStore{}
)

// CreateDocument implements session.Store, as do the methods after it.
func (l lazyStore) CreateDocument(ctx context.Context, d session.Document, log []session.LogEntry) error {
	return doOpened(ctx, l.store, func(o *opened) error { return o.CreateDocument(ctx, d, log) })
}

// UpdateDocument changes a document.
func (l lazyStore) UpdateDocument(ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error)) (session.Document, error) {
	return withOpened(ctx, l.store.open, func(o *opened) (session.Document, error) { return o.UpdateDocument(ctx, ref, change) })
}

// DeleteDocument takes a document out of all lists.
func (l lazyStore) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return doOpened(ctx, l.store, func(o *opened) error { return o.DeleteDocument(ctx, ref, at) })
}

// RestoreDocument brings a deleted document back.
func (l lazyStore) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return doOpened(ctx, l.store, func(o *opened) error { return o.RestoreDocument(ctx, ref, at) })
}

// Documents lists documents.
func (l lazyStore) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	return withOpened(ctx, l.store.open, func(o *opened) ([]session.Document, error) { return o.Documents(ctx, f) })
}

// Summaries lists summaries of documents.
func (l lazyStore) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	return withOpened(ctx, l.store.open, func(o *opened) ([]session.Summary, error) { return o.Summaries(ctx, f) })
}

// Projects lists projects.
func (l lazyStore) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	return withOpened(ctx, l.store.open, func(o *opened) ([]session.ProjectSummary, error) { return o.Projects(ctx, user) })
}

// ValidationLog gives the log of a document.
func (l lazyStore) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	return withOpened(ctx, l.store.open, func(o *opened) ([]session.LogEntry, error) { return o.ValidationLog(ctx, ref, limit) })
}

// Changes implements run.Feed, as do the methods after it.
func (l lazyStore) Changes(ctx context.Context, after int64, limit int) (list []run.Change, reset bool, err error) {
	o, err := l.store.open(ctx)
	if err != nil {
		return nil, false, err
	}
	return o.Changes(ctx, after, limit)
}

// Latest gives the position of the last change.
func (l lazyStore) Latest(ctx context.Context) (int64, error) {
	return withOpened(ctx, l.store.open, func(o *opened) (int64, error) { return o.Latest(ctx) })
}

// Watch tells of changes. Where the store cannot be opened the channel is closed
// at once: who watches finds out why by asking for the changes.
func (l lazyStore) Watch(ctx context.Context) <-chan struct{} {
	o, err := l.store.open(ctx)
	if err != nil {
		gone := make(chan struct{})
		close(gone)
		return gone
	}
	return o.Watch(ctx)
}
