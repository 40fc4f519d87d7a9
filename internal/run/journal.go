package run

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
)

// Journal keeps runs for good. What it acknowledges survives the end of the
// process and of the machine. It checks no chain and knows no key: that is the
// service's. Every method may be called by many goroutines and many processes
// at once. Errors carry a code: CodeNotFound, CodeConflict, CodeUnavailable (a
// full disk, a lock that does not come free, a database that is away; it may
// work later) or CodeInternal.
//
// package storetest has the contract tests that every implementation passes.
type Journal interface {
	Writer
	Log
	Index
	Feed
	// Close releases the journal. Calls that are under way end first.
	Close() error
}

// Writer adds to a journal. Each method is one transaction, and adds one
// change to the feed.
type Writer interface {
	// Create stores a run with its first events, its definition where that is
	// not there yet, and all else that a Commit has. Its Expected is 0. A run
	// with that id, or a request id that this user has used, is CodeConflict.
	Create(ctx context.Context, d Definition, c Commit) error
	// Append adds events to a run. CodeConflict where the run's last sequence
	// number is not Expected, or the key is known; CodeNotFound where there is
	// no such run.
	Append(ctx context.Context, c Commit) error
}

// Commit is what one command adds.
type Commit struct {
	// Record is the run as it is afterwards. Its Seq is Expected plus the
	// number of events.
	Record Record
	// Expected is the run's last sequence number before.
	Expected int64
	// Events follow Expected without a gap.
	Events []Event
	// Handle is the token that is new with this commit; empty where the
	// position stays. Record.Handle is the current one in both cases. Its
	// sequence number is Record.Seq.
	Handle string
	// Key names the command, unique within the run; "" is none. In Create it
	// names the request, unique for the user.
	Key string
	// Words are what the run is to be found by from now on, besides the words
	// of its Record.
	Words string
	// Snapshot replaces the one that the run has; nil keeps it.
	Snapshot *Snapshot
}

// Log reads what was written.
type Log interface {
	// Events gives up to limit events after a sequence number, in order.
	Events(ctx context.Context, run string, after int64, limit int) ([]Event, error)
	// Snapshot gives the run's, or nil.
	Snapshot(ctx context.Context, run string) (*Snapshot, error)
	// Definition gives a pinned definition, or CodeNotFound.
	Definition(ctx context.Context, hash string) (Definition, error)
	// Outcome gives the sequence number that the commit with a key ended with,
	// and the handle that was current then. With an empty run it finds the run
	// that a user's request id has made. CodeNotFound where there is none.
	Outcome(ctx context.Context, run, user, key string) (Handle, error)
}

// Index finds runs.
type Index interface {
	// Run gives the record of a run, or CodeNotFound.
	Run(ctx context.Context, id string) (Record, error)
	// Handle says what a token stands for, or CodeNotFound.
	Handle(ctx context.Context, token string) (Handle, error)
	// Runs lists runs, the last changed first.
	Runs(ctx context.Context, f Filter) ([]Record, error)
	// Search finds runs by words; see Search.
	Search(ctx context.Context, s Search) ([]Hit, error)
}

// Filter chooses runs. An empty field does not choose.
type Filter struct {
	User     string
	Project  string
	Workflow string
	Statuses []engine.Status
	// Since and Until bound the time of the last change, Until exclusively.
	Since, Until time.Time
	// Person chooses runs that wait for a person.
	Person bool
	// Before continues a list behind its last record.
	Before *Record
	// Limit bounds the answer; 0 is 100.
	Limit int
}

// Search is a search for runs by words: those of goal, workflow, project, branch
// and notes, stemmed. A run is found by any of the words; more of them, and rarer
// ones, rank higher. Words never are a query language.
type Search struct {
	Filter Filter
	Words  []string
}

// Hit is a run that was found.
type Hit struct {
	Record Record
	// Score is higher for a better match; only comparable within one answer.
	Score float64
	// Excerpt is a piece of the words that matched; it may be empty.
	Excerpt string
}

// Feed tells of changes, across processes.
type Feed interface {
	// Changes gives up to limit changes after a position of the feed, in
	// order, each exactly once. What was committed later has a higher position,
	// and no position becomes visible before a lower one. reset says that some
	// after the position are gone for good; the answer begins at the oldest.
	Changes(ctx context.Context, after int64, limit int) (list []Change, reset bool, err error)
	// Latest gives the position of the last change, or 0.
	Latest(ctx context.Context) (int64, error)
	// Watch gets a value soon after every change, of any process, until the
	// context ends and it is closed. Values for several changes may be one.
	Watch(ctx context.Context) <-chan struct{}
}

// Change says that something has changed.
type Change struct {
	// Pos is the position in the feed, 1-based and rising.
	Pos int64     `json:"pos"`
	At  time.Time `json:"at"`
	// Subject is "run" or "session", Op "created", "changed" or "deleted".
	Subject string `json:"subject"`
	Op      string `json:"op"`
	// User may see it.
	User string `json:"-"`
	// ID is the run's or the session document's; Workflow and Project go with
	// a session document's.
	ID       string `json:"id"`
	Workflow string `json:"workflowId,omitempty"`
	Project  string `json:"projectId,omitempty"`
	// Seq is the run's last sequence number, or the document's revision.
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
