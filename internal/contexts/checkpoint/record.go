package checkpoint

import (
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob"
)

// Kind says how a checkpoint came to be.
type Kind string

// The kinds.
const (
	// KindManual was asked for.
	KindManual Kind = "manual"
	// KindAuto was saved by the server: at the end of a phase, a loop, at a gate.
	KindAuto Kind = "auto"
	// KindPiece is no checkpoint: it is what compression has left out of a
	// context, kept to be read again. Lists of checkpoints leave it out.
	KindPiece Kind = "piece"
)

// LineKey names a line of checkpoints: those of one session of one user.
type LineKey struct {
	User    string `json:"user"`
	Session string `json:"sessionId"`
}

// Record is what is known of a checkpoint without its content. All but Parent,
// Form and Problem never changes.
type Record struct {
	// ID is "c_" and 23 letters and digits; that of a piece begins with "o_".
	ID string `json:"checkpointId"`
	LineKey
	// Run is the run's id where the session is one, RunSeq the run's last event.
	Run    string `json:"runId,omitempty"`
	RunSeq int64  `json:"runSeq,omitempty"`
	// Parent is the checkpoint that this one follows. Where that is removed, its
	// own parent takes its place.
	Parent string `json:"parentId,omitempty"`
	// Branch says that the parent already had another successor.
	Branch bool `json:"branch,omitempty"`
	// Number counts the checkpoints of the line, from 1 and without regard to
	// branches. It is 0 for a piece.
	Number int64 `json:"number"`
	// Link counts the parents.
	Link     int64    `json:"link,omitempty"`
	Workflow string   `json:"workflowId,omitempty"`
	Project  string   `json:"projectId,omitempty"`
	Agent    string   `json:"agentId,omitempty"`
	Name     string   `json:"name,omitempty"`
	Tags     []string `json:"tags,omitempty"`
	Kind     Kind     `json:"kind"`
	// Created rises within a line, whatever the clock does. It is in UTC, with
	// microseconds.
	Created time.Time `json:"createdAt"`
	// Bytes is the length of the canonical JSON, Tokens what the caller has
	// counted.
	Bytes  int64 `json:"bytes"`
	Tokens int64 `json:"tokens,omitempty"`
	// Sum is the SHA-256 of the canonical JSON.
	Sum []byte `json:"sum"`

	Form
	// Problem says why it could not be read when that was last tried.
	Problem string `json:"problem,omitempty"`
	// Followed says that another checkpoint of the line has it as its parent.
	Followed bool `json:"-"`
	// Pos is the place in lists; what was added later has a higher one. The index
	// gives it.
	Pos int64 `json:"-"`
}

// Form is how a checkpoint is stored at present.
type Form struct {
	Blob blob.Name `json:"blob"`
	// Stored is the size of the blob.
	Stored int64 `json:"storedBytes"`
	// Base is the checkpoint whose content is needed to read this one; empty
	// where it is whole.
	Base string `json:"base,omitempty"`
	// Key is the data key that the blob is encrypted with; empty where it is not.
	Key string `json:"key,omitempty"`
}

// Line is what is known of all checkpoints of a session together.
type Line struct {
	LineKey
	Run string `json:"runId,omitempty"`
	// Workflow and Project are those of the last checkpoint.
	Workflow string `json:"workflowId,omitempty"`
	Project  string `json:"projectId,omitempty"`
	// Last is the number of the last checkpoint that there ever was.
	Last int64 `json:"last"`
	// Count counts the checkpoints, Stored the bytes, those of pieces included.
	Count  int   `json:"count"`
	Stored int64 `json:"storedBytes"`
	// Bytes is what the contents would need as they are.
	Bytes int64 `json:"bytes"`
	// Touched is when something was last saved or loaded.
	Touched time.Time `json:"lastActivityAt"`
}

// Totals are over all lines.
type Totals struct {
	Lines  int   `json:"lines"`
	Count  int   `json:"count"`
	Bytes  int64 `json:"bytes"`
	Stored int64 `json:"storedBytes"`
}

// Entry is a line of the audit log.
type Entry struct {
	At time.Time `json:"at"`
	// Action is one of the Action constants.
	Action string `json:"action"`
	LineKey
	Checkpoint string `json:"checkpointId,omitempty"`
	Client     string `json:"client,omitempty"`
	// Detail says more, such as why something was deleted. It never has anything
	// of a content.
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
