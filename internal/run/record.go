package run

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
)

// Record is the part of a run that is available without reading its events. It is derived
// from them; journals store it to list and find runs.
type Record struct {
	// ID is the id of the run, "r_" and 23 letters and digits that sort by time.
	ID string `json:"runId"`
	// User is the owner of the run. Client is the self-reported name of the client that
	// started it.
	User   string `json:"user"`
	Client string `json:"client,omitempty"`
	// Workflow, Name and Version identify the definition. Hash pins it.
	Workflow string `json:"workflowId"`
	Name     string `json:"workflowName"`
	Version  string `json:"version"`
	Hash     string `json:"hash"`
	// Goal is the goal of the caller.
	Goal string `json:"goal,omitempty"`
	// Project is the project in which the run was started.
	Project Project `json:"project"`
	// Status, Kind, Step and Title describe the position.
	Status engine.Status       `json:"status"`
	Kind   engine.PositionKind `json:"kind"`
	Step   string              `json:"step,omitempty"`
	Title  string              `json:"title,omitempty"`
	// Person reports whether the run waits for human approval.
	Person bool `json:"person,omitempty"`
	// Done counts the completed steps.
	Done int `json:"done"`
	// Parent and ParentSeq are the run and the event from which this run was forked.
	Parent    string `json:"parent,omitempty"`
	ParentSeq int64  `json:"parentSeq,omitempty"`
	// Created and Updated are in UTC, with microseconds.
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
	// Seq is the number of the last event, Head is its MAC.
	Seq  int64  `json:"seq"`
	Head []byte `json:"-"`
	// Handle is the current handle, which only the owner may see.
	Handle string `json:"-"`
}

// Project is a directory under work. All work trees of a repository are one project.
type Project struct {
	// ID is the first 12 hexadecimal digits of the SHA-256 of the path of the repository's
	// main work tree. Without a repository, the path of the directory is hashed.
	ID string `json:"id,omitempty"`
	// Path is the working directory of the client.
	Path string `json:"path,omitempty"`
	// Branch and Commit are the checked out branch and commit, or empty if unknown.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
}

// truncateNames returns the project with its names truncated to the limits of input.
func (p Project) truncateNames() Project {
	return Project{ID: Truncate(p.ID, maxKey), Path: Truncate(p.Path, maxGoal), Branch: Truncate(p.Branch, maxBranch), Commit: Truncate(p.Commit, maxKey)}
}

// By is the author of an event.
type By struct {
	// User is the responsible user. Client is the self-reported name of the client.
	User   string `json:"user,omitempty"`
	Client string `json:"client,omitempty"`
	// Via is the channel of the command: one of the Via constants.
	Via Via `json:"via"`
}

// Via is the channel of a command.
type Via string

// The channels. Person reports which of them prove a person, as far as the client, the
// browser or the terminal can be trusted.
const (
	ViaAgent       Via = "agent"
	ViaServer      Via = "server"
	ViaElicitation Via = "elicitation"
	ViaTerminal    Via = "terminal"
	ViaBrowser     Via = "browser"
	ViaToken       Via = "token"
	// ViaImport is an event of an imported bundle.
	ViaImport Via = "import"
)

// Person reports whether the channel proves a person.
func (v Via) Person() bool {
	switch v {
	case ViaElicitation, ViaTerminal, ViaBrowser, ViaToken:
		return true
	default:
		return false
	}
}

// Event is an immutable fact in the log of a run.
type Event struct {
	// Seq starts at 1 and has no gaps.
	Seq int64 `json:"seq"`
	// At is the time of the event, in UTC, truncated to microseconds.
	At time.Time `json:"at"`
	// Kind is a kind of the engine or of this package.
	Kind string `json:"kind"`
	By   By     `json:"by"`
	// Data is the JSON of the fact. Journals store it byte for byte.
	Data json.RawMessage `json:"data,omitempty"`
	// Label is engine.LabelEvidence or engine.LabelClaim for the completion of a step. It is
	// derived from the data when the event is read.
	Label string `json:"label,omitempty"`
	// Sealed is the stored form of Data if it is encrypted. See Sealer.
	Sealed []byte `json:"-"`
	// MAC chains the event to the previous one. See Key.Chain.
	MAC []byte `json:"-"`
}

