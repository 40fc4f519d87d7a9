package checkpoint

import (
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/blob"
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
