package checkpoint

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// Index stores the metadata of checkpoints. A successful change to a database
// survives the end of the process and of the machine. Methods are safe for concurrent use
// by many goroutines and processes. Errors have a code, like the errors of run.Journal;
// blob.IsFull detects the errors of a full disk.
//
// It does not read blobs and does not depend on their encoding. Package indextest contains
// the test suite of every implementation.
type Index interface {
	// Apply applies a change to one series atomically.
	Apply(ctx context.Context, c Change) error
	Finder
	Auditor
}

// Finder reads metadata.
type Finder interface {
	// Checkpoint returns a record. The error has CodeNotFound if none exists.
	Checkpoint(ctx context.Context, id string) (Record, error)
	// Chain returns the records needed to read a checkpoint: its record, its base, the base
	// of that base and so on; most limits their number. The chain ends before a missing
	// record, and is empty if the first record is missing.
	Chain(ctx context.Context, id string, most int) ([]Record, error)
	// Checkpoints returns records, the last added first unless f.Any is set.
	Checkpoints(ctx context.Context, f Filter) ([]Record, error)
	// History returns the checkpoints of a series, the highest number first unless h.Oldest
	// is set.
	History(ctx context.Context, key SeriesKey, h History) ([]Record, error)
	// Series returns a series. If it does not exist, only the key of the result is set.
	Series(ctx context.Context, key SeriesKey) (Series, error)
	// ListSeries returns series, the least recently touched first.
	ListSeries(ctx context.Context, f SeriesFilter) ([]Series, error)
	// Totals returns the sums over all series.
	Totals(ctx context.Context) (Totals, error)
	// Deleted reports which of the ids were removed. It may forget ids removed more than a
	// month ago.
	Deleted(ctx context.Context, ids []string) (map[string]bool, error)
}

// Auditor stores the audit log.
type Auditor interface {
	// Note appends entries to the log; Apply appends the entries of its change.
	Note(ctx context.Context, list []Entry) error
	// Notes returns the last entries, the newest first. An empty user means all users.
	Notes(ctx context.Context, user string, limit int) ([]Entry, error)
}

// Change is an atomic change of one series. The caller has read the series before; if the
// series has changed since, Apply returns CodeConflict and changes nothing.
type Change struct {
	Series SeriesKey
	// Add is a new record. Its id must be free, its parent must exist, and its number must
	// be the last number of the series plus one. With Adopt the parent may be missing, and
	// any unused number is allowed. A fragment has no number.
	Add   *Record
	Adopt bool
	// Terms are the search terms of Add; see package words.
	Terms []string
	// Swaps change the forms of checkpoints.
	Swaps []Swap
	// Remove has the records to remove. Apply returns CodeConflict if a record is already
	// missing, has another blob, or is the base of a record that remains. Successors get the
	// parent of the removed record. A series ends with its last record; a new series with the
	// same key begins with the number 1.
	Remove []Removal
	// Marks set the errors of records.
	Marks []Mark
	// At is the time of the change. With Touch it becomes the Touched time of the series,
	// unless that is later.
	At    time.Time
	Touch bool
	// Audit entries are appended to the log.
	Audit []Entry
}

// Swap replaces the form of a checkpoint. Apply returns CodeConflict if the blob is no
// longer Old, or the new base does not exist.
type Swap struct {
	ID  string
	Old blob.Name
	New Form
}

// Removal removes a checkpoint with the given blob, which the caller then removes.
type Removal struct {
	ID   string
	Blob blob.Name
}

// Mark sets or clears the error of a record.
type Mark struct {
	ID      string
	Problem string
}

// Filter selects checkpoints. An empty field matches all.
type Filter struct {
	User, Session, Workflow, Project, Run string
	// Since and Until bound the time of creation; Until is exclusive.
	Since, Until time.Time
	// Tags must all match.
	Tags []string
	// The words of Query must all match in name, tags, workflow or context. With Any one
	// match is enough, the best match comes first, and Before does not apply.
	Query words.Query
	Any   bool
	// Parent selects the successors of a checkpoint, Base the checkpoints stored against a
	// base, Key the checkpoints encrypted with a data key.
	Parent, Base, Key string
	// Heads selects checkpoints without a successor.
	Heads bool
	// Fragments selects fragments instead of checkpoints; All selects both.
	Fragments, All bool
	// Before continues a list after a record.
	Before *Cursor
	// Limit is the maximum number of results; 0 means 100.
	Limit int
}

// Cursor is a position in a list.
type Cursor struct {
	Pos int64
	ID  string
}

// History bounds a list of the checkpoints of a series.
type History struct {
	// Below selects lower numbers; 0 selects all.
	Below int64
	// Oldest begins with the lowest number.
	Oldest bool
	// Limit is the maximum number of results; 0 means all.
	Limit int
}

// SeriesFilter selects series. An empty field matches all.
type SeriesFilter struct {
	User string
	// Before selects series last touched before that time.
	Before time.Time
	// Limit is the maximum number of results; 0 means all.
	Limit int
}
