package run

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// Journal stores runs durably. What it acknowledges survives the end of the process and of
// the machine. It neither checks chains nor has the key; the service does both. All methods
// are safe for concurrent use by goroutines and processes. Errors have a code:
// CodeNotFound, CodeConflict, CodeUnavailable (a full disk, a lock timeout, an unreachable
// database; a retry may succeed) or CodeInternal.
//
// Package storetest has the contract tests that every implementation passes.
type Journal interface {
	Writer
	Log
	Index
	Feed
	// Close waits for calls in progress and releases the journal.
	Close() error
}

// Writer adds to a journal. Each method is one transaction and adds one change to the feed.
type Writer interface {
	// Create stores a run with its first events, its definition if it is not stored yet,
	// and the other parts of the Commit. Expected must be 0. It returns CodeConflict if the
	// run id exists or the user has used the request id.
	Create(ctx context.Context, d Definition, c Commit) error
	// Append adds events to a run. It returns CodeConflict if the last sequence number of
	// the run is not Expected or if the key exists, and CodeNotFound if the run does not
	// exist.
	Append(ctx context.Context, c Commit) error
}

// Commit is the effect of one command.
type Commit struct {
	// Record is the run after the commit. Its Seq is Expected plus the number of events.
	Record Record
	// Expected is the last sequence number of the run before the commit.
	Expected int64
	// Events follow Expected without a gap.
	Events []Event
	// Handle is the new handle, or empty if the position does not change. Record.Handle is
	// the current handle in both cases. The sequence number of the handle is Record.Seq.
	Handle string
	// Key identifies the command and is unique within the run. In Create it identifies the
	// request and is unique for the user. Key may be empty.
	Key string
	// Terms are search terms of the run, in addition to those of earlier commits. See package
	// words.
	Terms []string
	// Snapshot replaces the snapshot of the run. If it is nil, the old snapshot is kept.
	Snapshot *Snapshot
	// Drive changes which instance drives the run; nil changes nothing.
	Drive *DriveChange
	// Job is stored with the commit; nil stores none. See package cluster.
	Job *Job
}

// Log reads the log of a run.
type Log interface {
	// Events returns up to limit events after a sequence number, in order.
	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error)
	// Snapshot returns the snapshot of the run, or nil.
	Snapshot(ctx context.Context, run string) (*Snapshot, error)
	// Definition returns a pinned definition, or CodeNotFound.
	Definition(ctx context.Context, hash string) (Definition, error)
	// Outcome returns the last sequence number of the commit with a key, and the handle
	// that was current then. With an empty run it finds the run that a user's request id
	// has started. It returns CodeNotFound if the key is unknown.
	Outcome(ctx context.Context, run, user, key string) (Handle, error)
}

// Index finds runs.
type Index interface {
	// Run returns the record of a run, or CodeNotFound.
	Run(ctx context.Context, id string) (Record, error)
	// Handle returns the run and the position of a token, or CodeNotFound.
	Handle(ctx context.Context, token string) (Handle, error)
	// Runs lists runs, with the last changed one first.
	Runs(ctx context.Context, f Filter) ([]Record, error)
	// Search finds runs by words; see the type Search.
	Search(ctx context.Context, s Search) ([]Hit, error)
}

// Filter selects runs. Empty fields match all runs.
type Filter struct {
	User     string
	Project  string
	Workflow string
	Statuses []engine.Status
	// Since and Until bound the time of the last change. Until is exclusive.
	Since, Until time.Time
	// Users selects the runs of several users, and IDs several runs.
	Users, IDs []string
	// Person selects runs that wait for a person.
	Person bool
	// Before continues a list after its last record.
	Before *Record
	// Limit bounds the answer. The default is 100.
	Limit int
}

// Search is a search for runs by words of goal, workflow, project, branch, notes and
// outputs. A run matches if it contains any of the words. More words and rarer words rank
// higher, and whole words higher than beginnings of words.
type Search struct {
	Filter Filter
	Query  words.Query
}

// Hit is a run that matches a search.
type Hit struct {
	Record Record
	// Score is higher for a better match. Scores of different answers cannot be compared.
	Score float64
	// Seq is the last event of a commit that matches.
	Seq int64
}

// Feed reports changes of all processes.
type Feed interface {
	// Changes returns up to limit changes after a position of the feed, in order, each
	// exactly once. Later commits have higher positions, and no position becomes visible
	// before a lower one. reset reports that some changes after the position are no longer
	// available; the answer then begins at the oldest.
	Changes(ctx context.Context, after int64, limit int) (list []Change, reset bool, err error)
	// Latest returns the position of the last change, or 0.
	Latest(ctx context.Context) (int64, error)
	// Watch sends a value soon after every change of any process. The channel is closed
	// when the context ends. One value may represent several changes.
	Watch(ctx context.Context) <-chan struct{}
}

// Change is an entry of the feed.
type Change struct {
	// Pos is the position in the feed, starting at 1 and ascending.
	Pos int64     `json:"pos"`
	At  time.Time `json:"at"`
	// Subject is "run" or "session", Op "created", "changed" or "deleted".
	Subject string `json:"subject"`
	Op      string `json:"op"`
	// User is the only user who may see the change.
	User string `json:"-"`
	// ID is the id of the run or of the session document. Workflow and Project may be empty
	// for a run.
	ID       string `json:"id"`
	Workflow string `json:"workflowId,omitempty"`
	Project  string `json:"projectId,omitempty"`
	// Seq is the last sequence number of the run, or the revision of the document.
	Seq int64 `json:"seq"`
}

// The subjects and operations of changes.
const (
	SubjectRun     = "run"
	SubjectSession = "session"
	OpCreated      = "created"
	OpChanged      = "changed"
	OpDeleted      = "deleted"
)
