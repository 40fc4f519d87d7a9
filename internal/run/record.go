package run

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
)

// Record is what is known of a run without reading its events. All of it follows
// from them; journals keep it so that runs can be listed and found.
type Record struct {
	// ID is the run's, "r_" and 23 letters and digits that sort by time.
	ID string `json:"runId"`
	// User owns the run, Client is what the client that began it calls itself.
	User   string `json:"user"`
	Client string `json:"client,omitempty"`
	// Workflow, Name and Version are the definition's, Hash pins it.
	Workflow string `json:"workflowId"`
	Name     string `json:"workflowName"`
	Version  string `json:"version"`
	Hash     string `json:"hash"`
	// Goal is what the caller wants to achieve.
	Goal string `json:"goal,omitempty"`
	// Project is where the run was begun.
	Project Project `json:"project"`
	// Status, Kind, Step and Title say where the run stands.
	Status engine.Status       `json:"status"`
	Kind   engine.PositionKind `json:"kind"`
	Step   string              `json:"step,omitempty"`
	Title  string              `json:"title,omitempty"`
	// Person says that the run waits for a gate that only a person opens.
	Person bool `json:"person,omitempty"`
	// Done counts the completed steps.
	Done int `json:"done"`
	// Parent and ParentSeq say which run this one was forked from, and where.
	Parent    string `json:"parent,omitempty"`
	ParentSeq int64  `json:"parentSeq,omitempty"`
	// Created and Updated are in UTC, with microseconds.
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
	// Seq is the number of the last event, Head its MAC.
	Seq  int64  `json:"seq"`
	Head []byte `json:"-"`
	// Handle is the current one, for the owner alone.
	Handle string `json:"-"`
}

// Project is a directory under work: all work trees of one repository are one
// project.
type Project struct {
	// ID is the first 12 hexadecimal digits of the SHA-256 of the path of the
	// repository's main work tree, or of the directory where there is none.
	ID string `json:"id,omitempty"`
	// Path is where the client works.
	Path string `json:"path,omitempty"`
	// Branch and Commit are those that were checked out; empty if unknown.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// bounded is the project with names of a length that lists can carry.
func (p Project) bounded() Project {
	return Project{ID: cut(p.ID, maxKey), Path: cut(p.Path, maxGoal), Branch: cut(p.Branch, maxBranch), Commit: cut(p.Commit, maxKey)}
}

// By says whose doing an event is.
type By struct {
	// User is who is answerable, Client what the client calls itself.
	User   string `json:"user,omitempty"`
	Client string `json:"client,omitempty"`
	// Via says how the server knows: one of the Via constants.
	Via Via `json:"via"`
}

// Via is the way that a command came by.
type Via string

// The ways. Person says which of them prove a person, as far as the client, the
// browser or the terminal does.
const (
	ViaAgent       Via = "agent"
	ViaServer      Via = "server"
	ViaElicitation Via = "elicitation"
	ViaTerminal    Via = "terminal"
	ViaBrowser     Via = "browser"
	ViaToken       Via = "token"
	// ViaImport is what a bundle claims.
	ViaImport Via = "import"
)

// Person says whether a person stands behind the way.
func (v Via) Person() bool {
	switch v {
	case ViaElicitation, ViaTerminal, ViaBrowser, ViaToken:
		return true
	default:
		return false
	}
}

// Event is an immutable fact of a run, as a journal keeps it.
type Event struct {
	// Seq is 1-based and without gaps.
	Seq int64 `json:"seq"`
	// At is when it was decided, in UTC, with microseconds.
	At time.Time `json:"at"`
	// Kind is one of guide's, or one of this package's.
	Kind string `json:"kind"`
	By   By     `json:"by"`
	// Data is the JSON of the fact. Journals keep it byte for byte.
	Data json.RawMessage `json:"data,omitempty"`
	// MAC chains the event to the one before it. See Key.Chain.
	MAC []byte `json:"-"`
}

// The kinds of events that are not the engine's. They leave its state alone.
const (
	// KindCreated is every run's first event. Its data is a Created.
	KindCreated = "run_created"
	// KindRefused records an attempt that was refused. Its data is a Refused.
	KindRefused = "command_refused"
	// KindMarked records that variables were called critical. Its data is a
	// Marked.
	KindMarked = "context_marked"
)

// Created is the data of the first event: what a run is about.
type Created struct {
	Workflow string `json:"workflowId"`
	Name     string `json:"workflowName"`
	Version  string `json:"version"`
	Hash     string `json:"hash"`
	// Source and Revision say where the definition came from, as far as that is
	// known.
	Source   string  `json:"source,omitempty"`
	Revision string  `json:"revision,omitempty"`
	Goal     string  `json:"goal,omitempty"`
	Project  Project `json:"project"`
	// Parent and ParentSeq are set in a fork.
	Parent    string `json:"parent,omitempty"`
	ParentSeq int64  `json:"parentSeq,omitempty"`
	// Marks are those that the run takes over from the one it was forked from.
	Marks []Mark `json:"marks,omitempty"`
	// Imported is the id that the run had where it was exported.
	Imported string `json:"imported,omitempty"`
}

// Refused is the data of a refused attempt. What was handed in is not kept.
type Refused struct {
	Rule    string   `json:"rule"`
	Message string   `json:"message"`
	Step    string   `json:"step,omitempty"`
	Issues  []string `json:"issues,omitempty"`
}

// Handle is a short token that a client holds for a run at a position.
type Handle struct {
	// Token is at most 24 characters long and cannot be guessed.
	Token string
	Run   string
	// Seq is the last event of the position that the handle was given for.
	Seq int64
}

// Snapshot is a cache of a run's state. Its MAC keeps anybody from entering
// another state than the events give; one that does not fit is as good as none.
type Snapshot struct {
	// Seq is the last event in it, Head that event's MAC.
	Seq  int64
	Head []byte
	// State is the JSON of a engine.State.
	State []byte
	MAC   []byte
}

// Definition is a pinned definition.
type Definition struct {
	// Hash is that of the canonical text, "sha256:…".
	Hash string `json:"hash"`
	// Text is the canonical JSON.
	Text string `json:"text"`
}
