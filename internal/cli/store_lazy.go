package cli

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// The surfaces are wired before the journal is open: what they hold opens it at
// the first call.

// with opens the store for one call.
func with[T any](ctx context.Context, s *store, call func(*opened) (T, error)) (T, error) {
	o, err := s.open(ctx)
	if err != nil {
		var none T
		return none, err
	}
	return call(o)
}

// do is with for a call that only fails or not.
func do(ctx context.Context, s *store, call func(*opened) error) error {
	o, err := s.open(ctx)
	if err != nil {
		return err
	}
	return call(o)
}

// lazyRuns is the run service on a store that is opened later.
type lazyRuns struct{ store *store }

// Start begins a run; see run.Service, as for all methods.
func (l lazyRuns) Start(ctx context.Context, c run.Caller, r run.StartRequest) (*run.Answer, error) {
	return with(ctx, l.store, func(o *opened) (*run.Answer, error) { return o.runs.Start(ctx, c, r) })
}

// Continue hands in what a position asks for.
func (l lazyRuns) Continue(ctx context.Context, c run.Caller, r run.ContinueRequest) (*run.Answer, error) {
	return with(ctx, l.store, func(o *opened) (*run.Answer, error) { return o.runs.Continue(ctx, c, r) })
}

// Status says where a run stands.
func (l lazyRuns) Status(ctx context.Context, c run.Caller, r run.Ref) (*run.Answer, error) {
	return with(ctx, l.store, func(o *opened) (*run.Answer, error) { return o.runs.Status(ctx, c, r) })
}

// Answer answers a gate.
func (l lazyRuns) Answer(ctx context.Context, c run.Caller, r run.AnswerRequest) (*run.Answer, error) {
	return with(ctx, l.store, func(o *opened) (*run.Answer, error) { return o.runs.Answer(ctx, c, r) })
}

// Resume finds runs.
func (l lazyRuns) Resume(ctx context.Context, c run.Caller, r run.ResumeRequest) ([]run.Candidate, error) {
	return with(ctx, l.store, func(o *opened) ([]run.Candidate, error) { return o.runs.Resume(ctx, c, r) })
}

// Fork begins a run with what happened in another.
func (l lazyRuns) Fork(ctx context.Context, c run.Caller, r run.ForkRequest) (*run.Answer, error) {
	return with(ctx, l.store, func(o *opened) (*run.Answer, error) { return o.runs.Fork(ctx, c, r) })
}

// Abort ends a run.
func (l lazyRuns) Abort(ctx context.Context, c run.Caller, r run.AbortRequest) (*run.Answer, error) {
	return with(ctx, l.store, func(o *opened) (*run.Answer, error) { return o.runs.Abort(ctx, c, r) })
}

// List lists runs.
func (l lazyRuns) List(ctx context.Context, c run.Caller, f run.Filter) ([]run.Record, error) {
	return with(ctx, l.store, func(o *opened) ([]run.Record, error) { return o.runs.List(ctx, c, f) })
}

// State tells a run as a state document.
func (l lazyRuns) State(ctx context.Context, c run.Caller, r run.Ref) (*guide.StateDocument, error) {
	return with(ctx, l.store, func(o *opened) (*guide.StateDocument, error) { return o.runs.State(ctx, c, r) })
}

// Look tells all of a run but its events.
func (l lazyRuns) Look(ctx context.Context, c run.Caller, r run.Ref) (*run.Details, error) {
	return with(ctx, l.store, func(o *opened) (*run.Details, error) { return o.runs.Look(ctx, c, r) })
}

// Events gives some events of a run.
func (l lazyRuns) Events(ctx context.Context, c run.Caller, r run.Ref, after int64, limit int) ([]run.Event, error) {
	return with(ctx, l.store, func(o *opened) ([]run.Event, error) { return o.runs.Events(ctx, c, r, after, limit) })
}

// Behind gives a run as it was behind one of its events.
func (l lazyRuns) Behind(ctx context.Context, c run.Caller, r run.Ref, seq int64) (run.Committed, error) {
	return with(ctx, l.store, func(o *opened) (run.Committed, error) { return o.runs.Behind(ctx, c, r, seq) })
}

// Export gives a run as a bundle.
func (l lazyRuns) Export(ctx context.Context, c run.Caller, r run.Ref) ([]byte, error) {
	return with(ctx, l.store, func(o *opened) ([]byte, error) { return o.runs.Export(ctx, c, r) })
}

// Flow gives the definition that a run is one of, ready to run.
func (l lazyRuns) Flow(ctx context.Context, c run.Caller, r run.Ref) (guide.Flow, error) {
	return with(ctx, l.store, func(o *opened) (guide.Flow, error) { return o.runs.Flow(ctx, c, r) })
}

// Admit says whether a caller may set variables of a run.
func (l lazyRuns) Admit(ctx context.Context, c run.Caller, r run.Ref, vars map[string]any) error {
	return do(ctx, l.store, func(o *opened) error { return o.runs.Admit(ctx, c, r, vars) })
}

// Mark keeps what an agent says of the variables of a run.
func (l lazyRuns) Mark(ctx context.Context, c run.Caller, r run.MarkRequest) ([]run.Mark, error) {
	return with(ctx, l.store, func(o *opened) ([]run.Mark, error) { return o.runs.Mark(ctx, c, r) })
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
	return do(ctx, l.store, func(o *opened) error { return o.CreateDocument(ctx, d, log) })
}

// UpdateDocument changes a document.
func (l lazyStore) UpdateDocument(ctx context.Context, ref session.Ref, change func(session.Document) (session.Document, []session.LogEntry, error)) (session.Document, error) {
	return with(ctx, l.store, func(o *opened) (session.Document, error) { return o.UpdateDocument(ctx, ref, change) })
}

// DeleteDocument takes a document out of all lists.
func (l lazyStore) DeleteDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return do(ctx, l.store, func(o *opened) error { return o.DeleteDocument(ctx, ref, at) })
}

// RestoreDocument brings a deleted document back.
func (l lazyStore) RestoreDocument(ctx context.Context, ref session.Ref, at time.Time) error {
	return do(ctx, l.store, func(o *opened) error { return o.RestoreDocument(ctx, ref, at) })
}

// Documents lists documents.
func (l lazyStore) Documents(ctx context.Context, f session.Filter) ([]session.Document, error) {
	return with(ctx, l.store, func(o *opened) ([]session.Document, error) { return o.Documents(ctx, f) })
}

// Summaries lists summaries of documents.
func (l lazyStore) Summaries(ctx context.Context, f session.Filter) ([]session.Summary, error) {
	return with(ctx, l.store, func(o *opened) ([]session.Summary, error) { return o.Summaries(ctx, f) })
}

// Projects lists projects.
func (l lazyStore) Projects(ctx context.Context, user string) ([]session.ProjectSummary, error) {
	return with(ctx, l.store, func(o *opened) ([]session.ProjectSummary, error) { return o.Projects(ctx, user) })
}

// ValidationLog gives the log of a document.
func (l lazyStore) ValidationLog(ctx context.Context, ref session.Ref, limit int) ([]session.LogEntry, error) {
	return with(ctx, l.store, func(o *opened) ([]session.LogEntry, error) { return o.ValidationLog(ctx, ref, limit) })
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
	return with(ctx, l.store, func(o *opened) (int64, error) { return o.Latest(ctx) })
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
