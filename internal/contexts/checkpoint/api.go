package checkpoint

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/secret"
)

// Mode is the kind of index.
type Mode string

// The modes.
const (
	ModeSQLite   Mode = "sqlite"
	ModePostgres Mode = "postgres"
	ModeFiles    Mode = "files"
	// ModeMemory is an index that is lost when the process ends.
	ModeMemory Mode = "memory"
)

// Store describes where checkpoints are stored. Most results contain it.
type Store struct {
	Mode Mode `json:"mode"`
	// Note is the reason why the mode is not the configured one.
	Note string `json:"note,omitempty"`
}

// Warning is a remark on an answer.
type Warning struct {
	// Code is one of the Warn constants.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Path is the JSON pointer to the value in the context; it may be empty.
	Path string `json:"path,omitempty"`
}

// The codes of warnings.
const (
	WarnSecret  = "likely-secret"
	WarnBranch  = "branch"
	WarnLine    = "session-storage"
	WarnTotal   = "total-storage"
	WarnCleaned = "cleaned"
	WarnMemory  = "memory-only"
	WarnRenamed = "session-renamed"
)

// SaveRequest is the request of Save.
type SaveRequest struct {
	// Session is the id of the series; see SessionID. If it is empty, Save derives a new
	// id.
	Session string
	// Run and RunSeq are set if the session is a run.
	Run    string
	RunSeq int64
	// Context is a JSON object.
	Context json.RawMessage
	// Tree is the decoded Context, if Context is jsontext.Marshal of it; otherwise nil.
	Tree     map[string]any
	Workflow string
	Project  string
	Agent    string
	Name     string
	Tags     []string
	// Kind is KindManual if empty.
	Kind Kind
	// Tokens is the number of tokens of the context. If it is 0, Save estimates it.
	Tokens int64
	// ExpectedHead is the checkpoint that the caller's context is based on. If it already
	// has a successor, the new checkpoint begins a branch. If it is empty, the new
	// checkpoint follows the last one.
	ExpectedHead string
	// Once saves at most one checkpoint per event of a run: its id is derived from Run and
	// RunSeq. If the checkpoint exists, Save returns it. If it was deleted, or a checkpoint
	// of a later event exists, Save returns CodeRefused.
	Once bool

	// id and created are set by an import.
	id      string
	created time.Time
}

// Saved is a stored checkpoint.
type Saved struct {
	Record
	// Head is the last checkpoint of the series before this one, if this one began a
	// branch.
	Head     string    `json:"head,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	Store    Store     `json:"store"`
}

// LoadRequest selects a checkpoint by its id, or the last checkpoint of a session.
type LoadRequest struct {
	ID      string
	Session string
	// Keys are the requested top-level keys; empty means all.
	Keys []string
}

// Loaded is a saved context, or the requested keys of it.
type Loaded struct {
	Record
	Context json.RawMessage `json:"context"`
	// Missing are the requested keys that the context does not contain.
	Missing []string `json:"missing,omitempty"`
	// Degraded is set if the requested checkpoint cannot be read and an older one was
	// loaded.
	Degraded *Degraded `json:"degraded,omitempty"`
	// Heads are the last checkpoints of the other branches of the series.
	Heads    []string  `json:"otherHeads,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	Store    Store     `json:"store"`
}

// Degraded describes a checkpoint that cannot be read.
type Degraded struct {
	// Wanted is the requested checkpoint.
	Wanted string `json:"wanted"`
	// Problem is the error.
	Problem string `json:"error"`
	// Passed are all unreadable checkpoints that were tried, including Wanted.
	Passed []string `json:"passed"`
}

// ListRequest selects checkpoints of the caller.
type ListRequest struct {
	Session, Workflow, Project string
	Since, Until               time.Time
	Tags                       []string
	// Query consists of plain words.
	Query string
	// Reduced includes the fragments: the whole contexts that reductions stored.
	Reduced bool
	// Limit is the maximum number of results; the default is 20, the maximum 200.
	Limit  int
	Cursor string
}

// Page is one page of a list.
type Page struct {
	Checkpoints []Record `json:"checkpoints"`
	// Heads are the listed checkpoints without a successor. If a session has more than one,
	// it has branches.
	Heads []string `json:"heads,omitempty"`
	// Partial reports that no checkpoint matches all words of the query. The results then
	// match some of the words, the best matches first.
	Partial bool `json:"partial,omitempty"`
	// Wordless reports that the master key is missing, so that no query matches encrypted
	// checkpoints.
	Wordless bool   `json:"-"`
	Next     string `json:"nextCursor,omitempty"`
	Store    Store  `json:"store"`
}

// DeleteRequest selects checkpoints, or a whole session.
type DeleteRequest struct {
	IDs     []string
	Session string
}

