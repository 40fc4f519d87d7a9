package session

import (
	"context"
	"time"
)

// Ref names a session document. All parts belong to its key.
type Ref struct {
	// User owns the document.
	User string `json:"-"`
	// Project is the id of the project, 12 hexadecimal digits.
	Project  string `json:"projectId"`
	Workflow string `json:"workflowId"`
	ID       string `json:"id"`
}

// Document is a session document: free-form JSON that an agent keeps for a
// person to look at.
type Document struct {
	Ref
	// ProjectPath is where the client worked when it was created.
	ProjectPath string    `json:"projectPath,omitempty"`
	Created     time.Time `json:"createdAt"`
	Updated     time.Time `json:"updatedAt"`
	// Revision counts the changes, from 1 on.
	Revision int64 `json:"revision"`
	// Data is the document itself; numbers in it are json.Number.
	Data map[string]any `json:"data"`
}

// LogEntry is a line of a document's validation log. Validation never blocks.
type LogEntry struct {
	At time.Time `json:"at"`
	// Revision is the one that was validated.
	Revision int64 `json:"revision"`
	// Pointer is the JSON pointer to the value in question.
	Pointer string `json:"pointer"`
	Message string `json:"message"`
}

// Store keeps session documents. What it acknowledges survives. Each writing
// method is one transaction and adds one change to the feed. Errors carry a
// code, as those of run.Journal do.
type Store interface {
	Documents
	Finder
}

// Documents are the methods for one document.
type Documents interface {
	// CreateDocument stores a new one. CodeConflict where there is one with
	// that Ref; a deleted one is replaced, and can no longer be restored.
	CreateDocument(ctx context.Context, d Document, log []LogEntry) error
	// UpdateDocument reads a document, lets change make the next one of it and
	// stores that, with nobody in between. change may be called more than
	// once. An error of change is returned as it is, and nothing is stored.
	UpdateDocument(ctx context.Context, ref Ref, change func(Document) (Document, []LogEntry, error)) (Document, error)
	// DeleteDocument takes a document out of all lists; RestoreDocument brings
	// it back. CodeNotFound where there is none.
	DeleteDocument(ctx context.Context, ref Ref, at time.Time) error
	RestoreDocument(ctx context.Context, ref Ref, at time.Time) error
}

// Finder finds documents.
type Finder interface {
	// Documents lists documents, the last changed first. An empty field of the
	// Ref in the filter does not choose, but for the user's.
	Documents(ctx context.Context, f Filter) ([]Document, error)
	// Summaries lists what Documents does, without a look at the data: its cost
	// does not grow with the size of the documents.
	Summaries(ctx context.Context, f Filter) ([]Summary, error)
	// Projects lists the projects that have documents or runs of the user.
	Projects(ctx context.Context, user string) ([]ProjectSummary, error)
	// ValidationLog gives the newest entries of a document's log, newest first.
	ValidationLog(ctx context.Context, ref Ref, limit int) ([]LogEntry, error)
}

// Filter chooses documents.
type Filter struct {
	Ref Ref
	// Limit bounds the answer; 0 is 1000.
	Limit int
}

// ProjectSummary is a project in a list.
type ProjectSummary struct {
	ID       string    `json:"id"`
	Path     string    `json:"path"`
	Updated  time.Time `json:"updatedAt"`
	Sessions int       `json:"sessionCount"`
	Runs     int       `json:"runCount"`
	// Workflows are the ids of workflows that documents or runs are about.
	Workflows []string `json:"workflows"`
}
