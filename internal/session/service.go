package session

import (
	"cmp"
	"context"
	"time"

	"github.com/guideway-dev/guideway"
)

// Options are the dependencies of a Service.
type Options struct {
	// Store stores the documents; required.
	Store Store
	// Now returns the time. If it is nil, time.Now is used.
	Now func() time.Time
}

// Service stores the session documents of users. It is safe for use by several goroutines,
// and by several processes on one store. Every method acts for the principal's user and
// sees only that user's documents. Errors have a code and often a fix: CodeInvalid and
// CodeTooLarge for errors of the caller, CodeUnauthorized for a caller without a user,
// CodeNotFound, CodeConflict, and the codes of the store.
type Service struct {
	store Store
	now   func() time.Time
}

// New returns a service.
func New(o Options) *Service {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{store: o.Store, now: o.Now}
}

// CreateRequest describes a new document.
type CreateRequest struct {
	// Project is the id of the project, ProjectPath its directory.
	Project     string
	ProjectPath string
	Workflow    string
	ID          string
	// Data is stored with its names unchanged: dots and brackets have no meaning in them.
	Data map[string]any
}

// Create stores a new document and returns it as stored. It never overwrites: if the
// document exists, the error has CodeConflict.
func (s *Service) Create(ctx context.Context, p guideway.Principal, r CreateRequest) (*Document, error) {
	ref := Ref{User: p.User, Project: r.Project, Workflow: r.Workflow, ID: r.ID}
	if err := checkRef(ref); err != nil {
		return nil, err
	}
	data, err := cloneObject(r.Data)
	if err != nil {
		return nil, addContext("create", ref, err)
	}
	data, findings := normalizeDocument(nil, data)
	if err := checkLimits(data); err != nil {
		return nil, addContext("create", ref, err)
	}
	now := s.timestamp()
	d := Document{Ref: ref, ProjectPath: r.ProjectPath, Created: now, Updated: now, Revision: 1, Data: data}
	findings = append(findings, newRemarks(nil, validateDocument(ref.Workflow, data))...)
	err = s.store.CreateDocument(ctx, d, newLogEntries(findings, now, d.Revision))
	switch {
	case guideway.ErrorCode(err) == guideway.CodeConflict:
		return nil, guideway.Errorf(guideway.CodeConflict, "session already exists: %s/%s", ref.Workflow, ref.ID).
			WithFix("change it with workrail_update_session, read it with workrail_read_session, or use another sessionId")
	case err != nil:
		return nil, addContext("create", ref, err)
	}
	return &d, nil
}

// Update merges updates into a document in one transaction and returns the document as
// stored. The names of the updates' members may be paths; see docs/sessions.md. If an
// update is refused, nothing is stored.
func (s *Service) Update(ctx context.Context, p guideway.Principal, n Name, updates map[string]any) (*Document, error) {
	ref, err := s.resolveName(ctx, p, n)
	if err != nil {
		return nil, err
	}
	updates, err = cloneObject(updates)
	if err != nil {
		return nil, addContext("update", ref, err)
	}
	if err := checkUpdates(updates); err != nil {
		return nil, addContext("update", ref, err)
	}
	d, err := s.store.UpdateDocument(ctx, ref, func(d Document) (Document, []LogEntry, error) {
		return s.nextRevision(d, updates)
	})
	if err != nil {
		return nil, s.storeError("update", ref, err)
	}
	return &d, nil
}

// nextRevision returns the next revision of a document.
func (s *Service) nextRevision(d Document, updates map[string]any) (Document, []LogEntry, error) {
	data, err := applyUpdates(d.Data, updates)
	if err != nil {
		return Document{}, nil, err
	}
	before := d.Data
	data, findings := normalizeDocument(before, data)
	if err := checkLimits(data); err != nil {
		return Document{}, nil, err
	}
	findings = append(findings, newRemarks(validateDocument(d.Workflow, before), validateDocument(d.Workflow, data))...)
	// The clocks of machines differ, but the time of a document must not decrease.
	if now := s.timestamp(); now.After(d.Updated) {
		d.Updated = now
	}
	d.Revision++
	d.Data = data
	return d, newLogEntries(findings, d.Updated, d.Revision), nil
}

