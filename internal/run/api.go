package run

import (
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Caller is who commands: the owner of the runs, and how the command came by.
// Nothing that a caller sends fills it in; the surfaces know it.
type Caller struct {
	guideway.Principal
	// Via is ViaAgent unless the surface has proof of a person.
	Via Via
}

// Answer is where a run stands, for its owner.
type Answer struct {
	RunID  string `json:"runId"`
	Handle string `json:"handle"`
	// WorkflowID is left out where the caller goes on with a run.
	WorkflowID string          `json:"workflowId,omitempty"`
	Status     engine.Status   `json:"status"`
	Position   engine.Position `json:"position"`
	// Workflow is the run's, whether WorkflowID is told or not.
	Workflow string `json:"-"`
	// Next is a legal call, ready to copy; nil at the end.
	Next *Call `json:"next,omitempty"`
	// State is the run as a state document, where it was asked for.
	State *engine.StateDocument `json:"state,omitempty"`
	// Replayed says that the command had been carried out before and that this
	// is its answer.
	Replayed bool `json:"replayed,omitempty"`
}

// Call is a call of a tool.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
}

// Refusal is the answer to an illegal command. It is an error with the code
// guideway.CodeRefused, or CodeNotFound for what the caller may not know of.
// The run stays where it is.
type Refusal struct {
	Code    guideway.Code `json:"code"`
	Rule    string        `json:"rule"`
	Message string        `json:"message"`
	Given   any           `json:"given,omitempty"`
	Allowed any           `json:"allowed,omitempty"`
	// Issues are the criteria that an output failed.
	Issues []string `json:"issues,omitempty"`
	// Fix says in words what to do.
	Fix string `json:"fix,omitempty"`
	// Next is a call that is legal now.
	Next *Call `json:"next,omitempty"`
	// RunID and Position tell where the run is, where the caller may know.
	RunID    string           `json:"runId,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Unwrap gives the error's code to guideway.ErrorCode.
func (r *Refusal) Unwrap() error {
	return &guideway.Error{Code: r.Code, Message: r.Message, Fix: r.Fix}
}

// The rules that the service adds to those of the engine.
const (
	// RuleUnknownHandle is a handle that was never given out, or to somebody
	// else.
	RuleUnknownHandle = "handle-unknown"
	// RuleStaleHandle is a handle of an earlier position, with other input
	// than it was used with.
	RuleStaleHandle = "handle-stale"
	// RuleUnknownRun is a run that is not there, or somebody else's.
	RuleUnknownRun = "run-unknown"
	// RuleUnknownWorkflow is a workflow that is not in the catalog.
	RuleUnknownWorkflow = "workflow-unknown"
	// RuleRequestReused is a request id that has begun another run.
	RuleRequestReused = "request-reused"
	// RuleTooLarge is input over a stated limit.
	RuleTooLarge = "input-too-large"
	// RuleUnknownSeq is a place in a run that does not exist.
	RuleUnknownSeq = "seq-unknown"
)

// StartRequest begins a run.
type StartRequest struct {
	WorkflowID string
	Goal       string
	Context    map[string]any
	// Project is where the client works.
	Project Project
	// RequestID makes the request repeatable: the same one again gives the same
	// run. Empty makes a new run every time.
	RequestID string
}

// ContinueRequest hands in what a position asked for.
type ContinueRequest struct {
	Handle string
	// Step, if set, must be the id of the position.
	Step    string
	Output  string
	Notes   string
	Context map[string]any
	Answer  *engine.Answer
	Skip    *engine.Skip
}

// Ref names a run by a handle of it, old or current, or by its id.
type Ref struct {
	Handle string
	RunID  string
}

// AnswerRequest is a person's answer to the gate that a run waits at. A surface
// that shows a gate gives the handle of the position that it showed.
type AnswerRequest struct {
	Ref
	// Step, if set, must be the id of the gate.
	Step   string
	Answer engine.Answer
}

// ForkRequest makes a new run of an old one's beginning.
type ForkRequest struct {
	Ref
	// Seq is the last event that the fork takes over; 0 is the handle's
	// position, or with a run's id its last event.
	Seq int64
	// RequestID is as in StartRequest.
	RequestID string
}

// AbortRequest ends a run.
type AbortRequest struct {
	Ref
	Reason string
}

// ResumeRequest looks for a run to go on with.
type ResumeRequest struct {
	// Query is what somebody remembers of it, in words.
	Query string
	RunID string
	// Project is the id or the path of a project; empty looks everywhere.
	Project string
	// Here is the project that the caller is in; its runs rank higher.
	Here Project
	// Limit bounds the answer; 0 is 5.
	Limit int
}

// Candidate is a run that may be the one that is looked for.
type Candidate struct {
	RunID      string          `json:"runId"`
	Handle     string          `json:"handle"`
	WorkflowID string          `json:"workflowId"`
	Goal       string          `json:"goal,omitempty"`
	Status     engine.Status   `json:"status"`
	Position   engine.Position `json:"position"`
	Project    Project         `json:"project"`
	// Score is between 0 and 1; Why says in words what it is made of.
	Score     float64   `json:"score"`
	Why       string    `json:"why"`
	UpdatedAt time.Time `json:"updatedAt"`
	Next      *Call     `json:"next,omitempty"`
}

// Details is all that there is to know of a run.
type Details struct {
	Record
	// Current is the run's handle.
	Current  string          `json:"handle"`
	Position engine.Position `json:"position"`
	// Variables are the run's.
	Variables map[string]any `json:"variables"`
	// Marks are the variables that were called critical.
	Marks []Mark `json:"marks,omitempty"`
	// Events are all of them, or those that were asked for.
	Events []Event `json:"events"`
	// Definition is the pinned one's canonical text.
	Definition string `json:"-"`
}

// Report is what a check of the chains has found.
type Report struct {
	Runs   int   `json:"runs"`
	Events int64 `json:"events"`
	// Faults are the broken links, the first one of each run.
	Faults []Fault `json:"faults"`
}

// Fault is a broken link.
type Fault struct {
	Run string `json:"runId"`
	// Seq is the first event that is not as it was written, or that is missing.
	Seq int64 `json:"seq"`
	// Kind is one of the Fault constants.
	Kind    FaultKind `json:"kind"`
	Message string    `json:"message"`
}

// FaultKind says what is wrong with a chain.
type FaultKind string

// The kinds of faults.
const (
	// FaultEdited is an event whose MAC does not fit, also where the editor
	// has recomputed hashes without the key.
	FaultEdited FaultKind = "edited"
	// FaultGap is a missing event with others behind it.
	FaultGap FaultKind = "gap"
	// FaultTruncated is a run that has fewer events than are known to have
	// been written: its tail was removed, or the file was rolled back.
	FaultTruncated FaultKind = "truncated"
	// FaultMissing is a whole run that is gone.
	FaultMissing FaultKind = "missing"
	// FaultReplaced is a run whose events fit, but are not those that were
	// written.
	FaultReplaced FaultKind = "replaced"
	// FaultDefinition is a pinned definition that is gone or was changed.
	FaultDefinition FaultKind = "definition"
	// FaultHeads is damage of the heads themselves; the chains are checked
	// against those that are left.
	FaultHeads FaultKind = "heads"
	// FaultRecord is a record that does not follow from the events.
	FaultRecord FaultKind = "record"
)
