package checkpoint

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/platform/shortid"
)

// Kind is the origin of a checkpoint.
type Kind string

// The kinds.
const (
	// KindManual is a checkpoint that a user or agent requested.
	KindManual Kind = "manual"
	// KindAuto is a checkpoint that was saved automatically.
	KindAuto Kind = "auto"
	// KindFragment is not a checkpoint but an omitted part of a compressed context. Lists of
	// checkpoints exclude it.
	KindFragment Kind = "piece"
)

// SeriesKey identifies a series: one session of one user.
type SeriesKey struct {
	User    string `json:"user"`
	Session string `json:"sessionId"`
}

// Record is the metadata of a checkpoint. Only Parent, Form, Problem and Followed change.
type Record struct {
	// ID is "c_" and 23 letters and digits; the id of a fragment begins with "o_".
	ID string `json:"checkpointId"`
	SeriesKey
	// Run is the id of the run if the session belongs to a run, RunSeq the number of the
	// run's last event.
	Run    string `json:"runId,omitempty"`
	RunSeq int64  `json:"runSeq,omitempty"`
	// Parent is the preceding checkpoint. If the parent is removed, the parent of the
	// parent replaces it.
	Parent string `json:"parentId,omitempty"`
	// Branch reports that the parent already had another successor.
	Branch bool `json:"branch,omitempty"`
	// Number counts the checkpoints of the series from 1, across branches. It is 0 for a
	// fragment.
	Number int64 `json:"number"`
	// Link counts the ancestors, including removed ones.
	Link     int64    `json:"link,omitempty"`
	Workflow string   `json:"workflowId,omitempty"`
	Project  string   `json:"projectId,omitempty"`
	Agent    string   `json:"agentId,omitempty"`
	Name     string   `json:"name,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Kind     Kind     `json:"kind"`
	// Created increases within a series even if the clock goes backwards. It is in UTC,
	// with microseconds.
	Created time.Time `json:"createdAt"`
	// Bytes is the length of the canonical JSON, Tokens the estimated number of tokens.
	Bytes  int64 `json:"bytes"`
	Tokens int64 `json:"tokens,omitempty"`
	// Sum is the SHA-256 of the canonical JSON; empty if it is encrypted with the content.
	Sum []byte `json:"sum,omitempty"`

	Form
	// Problem is the error of the last failed read.
	Problem string `json:"problem,omitempty"`
	// Followed reports that the checkpoint has a successor.
	Followed bool `json:"-"`
	// Pos is the position in lists, assigned by the index; a record added later has a
	// higher one.
	Pos int64 `json:"-"`
}

// Form is the current storage form of a checkpoint.
type Form struct {
	Blob blob.Name `json:"blob"`
	// Stored is the size of the blob.
	Stored int64 `json:"storedBytes"`
	// Base is the checkpoint whose content is needed to read this checkpoint. It is empty
	// if this checkpoint is whole.
	Base string `json:"base,omitempty"`
	// Key is the name of the data key of the blob. It is empty if the blob is not
	// encrypted.
	Key string `json:"key,omitempty"`
}

// Series is the metadata of a series: all checkpoints of a session.
type Series struct {
	SeriesKey
	Run string `json:"runId,omitempty"`
	// Workflow and Project are the workflow and the project of the last checkpoint.
	Workflow string `json:"workflowId,omitempty"`
	Project  string `json:"projectId,omitempty"`
	// Last is the highest checkpoint number ever used in the series.
	Last int64 `json:"last"`
	// Count is the number of checkpoints, Stored the number of stored bytes, including the
	// bytes of fragments.
	Count  int   `json:"count"`
	Stored int64 `json:"storedBytes"`
	// Bytes is the uncompressed size of the contents.
	Bytes int64 `json:"bytes"`
	// Touched is the time of the last save or load.
	Touched time.Time `json:"lastActivityAt"`
}

// Totals are the sums over all series.
type Totals struct {
	Series int   `json:"lines"`
	Count  int   `json:"count"`
	Bytes  int64 `json:"bytes"`
	Stored int64 `json:"storedBytes"`
}

// Entry is an entry of the audit log.
type Entry struct {
	At time.Time `json:"at"`
	// Action is one of the Action constants.
	Action string `json:"action"`
	SeriesKey
	Checkpoint string `json:"checkpointId,omitempty"`
	Client     string `json:"client,omitempty"`
	// Detail is additional information, such as the reason of a deletion. It never contains
	// context data.
	Detail string `json:"detail,omitempty"`
}

// The actions of the audit log.
const (
	ActionSave    = "save"
	ActionLoad    = "load"
	ActionDelete  = "delete"
	ActionExport  = "export"
	ActionImport  = "import"
	ActionRebuild = "rebuild"
)

const (
	idPrefix      = "c_"
	piecePrefix   = "o_"
	sessionPrefix = "s_"
	maxSession    = 96
)

func newID(now time.Time) string { return shortid.Timed(idPrefix, now) }

// onceID returns the id of the checkpoint that a save with Once creates for a run's event.
func onceID(key SeriesKey, run string, seq int64) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d", key.User, key.Session, run, seq))
	return idPrefix + shortid.Spell(sum[:14])
}

// fragmentID returns the id of a fragment: the same content in the same series is stored once.
func fragmentID(key SeriesKey, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(key.User + "\x00" + key.Session + "\x00"))
	h.Write(sum)
	return piecePrefix + shortid.Spell(h.Sum(nil)[:15])
}

// idPattern matches ids: 1 to 96 letters, digits, dashes and underscores.
var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]{1,96}$`) })

// newIDPattern matches the ids that newID returns.
var newIDPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^c_[0-9a-hjkmnp-tv-z]{23}$`) })

var badInSession = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_-]+`) })

// SessionID returns a session id of at most 96 letters, digits, dashes and underscores. It
// returns a valid id unchanged. Otherwise it replaces other characters by dashes, shortens
// a long id, and appends a hash of the original, so that different ids stay different.
func SessionID(given string) string {
	if idPattern().MatchString(given) {
		return given
	}
	sum := sha256.Sum256([]byte(given))
	safe := strings.Trim(badInSession().ReplaceAllString(given, "-"), "-")
	const room = maxSession - 1 - 12
	if len(safe) > room {
		safe = safe[:room]
	}
	return strings.TrimPrefix(safe+"-"+hex.EncodeToString(sum[:6]), "-")
}

// NewSession returns a new session id for a context, as Save does if the request has no
// session.
func NewSession(workflow string, context []byte) string {
	return deriveSession(workflow, sumOf(context))
}

// deriveSession returns a session id: a hash of the workflow and the first context, by
// which related sessions are found, and a random part, since two sessions may begin with
// the same context.
func deriveSession(workflow string, sum []byte) string {
	h := sha256.New()
	h.Write([]byte(workflow + "\x00"))
	h.Write(sum)
	var b [10]byte
	_, _ = rand.Read(b[:]) // rand.Read never fails
	return sessionPrefix + hex.EncodeToString(h.Sum(nil)[:6]) + "_" + shortid.Spell(b[:])
}