// ReadResult is the value that a path selects.
type ReadResult struct {
	// Ref and Revision identify the document that was read. They are empty for the path
	// "$schema".
	Ref      Ref
	Revision int64
	// Query is the path, or "(full session)".
	Query string
	// Found is false if the path selects nothing. Data is then nil; it is also nil for a
	// stored null.
	Found bool
	Data  any
}

// Read returns a document, or the part of it that a path selects. The path "$schema"
// returns the schema of documents, even if the document does not exist.
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
	if result.Data, result.Found, err = queryDocument(d.Data, path); err != nil {
		return nil, addContext("read", d.Ref, err)
	}
	return result, nil
}

// Delete deletes a document and returns its reference. Restore can restore it unless a new
// document with the same name has been created since.
func (s *Service) Delete(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
	ref, err := s.resolveName(ctx, p, n)
	if err != nil {
		return Ref{}, err
	}
	if err := s.store.DeleteDocument(ctx, ref, s.timestamp()); err != nil {
		return Ref{}, s.storeError("delete", ref, err)
	}
	return ref, nil
}

// Purge erases a document. If it is already deleted, which no list shows, it is found by its
// workflow and its project or that of the caller.
func (s *Service) Purge(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
	ref, err := s.Delete(ctx, p, n)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		ref = Ref{User: p.User, Project: cmp.Or(n.Project, n.Here), Workflow: n.Workflow, ID: n.ID}
		err = checkRef(ref)
	}
	if err != nil {
		return Ref{}, err
	}
	if err := s.store.PurgeDocument(ctx, ref); err != nil {
		return Ref{}, s.storeError("erase", ref, err)
	}
	return ref, nil
}

// Restore restores a deleted document. It needs the complete name, because a deleted
// document is not listed.
func (s *Service) Restore(ctx context.Context, p guideway.Principal, n Name) (Ref, error) {
	ref := Ref{User: p.User, Project: n.Project, Workflow: n.Workflow, ID: n.ID}
	if err := checkRef(ref); err != nil {
		return Ref{}, err
	}
	if err := s.store.RestoreDocument(ctx, ref, s.timestamp()); err != nil {
		return Ref{}, s.storeError("restore", ref, err)
	}
	return ref, nil
}

// List returns the user's documents that a filter selects, the last changed first.
func (s *Service) List(ctx context.Context, p guideway.Principal, f Filter) ([]Document, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	f.Ref.User = p.User
	list, err := s.store.Documents(ctx, f)
	return list, wrapError(err, "list session documents")
}

// Summaries returns the summaries of the user's documents that a filter selects, the last
// changed first.
func (s *Service) Summaries(ctx context.Context, p guideway.Principal, f Filter) ([]Summary, error) {
	if err := checkUser(p.User); err != nil {
		return nil, err
	}
	f.Ref.User = p.User
	list, err := s.store.Summaries(ctx, f)
	return list, wrapError(err, "list session documents")
}

// ValidationLog returns the newest entries of a document's log, newest first. A limit of 0
// or less means 100.
func (s *Service) ValidationLog(ctx context.Context, p guideway.Principal, n Name, limit int) ([]LogEntry, error) {
	ref, err := s.resolveName(ctx, p, n)
	if err != nil {
		return nil, err
	}
	if limit <= 0 {
		limit = 100
	}
	list, err := s.store.ValidationLog(ctx, ref, limit)
	if err != nil {
		return nil, s.storeError("read the validation log of", ref, err)
	}
	return list, nil
}

// timestamp returns the time in the precision of stores.
func (s *Service) timestamp() time.Time { return s.now().UTC().Truncate(time.Microsecond) }

// newLogEntries converts remarks to log entries.
func newLogEntries(findings []remark, at time.Time, revision int64) []LogEntry {
	var log []LogEntry
	for _, f := range findings[:min(len(findings), maxRemarks)] {
		log = append(log, LogEntry{At: at, Revision: revision, Pointer: f.pointer, Message: f.message})
	}
	return log
}

// addContext adds the action and the document to an error and keeps its code and fix.
func addContext(doing string, ref Ref, err error) error {
	return wrapError(err, doing+" session "+ref.Workflow+"/"+ref.ID)
}