// Deleted is the result of Delete.
type Deleted struct {
	Checkpoints []string `json:"checkpoints"`
	// Reduced are the deleted fragments.
	Reduced []string `json:"reduced,omitempty"`
	Stored  int64    `json:"storedBytes"`
	// Erased reports that the data keys were destroyed, so that no copy of the encrypted
	// content can be read. Otherwise only the blobs were removed; the disk and backups may
	// still contain them.
	Erased bool  `json:"erased"`
	Store  Store `json:"store"`
}

// ValueChange is a value that differs between two contexts.
type ValueChange struct {
	// Path is the RFC 6901 pointer to the value.
	Path string `json:"path"`
	// Op is "added", "removed" or "changed".
	Op string `json:"op"`
	// Before and After are the values, truncated if they are long.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Difference is the result of Diff.
type Difference struct {
	From    Record        `json:"from"`
	To      Record        `json:"to"`
	Changes []ValueChange `json:"changes"`
	// More reports that the list of changes is incomplete.
	More  bool  `json:"more,omitempty"`
	Store Store `json:"store"`
}

// CleanupRequest selects the checkpoints to remove.
type CleanupRequest struct {
	// OlderThan selects sessions without activity for that long; 0 selects all.
	OlderThan time.Duration
	// KeepLast is the number of checkpoints to keep per session.
	KeepLast int
	// User restricts the cleanup to one user; empty means all.
	User string
	// DryRun only reports the checkpoints to remove.
	DryRun bool
}

// Cleaned is the result of a cleanup.
type Cleaned struct {
	Sessions    int   `json:"sessions"`
	Checkpoints int   `json:"checkpoints"`
	Stored      int64 `json:"storedBytes"`
	// Kept counts the selected sessions whose last checkpoint was kept because their runs
	// are active.
	Kept   int  `json:"kept"`
	DryRun bool `json:"dryRun,omitempty"`
}

// Report is the result of Verify.
type Report struct {
	Checkpoints int `json:"checkpoints"`
	// Fragments counts the stored parts of reduced contexts.
	Fragments int       `json:"pieces"`
	Bytes     int64     `json:"bytes"`
	Damaged   []Finding `json:"damaged"`
	// Healed are checkpoints that were marked as damaged and can be read again.
	Healed []string `json:"healed,omitempty"`
	// Unknown counts the checkpoints that readable blobs contain and the index does not;
	// Rebuild adds those that were not deleted.
	Unknown int   `json:"unknown"`
	Store   Store `json:"store"`
}

// Finding is a checkpoint that cannot be read.
type Finding struct {
	Checkpoint string `json:"checkpointId"`
	SeriesKey
	Problem string `json:"problem"`
}

// Rebuilt is the result of Rebuild.
type Rebuilt struct {
	// Adopted counts checkpoints that were added to the index.
	Adopted int `json:"adopted"`
	// Mended counts records whose blob was missing and that now use a different blob.
	Mended int `json:"repaired"`
	// Damaged counts blobs without a readable header.
	Damaged int `json:"damaged"`
}

// Maintained is the result of Maintain.
type Maintained struct {
	Rebuilt
	Swept  Swept `json:"swept"`
	Folded int   `json:"folded"`
	// Checked counts the checkpoints and fragments that were checked, Damaged the damaged
	// ones among them.
	Checked int     `json:"checked"`
	Damaged int     `json:"damagedCheckpoints"`
	Retired Cleaned `json:"retired"`
}

// Swept is the result of a sweep.
type Swept struct {
	Blobs     int   `json:"blobs"`
	Bytes     int64 `json:"bytes"`
	Leftovers int   `json:"leftovers"`
	Keys      int   `json:"keys"`
}

// Stats are statistics of the store.
type Stats struct {
	Totals
	// Ratio is Bytes divided by Stored.
	Ratio float64 `json:"ratio"`
	// Limit is the maximum total size; 0 means no limit.
	Limit int64 `json:"limitBytes"`
	// Sessions are the 20 largest sessions.
	Sessions []Series `json:"sessions"`
	// Growth has an entry for each day with checkpoints in the last 30 days, the latest day
	// last.
	Growth []Day `json:"growth"`
	// Oldest and Newest are the earliest and the latest time at which a session was last
	// active.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
	Store  Store     `json:"store"`
}

// Day is the growth of one day, counted over existing checkpoints.
type Day struct {
	Date        string `json:"date"`
	Checkpoints int    `json:"checkpoints"`
	Bytes       int64  `json:"bytes"`
	Stored      int64  `json:"storedBytes"`
}

// SecretWarnings returns a warning for each finding of the secret scanner in what is stored
// without encryption.
func SecretWarnings(findings []secret.Finding) []Warning {
	var list []Warning
	for _, f := range findings {
		list = append(list, Warning{
			Code: WarnSecret, Path: f.Path,
			Message: "the value looks like a secret (" + f.Rule + "); remove the value, or turn encryption on with encryption.mode",
		})
	}
	return list
}