// The kinds of events that are not the engine's. They do not change its state.
const (
	// KindCreated is the first event of every run. Its data is a Created.
	KindCreated = "run_created"
	// KindRefused records a refused attempt. Its data is a Refused.
	KindRefused = "command_refused"
	// KindMarked records that variables were marked as critical. Its data is a Marked.
	KindMarked = "context_marked"
	// KindDeclined records that a person closed the form of a gate without an answer, and
	// KindUnanswered that the client closed or answered it before a person could read it.
	// The data is a Declined.
	KindDeclined   = "gate_declined"
	KindUnanswered = "form_unanswered"
	// KindAbortConfirmed records that a person aborted a run that an agent had aborted. Its
	// data is an AbortConfirmed.
	KindAbortConfirmed = "abort_confirmed"
	// KindCheckRun records that the server executed a check. Its data is an evidence.Result.
	// It precedes the event of the command that needed the check.
	KindCheckRun = "check_run"
	// KindHooked records that a hook of the client reports for the run, and KindStopped that
	// the client stopped while the run was open. The data is a HookReport.
	KindHooked  = "client_hooked"
	KindStopped = "client_stopped"
)

// Created is the data of the first event.
type Created struct {
	Workflow string `json:"workflowId"`
	Name     string `json:"workflowName"`
	Version  string `json:"version"`
	Hash     string `json:"hash"`
	// Source and Revision are the origin of the definition, if known.
	Source   string  `json:"source,omitempty"`
	Revision string  `json:"revision,omitempty"`
	Goal     string  `json:"goal,omitempty"`
	Project  Project `json:"project"`
	// Workspace is the workspace at the start, if the definition has checks and the server had
	// access to it. A fork has the workspace of its parent.
	Workspace *evidence.Workspace `json:"workspace,omitempty"`
	// Parent and ParentSeq are set in a fork.
	Parent    string `json:"parent,omitempty"`
	ParentSeq int64  `json:"parentSeq,omitempty"`
	// Marks are the marks that a fork copies from its parent.
	Marks []Mark `json:"marks,omitempty"`
	// Imported is the id that an imported run had where it was exported, or the version of
	// an imported state.
	Imported string `json:"imported,omitempty"`
}

// AbortConfirmed is the data of a person's abort after that of an agent.
type AbortConfirmed struct {
	Reason string `json:"reason,omitempty"`
}

// Refused is the data of a refused attempt.
type Refused struct {
	Rule    string   `json:"rule"`
	Message string   `json:"message"`
	Step    string   `json:"step,omitempty"`
	Issues  []string `json:"issues,omitempty"`
	// Output and Notes are the refused input: the head and the tail of a long text. They
	// are kept for a limited number of attempts at each position.
	Output string `json:"output,omitempty"`
	Notes  string `json:"notes,omitempty"`
}

// Handle is the short token that a client holds for a run at a position.
type Handle struct {
	// Token has at most 24 characters and cannot be guessed.
	Token string
	Run   string
	// Seq is the last event of the commit that created the handle.
	Seq int64
}

// Snapshot is a cache of a run's state. Its MAC prevents forged states. An invalid snapshot
// is ignored.
type Snapshot struct {
	// Seq is the last event that the state includes, Head is the MAC of that event.
	Seq  int64
	Head []byte
	// State is the JSON of a snapshotState.
	State []byte
	MAC   []byte
}

// Definition is a pinned definition.
type Definition struct {
	// Hash is the hash of the canonical text, "sha256:…".
	Hash string `json:"hash"`
	// Text is the canonical JSON.
	Text string `json:"text"`
}
