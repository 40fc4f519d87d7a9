package session

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway"
)

// Options are what a Service works with.
type Options struct {
	// Store keeps the documents. It is needed.
	Store Store
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Service keeps the session documents of users. Its methods may be called by
// many goroutines at once, and by many processes on one store. Every method acts
// for the principal's user and sees nobody else's documents. Errors carry a code
// and, where there is one, the way out: CodeInvalid and CodeTooLarge for what
// the caller can mend, CodeNotFound, CodeConflict, and those of the store.
type Service struct {
	store Store
	now   func() time.Time
}

// New makes a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{store: o.Store, now: o.Now}
}

// CreateRequest is a new document.
type CreateRequest struct {
	// Project is the id of the project, ProjectPath where it is.
	Project     string
	ProjectPath string
	Workflow    string
	ID          string
	// Data is kept with its names as they are: dots and brackets have no
	// meaning in them.
	Data map[string]any
}

// Create stores a new document and returns it as it is stored. It never
// overwrites: a document that is there is CodeConflict.
func (s *Service) Create(ctx context.Context, p guideway.Principal, r CreateRequest) (*Document, error) {
	ref := Ref{User: p.User, Project: r.Project, Workflow: r.Workflow, ID: r.ID}
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	data, err := cloneObject(r.Data)
	if err != nil {
		return nil, refuse("create", ref, err)
	}
	data, findings := normalize(nil, data)
	if err := checkLimits(data); err != nil {
		return nil, refuse("create", ref, err)
	}
	now := s.timestamp()
	d := Document{Ref: ref, ProjectPath: r.ProjectPath, Created: now, Updated: now, Revision: 1, Data: data}
	findings = append(findings, added(nil, validate(ref.Workflow, data))...)
	err = s.store.CreateDocument(ctx, d, entries(findings, now, d.Revision))
	switch {
	case guideway.ErrorCode(err) == guideway.CodeConflict:
		return nil, guideway.Errorf(guideway.CodeConflict, "session already exists: %s/%s", ref.Workflow, ref.ID).
			WithFix("change it with workrail_update_session, read it with workrail_read_session, or take another sessionId")
	case err != nil:
		return nil, refuse("create", ref, err)
	}
	return &d, nil
}

// Update merges updates into a document, in one transaction, and returns the
// document as it is stored. The names of the updates' members may be paths; see
// docs/sessions.md. Either all of them are stored or none.
func (s *Service) Update(ctx context.Context, p guideway.Principal, n Name, updates map[string]any) (*Document, error) {
	ref, err := s.resolve(ctx, p, n)
	if err != nil {
		return nil, err
	}
	updates, err = cloneObject(updates)
	if err != nil {
		return nil, refuse("update", ref, err)
	}
	d, err := s.store.UpdateDocument(ctx, ref, func(d Document) (Document, []LogEntry, error) {
		return s.next(d, updates)
	})
	if err != nil {
		return nil, s.failed("update", ref, err)
	}
	return &d, nil
}

// next makes the next revision of a document.
func (s *Service) next(d Document, updates map[string]any) (Document, []LogEntry, error) {
	data, err := apply(d.Data, updates)
	if err != nil {
		return Document{}, nil, err
	}
	before := d.Data
	data, findings := normalize(before, data)
	if err := checkLimits(data); err != nil {
		return Document{}, nil, err
	}
	findings = append(findings, added(validate(d.Workflow, before), validate(d.Workflow, data))...)
	// Clocks of several machines differ; a document never gets younger.
	if now := s.timestamp(); now.After(d.Updated) {
		d.Updated = now
	}
	d.Revision++
	d.Data = data
	return d, entries(findings, d.Updated, d.Revision), nil
}

// ReadResult is what a path leads to.
type ReadResult struct {
	// Ref and Revision are the document's; empty for the path "$schema".
	Ref      Ref
	Revision int64
	// Query is the path, or "(full session)".
	Query string
	// Found is false where nothing stands at the place; Data is nil then, as
	// it also is where null stands there.
	Found bool
	Data  any
}

