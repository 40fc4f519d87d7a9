package checkpoint

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/secret"
)

// Mode says what keeps the metadata.
type Mode string

// The modes.
const (
	ModeSQLite   Mode = "sqlite"
	ModePostgres Mode = "postgres"
	ModeFiles    Mode = "files"
	// ModeMemory is lost with the process.
	ModeMemory Mode = "memory"
)

// Store says where checkpoints are kept. It is in every answer.
type Store struct {
	Mode Mode `json:"mode"`
	// Note says why it is not the mode that was asked for.
	Note string `json:"note,omitempty"`
}

// Warning is something that the caller should know, beside the answer.
type Warning struct {
	// Code is one of the Warn constants.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Path is the place in the context, where it is about one.
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
)

// SaveRequest saves a context.
type SaveRequest struct {
	// Session names the line; see SessionID. Empty derives a new one.
	Session string
	// Run and RunSeq are set where the session is a run.
	Run    string
	RunSeq int64
	// Context is a JSON object.
	Context  json.RawMessage
	Workflow string
	Project  string
	Agent    string
	Name     string
	Tags     []string
	// Kind is KindManual if empty.
	Kind Kind
	// Tokens is what the caller has counted in the context.
	Tokens int64
	// ExpectedHead is the checkpoint that the caller's context began from. Where
	// that has a successor already, this one begins a branch. Empty follows the
	// last one.
	ExpectedHead string
	// Once says that a run's event has at most one such checkpoint, whoever saves
	// it: its id follows from Run and RunSeq. One that is there is the answer, as it
	// is. One that was deleted is not saved again, and none comes behind one of a
	// later event: that is CodeRefused.
	Once bool

	// id and created are those of an import.
	id      string
	created time.Time
}

