package session

import (
	"context"
	"time"
)

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
