package checkpoint

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Index keeps what is known of checkpoints. What it acknowledges survives the end
// of the process and of the machine. Methods may be called by many goroutines and
// processes at once. Errors carry a code, as those of run.Journal do; one that came
// of a full disk is found by blob.IsFull.
//
// It does not read blobs and knows nothing of their encoding. Package indextest
// has the suite that every implementation passes.
type Index interface {
	// Apply makes a change to one line: all of it, or none.
	Apply(ctx context.Context, c Change) error
	Finder
	Auditor
}

// Finder reads what is known.
type Finder interface {
	// Checkpoint gives a record, or CodeNotFound.
	Checkpoint(ctx context.Context, id string) (Record, error)
	// Chain gives a record, the one that it has as its base, the base of that and so
	// on, at most so many: what it takes to read a checkpoint. It ends early where one
	// is not there, and is empty where the first is not.
	Chain(ctx context.Context, id string, most int) ([]Record, error)
	// Checkpoints lists records, the last added first.
	Checkpoints(ctx context.Context, f Filter) ([]Record, error)
	// History lists the checkpoints of a line by their numbers.
	History(ctx context.Context, key LineKey, h History) ([]Record, error)
	// Line gives a line; one with nothing but its key where there is none.
	Line(ctx context.Context, key LineKey) (Line, error)
	// Lines lists lines, the longest untouched first.
	Lines(ctx context.Context, f LineFilter) ([]Line, error)
	// Totals adds up all lines.
	Totals(ctx context.Context) (Totals, error)
	// Deleted says which of some checkpoints were removed. It may forget what was
	// removed more than a month ago.
	Deleted(ctx context.Context, ids []string) (map[string]bool, error)
}

// Auditor keeps the audit log.
type Auditor interface {
	// Note adds entries, besides those that changes bring.
	Note(ctx context.Context, list []Entry) error
	// Notes gives the last entries, the newest first. An empty user is all users.
	Notes(ctx context.Context, user string, limit int) ([]Entry, error)
}

// Change is what happens to a line at once. Whoever makes it has looked at the
// line before; where that has changed since, it is CodeConflict and nothing
// happens.
type Change struct {
	Line LineKey
	// Add is a new record. Its id must be free, and its number must be the line's
	// last one and one; with Adopt it must only be free. A piece has no number.
	Add   *Record
	Adopt bool
	// Words are what it is to be found by, besides its name, tags and workflow;
	// NoWords has it found by no words at all.
	Words   string
	NoWords bool
	// Swaps change how checkpoints are stored.
	Swaps []Swap
	// Remove has ids of records that go. One that is gone already, or one that a
	// record that stays has as its base, is CodeConflict. Successors get the
	// parent of what they followed. A line ends with its last record, and then
	// begins again with the number 1.
	Remove []string
	// Marks set the problems of records.
	Marks []Mark
	// At is when; the line's Touched becomes this where it is later and Touch says
	// so.
	At    time.Time
	Touch bool
	// Audit goes into the log.
	Audit []Entry
}

// Swap replaces the form of a checkpoint. CodeConflict where its blob is no
// longer Old, or the new base is not there.
type Swap struct {
	ID  string
	Old blob.Name
	New Form
}

// Mark sets or clears a record's problem.
type Mark struct {
	ID      string
	Problem string
}

// Filter chooses checkpoints. An empty field does not choose.
type Filter struct {
	User, Session, Workflow, Project, Run string
	// Since and Until bound the time of creation, Until exclusively.
	Since, Until time.Time
	// Tags must all be there.
	Tags []string
	// Words must all be there, stemmed, in name, tags, workflow or context. Words
	// are never a query language. With Any one of them is enough, the best match
	// comes first, and Before does not apply.
	Words []string
	Any   bool
	// Parent chooses successors, Base what depends on a checkpoint, Key what is
	// encrypted with a data key.
	Parent, Base, Key string
	// Heads chooses those that nothing follows.
	Heads bool
	// Pieces chooses pieces in place of checkpoints; All both.
	Pieces, All bool
	// Before continues a list behind a record.
	Before *Cursor
	// Limit bounds the answer; 0 is 100.
	Limit int
}

// Cursor is a place in a list.
type Cursor struct {
	Pos int64
	ID  string
}

// History bounds a list of a line's checkpoints.
type History struct {
	// Below chooses lower numbers; 0 chooses all.
	Below int64
	// Oldest begins with the lowest number.
	Oldest bool
	// Limit bounds the answer; 0 is all.
	Limit int
}

// LineFilter chooses lines. An empty field does not choose.
type LineFilter struct {
	User string
	// Before chooses lines that were last touched before.
	Before time.Time
	// Limit bounds the answer; 0 is all.
	Limit int
}