// Saved is a checkpoint that was saved: it is there for good.
type Saved struct {
	Record
	// Head is what ExpectedHead was overtaken by: the last checkpoint of the line
	// before this one. It is set where this one began a branch.
	Head     string    `json:"head,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	Store    Store     `json:"store"`
}

// LoadRequest loads a checkpoint: by its id, or the last one of a session.
type LoadRequest struct {
	ID      string
	Session string
	// Keys are the top-level keys that are wanted; none is all.
	Keys []string
}

// Loaded is a context as it was saved.
type Loaded struct {
	Record
	Context json.RawMessage `json:"context"`
	// Missing are the keys that were asked for and are not there.
	Missing []string `json:"missing,omitempty"`
	// Degraded says that this is not the checkpoint that was asked for.
	Degraded *Degraded `json:"degraded,omitempty"`
	// Heads are the last checkpoints of the line's other branches.
	Heads    []string  `json:"otherHeads,omitempty"`
	Warnings []Warning `json:"warnings,omitempty"`
	Store    Store     `json:"store"`
}

// Degraded tells of a checkpoint that cannot be read.
type Degraded struct {
	// Wanted is the checkpoint that was meant.
	Wanted string `json:"wanted"`
	// Problem says what is wrong with it.
	Problem string `json:"problem"`
	// Passed are all that were tried in vain, Wanted among them.
	Passed []string `json:"passed"`
}

// ListRequest lists checkpoints of the caller.
type ListRequest struct {
	Session, Workflow, Project string
	Since, Until               time.Time
	Tags                       []string
	// Query is in words.
	Query string
	// Limit bounds the answer; 0 is 20, the most is 200.
	Limit  int
	Cursor string
}

// Page is a part of a list.
type Page struct {
	Checkpoints []Record `json:"checkpoints"`
	// Heads are those of them that nothing follows: more than one of a session is
	// a branch.
	Heads []string `json:"heads,omitempty"`
	// Partial says that none has all words of the query: these have some, the
	// best first.
	Partial bool `json:"partial,omitempty"`
	// Wordless says that what is saved is encrypted, so that no query finds it.
	Wordless bool   `json:"-"`
	Next     string `json:"nextCursor,omitempty"`
	Store    Store  `json:"store"`
}

// DeleteRequest names what goes: checkpoints, or a session as a whole.
type DeleteRequest struct {
	IDs     []string
	Session string
}

// Deleted is what has gone.
type Deleted struct {
	Checkpoints []string `json:"checkpoints"`
	Stored      int64    `json:"storedBytes"`
	// Erased says that the data keys were destroyed: what they encrypted is gone
	// wherever it lay. Otherwise files were unlinked; their blocks may last until
	// they are used again, and so may backups.
	Erased bool  `json:"erased"`
	Store  Store `json:"store"`
}

// ValueChange is a value that differs between two contexts.
type ValueChange struct {
	// Path is the RFC 6901 pointer to the value.
	Path string `json:"path"`
	// Op is "added", "removed" or "changed".
	Op string `json:"op"`
	// Before and After are the values, cut where they are long.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// Difference is what changed between two checkpoints.
type Difference struct {
	From    Record        `json:"from"`
	To      Record        `json:"to"`
	Changes []ValueChange `json:"changes"`
	// More says that there are more changes than are listed.
	More  bool  `json:"more,omitempty"`
	Store Store `json:"store"`
}

// CleanupRequest says what may go.
type CleanupRequest struct {
	// OlderThan chooses sessions without activity for so long; 0 chooses all.
	OlderThan time.Duration
	// KeepLast is how many of each session stay; 0 is none.
	KeepLast int
	// User bounds it to one user; empty is all.
	User string
	// DryRun only says what would go.
	DryRun bool
}

// Cleaned is what a cleanup has removed.
type Cleaned struct {
	Sessions    int   `json:"sessions"`
	Checkpoints int   `json:"checkpoints"`
	Stored      int64 `json:"storedBytes"`
	// Kept counts sessions that would have gone, but belong to active runs.
	Kept   int  `json:"kept"`
	DryRun bool `json:"dryRun,omitempty"`
}

// Report is what a verification has found.
type Report struct {
	Checkpoints int `json:"checkpoints"`
	// Pieces are contexts that were reduced and are kept to be read again.
	Pieces  int       `json:"pieces"`
	Bytes   int64     `json:"bytes"`
	Damaged []Finding `json:"damaged"`
	// Healed are those that were marked as damaged and can be read.
	Healed []string `json:"healed,omitempty"`
	// Unknown counts blobs that the index knows nothing of; Rebuild takes them up.
	Unknown int   `json:"unknown"`
	Store   Store `json:"store"`
}

// Finding is a checkpoint that cannot be read.
type Finding struct {
	Checkpoint string `json:"checkpointId"`
	LineKey
	Problem string `json:"problem"`
}

// Rebuilt is what was taken from the blobs.
type Rebuilt struct {
	// Adopted were not in the index.
	Adopted int `json:"adopted"`
	// Mended were there with a blob that is gone, and have another one now.
	Mended int `json:"mended"`
	// Damaged are blobs that say nothing of what they are.
	Damaged int `json:"damaged"`
}

// Upkept is what maintenance has done.
type Upkept struct {
	Rebuilt
	Swept  Sweeping `json:"swept"`
	Folded int      `json:"folded"`
	// Checked were read, Damaged of them could not be.
	Checked int     `json:"checked"`
	Damaged int     `json:"damagedCheckpoints"`
	Retired Cleaned `json:"retired"`
}

// Sweeping is what a sweep has removed.
type Sweeping struct {
	Blobs     int   `json:"blobs"`
	Bytes     int64 `json:"bytes"`
	Leftovers int   `json:"leftovers"`
	Keys      int   `json:"keys"`
}

// Stats are figures about what is stored.
type Stats struct {
	Totals
	// Ratio is Bytes by Stored.
	Ratio float64 `json:"ratio"`
	// Limit is what may be stored in all; 0 is no limit.
	Limit int64 `json:"limitBytes"`
	// Sessions are the largest, at most 20.
	Sessions []Line `json:"sessions"`
	// Growth is per day, the last one last; at most 30 days with anything.
	Growth []Day `json:"growth"`
	// Oldest and Newest are the first and the last activity.
	Oldest time.Time `json:"oldest,omitzero"`
	Newest time.Time `json:"newest,omitzero"`
	Store  Store     `json:"store"`
}

// Day is what one day has brought, of what is still there.
type Day struct {
	Date        string `json:"date"`
	Checkpoints int    `json:"checkpoints"`
	Bytes       int64  `json:"bytes"`
	Stored      int64  `json:"storedBytes"`
}

// secretWarnings tells of findings.
func secretWarnings(findings []secret.Finding) []Warning {
	var list []Warning
	for _, f := range findings {
		list = append(list, Warning{
			Code: WarnSecret, Path: f.Path,
			Message: "this looks like a secret (" + f.Rule + "); leave it out, or turn encryption on",
		})
	}
	return list
}