// Read reads a document, or the part of it that a path leads to. The path
// "$schema" answers the schema of documents, also where there is no document.
func (s *Service) Read(ctx context.Context, p guideway.Principal, n Name, path string) (*ReadResult, error) {
	if path == schemaPath {
		return &ReadResult{Query: path, Found: true, Data: Schema()}, nil
	}
	d, err := s.Get(ctx, p, n)
	if err != nil {
		return nil, err
	}
	result := &ReadResult{Ref: d.Ref, Revision: d.Revision, Query: path}
	if path == "" {
		result.Query = "(full session)"
	}
	if result.Data, result.Found, err = query(d.Data, path); err != nil {
		return nil, refuse("read", d.Ref, err)
	}
	return result, nil
}

// Delete takes a document out of all lists and returns which it was. Restore
// brings it back until another one with its name is created.
func (s *Service) Delete(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
	ref, err := s.resolve(ctx, p, n)
	if err != nil {
		return Ref{}, err
	}
	if err := s.store.DeleteDocument(ctx, ref, s.timestamp()); err != nil {
		return Ref{}, s.failed("delete", ref, err)
	}
	return ref, nil
}

// Restore brings a deleted document back. It needs the whole name, since a
// deleted document stands in no list.
func (s *Service) Restore(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
	ref := Ref{User: p.User, Project: n.Project, Workflow: n.Workflow, ID: n.ID}
	if err := checkRef(ref); err != nil {
		return Ref{}, err
	}
	if err := s.store.RestoreDocument(ctx, ref, s.timestamp()); err != nil {
		return Ref{}, s.failed("restore", ref, err)
	}
	return ref, nil
}

// ListOptions choose documents. An empty field does not choose.
type ListOptions struct {
	Project  string
	Workflow string
	ID       string
	// Limit bounds the answer; 0 is 1000.
	Limit int
}

// List gives the user's documents, the last changed first.
func (s *Service) List(ctx context.Context, p guideway.Principal, o ListOptions) ([]Document, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	list, err := s.store.Documents(ctx, o.filter(p))
	return list, wrap(err, "list session documents")
}

// Summaries gives the summaries of the user's documents, the last changed first.
func (s *Service) Summaries(ctx context.Context, p guideway.Principal, o ListOptions) ([]Summary, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	list, err := s.store.Summaries(ctx, o.filter(p))
	return list, wrap(err, "list session documents")
}

func (o ListOptions) filter(p guideway.Principal) Filter {
	return Filter{
		Ref:   Ref{User: p.User, Project: o.Project, Workflow: o.Workflow, ID: o.ID},
		Limit: o.Limit,
	}
}

// Projects gives the projects in which the user has documents or runs.
func (s *Service) Projects(ctx context.Context, p guideway.Principal) ([]ProjectSummary, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	list, err := s.store.Projects(ctx, p.User)
	return list, wrap(err, "list projects")
}

// ValidationLog gives the newest entries of a document's log, newest first; a
// limit of 0 or less is 100.
func (s *Service) ValidationLog(ctx context.Context, p guideway.Principal, n Name, limit int) ([]LogEntry, error) {
	ref, err := s.resolve(ctx, p, n)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	list, err := s.store.ValidationLog(ctx, ref, limit)
	if err != nil {
		return nil, s.failed("read the validation log of", ref, err)
	}
	return list, nil
}

// timestamp is the time as stores keep it.
func (s *Service) timestamp() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// entries makes a log of findings.
func entries(findings []finding, at time.Time, revision int64) []LogEntry {
	var log []LogEntry
	for _, f := range findings[:min(len(findings), maxFindings)] {
		log = append(log, LogEntry{At: at, Revision: revision, Pointer: f.pointer, Message: f.message})
	}
	return log
}

// refuse says what was being done to which document. Code and fix stay.
func refuse(doing string, ref Ref, err error) error {
	return wrap(err, doing+" session "+ref.Workflow+"/"+ref.ID)
}

// failed is refuse for errors of the store, which may say that the document is
// not there.
func (s *Service) failed(doing string, ref Ref, err error) error {
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return notFound(Name{Project: ref.Project, Workflow: ref.Workflow, ID: ref.ID})
	}
	return refuse(doing, ref, err)
}

// wrap says what was being done. The code and the fix stay; nil stays nil.
func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	wrapped := guideway.Errorf(guideway.ErrorCode(err), "%s: %w", doing, err)
	wrapped.Fix = guideway.ErrorFix(err)
	return wrapped
}