// storeError adds the action and the document to an error of the store, which may mean that
// the document does not exist.
func (s *Service) storeError(doing string, ref Ref, err error) error {
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return notFound(Name{Project: ref.Project, Workflow: ref.Workflow, ID: ref.ID})
	}
	return addContext(doing, ref, err)
}

// wrapError adds the action to an error and keeps its code and fix. It returns nil for nil.
func wrapError(err error, doing string) error {
	if err == nil {
		return nil
	}
	wrapped := guideway.Errorf(guideway.ErrorCode(err), "%s: %w", doing, err)
	wrapped.Fix = guideway.ErrorFix(err)
	return wrapped
}

// Ref identifies a session document. All fields are part of its key.
type Ref struct {
	// User is the owner of the document.
	User string `json:"-"`
	// Project is the id of the project, 12 hexadecimal digits.
	Project  string `json:"projectId"`
	Workflow string `json:"workflowId"`
	ID       string `json:"id"`
}

// Document is a session document: free-form JSON that an agent maintains for a person to
// view.
type Document struct {
	Ref
	// ProjectPath is the directory of the client that created the document.
	ProjectPath string    `json:"projectPath,omitempty"`
	Created     time.Time `json:"createdAt"`
	Updated     time.Time `json:"updatedAt"`
	// Revision counts the changes, starting at 1.
	Revision int64 `json:"revision"`
	// Data is the document itself. Its numbers are json.Number.
	Data map[string]any `json:"data"`
	// Sealed and SealedDashboard are the stored forms of Data and of the dashboard in the
	// Summary if the document is encrypted; Data is then not stored.
	Sealed          []byte `json:"-"`
	SealedDashboard []byte `json:"-"`
}

// LogEntry is a line of a document's validation log. Validation never refuses a document.
type LogEntry struct {
	At time.Time `json:"at"`
	// Revision is the validated revision.
	Revision int64 `json:"revision"`
	// Pointer is the JSON pointer to the value that the message describes.
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// Store stores session documents durably. Each writing method is one transaction and adds
// one change to the feed. Errors have a code, like the errors of run.Journal.
type Store interface {
	Documents
	Finder
}

// Documents are the methods for one document.
type Documents interface {
	// CreateDocument stores a new document. If a document with its Ref exists, the error
	// has CodeConflict; a deleted document is replaced and can no longer be restored.
	CreateDocument(ctx context.Context, d Document, log []LogEntry) error
	// UpdateDocument atomically replaces a document with the result of change, which may be
	// called more than once. An error of change is returned unchanged, and nothing is
	// stored.
	UpdateDocument(ctx context.Context, ref Ref, change func(Document) (Document, []LogEntry, error)) (Document, error)
	// DeleteDocument removes a document from all lists; RestoreDocument restores it. If the
	// document does not exist, the error has CodeNotFound.
	DeleteDocument(ctx context.Context, ref Ref, at time.Time) error
	RestoreDocument(ctx context.Context, ref Ref, at time.Time) error
	// PurgeDocument erases a document that DeleteDocument removed, so that it cannot be
	// restored. If there is none, the error has CodeNotFound.
	PurgeDocument(ctx context.Context, ref Ref) error
}

// Finder finds documents.
type Finder interface {
	// Documents lists documents, the last changed first. Empty fields of the filter's Ref,
	// except the user, do not filter.
	Documents(ctx context.Context, f Filter) ([]Document, error)
	// Summaries lists the documents that Documents lists, without reading their data: its
	// cost does not grow with the size of the documents.
	Summaries(ctx context.Context, f Filter) ([]Summary, error)
	// Projects lists the projects that have documents or runs of the user.
	Projects(ctx context.Context, user string) ([]ProjectSummary, error)
	// ValidationLog returns the newest entries of a document's log, newest first.
	ValidationLog(ctx context.Context, ref Ref, limit int) ([]LogEntry, error)
}

// Filter selects documents.
type Filter struct {
	// Ref has the fields to compare; an empty field except the user matches all documents.
	Ref Ref
	// Limit is the maximum number of documents; 0 means 1000.
	Limit int
}

// ProjectSummary is a project in a list.
type ProjectSummary struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	Updated  time.Time `json:"updatedAt"`
	Sessions int       `json:"sessionCount"`
	Runs     int       `json:"runCount"`
	// Workflows are the ids of the workflows of the documents and runs.
	Workflows []string `json:"workflows"`
}
