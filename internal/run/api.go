package run

import (
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Caller identifies the sender of a command: the owner of the runs and the channel of the
// command. The surfaces set it; it is never taken from the input of a caller.
type Caller struct {
	guideway.Principal
	// Via is ViaAgent unless the surface has proof of a person.
	Via Via
	// Connect is the guideway connect process of the caller; nil without one.
	Connect *Connected
}

// Approves reports whether the caller is a person that opens human approvals.
func (c Caller) Approves() bool { return c.Via.Person() && c.Has(guideway.RoleApprover) }

// Answer describes the position of a run to its owner.
type Answer struct {
	RunID  string `json:"runId"`
	Handle string `json:"handle"`
	// WorkflowID is omitted when the caller continues a run.
	WorkflowID string          `json:"workflowId,omitempty"`
	Status     engine.Status   `json:"status"`
	Position   engine.Position `json:"position"`
	// Workflow is the workflow of the run, also if WorkflowID is omitted.
	Workflow string `json:"-"`
	// Declined is the last form of the gate that was closed without an answer, if any.
	Declined *Decline `json:"-"`
	// Next is the form of a legal call. It is nil at the end and at a human approval.
	Next *Call `json:"next,omitempty"`
	// State is the run as a state document, if the caller asked for it.
	State *engine.StateDocument `json:"state,omitempty"`
	// Checks are the checks that the server executed for the submitted output.
	Checks []CheckSummary `json:"checks,omitempty"`
	// Replayed reports whether the command was executed before and this is its original
	// answer.
	Replayed bool `json:"replayed,omitempty"`
}

// Call is a tool call that is legal now. If it has Fields, it is a form: the caller fills
// them in, and Arguments never contains values for them.
type Call struct {
	Tool      string         `json:"tool"`
	Arguments map[string]any `json:"arguments"`
	Fields    []engine.Field `json:"fields,omitempty"`
}

// Alternative is a possible next action after a refusal.
type Alternative struct {
	// Do describes the action.
	Do string `json:"do"`
	// Call is the call that the action needs, if any.
	Call *Call `json:"call,omitempty"`
}

// Refusal is the response to an illegal command. It is an error with the code
// guideway.CodeRefused, CodeInvalid, CodeInvalidDefinition, CodeTooLarge or CodeNotFound.
// CodeNotFound is also the code for a run that the caller must not know about. The position
// of the run does not change.
type Refusal struct {
	Code    guideway.Code `json:"code"`
	Rule    string        `json:"rule"`
	Message string        `json:"message"`
	Given   any           `json:"given,omitempty"`
	Allowed any           `json:"allowed,omitempty"`
	// Issues are the criteria that an output failed.
	Issues []string `json:"issues,omitempty"`
	// Checks are the checks that the server executed for the output.
	Checks []CheckSummary `json:"checks,omitempty"`
	// Fix describes what to do.
	Fix string `json:"fix,omitempty"`
	// Next is a call that is legal now.
	Next *Call `json:"next,omitempty"`
	// Alternatives are other possible next actions.
	Alternatives []Alternative `json:"alternatives,omitempty"`
	// RunID and Position describe the run if the caller may know it.
	RunID    string           `json:"runId,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns an error with the code, for guideway.ErrorCode.
func (r *Refusal) Unwrap() error {
	return &guideway.Error{Code: r.Code, Message: r.Message, Fix: r.Fix}
}

// The rules that the service adds to the rules of the engine.
const (
	// RuleUnknownHandle refuses a handle that was never issued, or issued to another user.
	RuleUnknownHandle = "handle-unknown"
	// RuleStaleHandle refuses a handle of an earlier position with input that differs from
	// its original input.
	RuleStaleHandle = "handle-stale"
	// RuleUnknownRun refuses a run that does not exist or belongs to another user, and a
	// handle together with the id of a different run.
	RuleUnknownRun = "run-unknown"
	// RuleUnknownWorkflow refuses a workflow that is not in the catalog.
	RuleUnknownWorkflow = "workflow-unknown"
	// RuleRequestReused refuses a request id that has already started a different run.
	RuleRequestReused = "request-reused"
	// RuleTooLarge refuses input over a limit.
	RuleTooLarge = "input-too-large"
	// RuleUnknownSeq refuses an event number that the run does not have, or after which
	// nothing is left to do.
	RuleUnknownSeq = "seq-unknown"
	// RuleAbortedByPerson refuses an agent's fork or import of a run that a person aborted.
	RuleAbortedByPerson = "run-aborted-by-person"
)

// StartRequest starts a run.
type StartRequest struct {
	WorkflowID string
	Goal       string
	Context    map[string]any
	// Project is the project of the client.
	Project Project
	// Definitions provides the definition; nil means those of the service.
	Definitions Definitions
	// RequestID makes the request idempotent: repeating it returns the same run. If it is
	// empty, every request starts a new run.
	RequestID string
}

// ContinueRequest submits the input that a position asks for.
type ContinueRequest struct {
	Handle string
	// Step, if set, must be the id of the position.
	Step    string
	Output  string
	Notes   string
	Context map[string]any
	Answer  *engine.Answer
	Skip    *engine.Skip
	// Progress, if set, receives messages about the progress of the step's checks.
	Progress func(message string) `json:"-"`
}

// Ref identifies a run by one of its handles, old or current, or by its id.
type Ref struct {
	Handle string
	RunID  string
}

// AnswerRequest is a person's answer to the gate that a run waits at. A surface that shows
// a gate sends the handle of the shown position.
type AnswerRequest struct {
	Ref
	// Step, if set, must be the id of the gate.
	Step   string
	Answer engine.Answer
}

// ForkRequest creates a new run from the first events of another run.
type ForkRequest struct {
	Ref
	// Seq is the last event that the fork copies. If it is 0, the fork begins at the
	// position of the handle, or for a run id at the last event.
	Seq int64
	// RequestID makes the request idempotent, as in StartRequest.
	RequestID string
}

// AbortRequest ends a run.
type AbortRequest struct {
	Ref
	Reason string
}

// ResumeRequest searches for a run to continue.
type ResumeRequest struct {
	// Query describes the run in words.
	Query string
	RunID string
	// Project is the id of a project, or the id or path of Here. If it is empty, all
	// projects are searched.
	Project string
	// Here is the project of the caller, whose runs rank higher.
	Here Project
	// Limit bounds the answer. The default is 5.
	Limit int
}

// Candidate is a run that matches a ResumeRequest.
type Candidate struct {
	RunID      string          `json:"runId"`
	Handle     string          `json:"handle"`
	WorkflowID string          `json:"workflowId"`
	Goal       string          `json:"goal,omitempty"`
	Status     engine.Status   `json:"status"`
	Position   engine.Position `json:"position"`
	Project    Project         `json:"project"`
	// Score is between 0 and 1. Why explains the score.
	Score     float64   `json:"score"`
	Why       string    `json:"why"`
	UpdatedAt time.Time `json:"updatedAt"`
	Next      *Call     `json:"next,omitempty"`
}

// Details is the complete description of a run.
type Details struct {
	Record
	// Current is the current handle of the run.
	Current  string          `json:"handle"`
	Position engine.Position `json:"position"`
	// Variables are the variables of the run.
	Variables map[string]any `json:"variables"`
	// Marks are the variables marked as critical.
	Marks []Mark `json:"marks,omitempty"`
	// Submission is the output that the gate asks about. It is nil if the run is not at a
	// gate, or the gate does not ask about an output.
	Submission *Submission `json:"submission,omitempty"`
	// Declined is the last form of the gate that was closed without an answer, if any.
	Declined *Decline `json:"-"`
	// Hooked reports whether a hook of the client has reported for the run.
	Hooked bool `json:"hooked,omitempty"`
	// Events are the events of the run that were requested: all of them, some of them or
	// none.
	Events []Event `json:"events"`
	// Definition is the canonical text of the pinned definition.
	Definition string `json:"-"`
}

// Report is the result of a verification of the chains.
type Report struct {
	Runs   int   `json:"runs"`
	Events int64 `json:"events"`
	// Faults are the broken links, at most one for each run.
	Faults []Fault `json:"faults"`
}

// Fault is a broken link.
type Fault struct {
	Run string `json:"runId"`
	// Seq is the first event that was changed or is missing.
	Seq int64 `json:"seq"`
	// Kind is one of the Fault constants.
	Kind    FaultKind `json:"kind"`
	Message string    `json:"message"`
}

// FaultKind is the kind of a broken link.
type FaultKind string

// The kinds of broken links.
const (
	// FaultEdited is an event with a wrong MAC, also if an editor without the key has
	// recomputed hashes, or an event that is not possible at its position.
	FaultEdited FaultKind = "edited"
	// FaultGap is a missing event that is followed by others.
	FaultGap FaultKind = "gap"
	// FaultTruncated is a run with fewer events than were written: its last events were
	// removed, or the file was rolled back.
	FaultTruncated FaultKind = "truncated"
	// FaultMissing is a run that is completely missing.
	FaultMissing FaultKind = "missing"
	// FaultReplaced is a run whose events have valid MACs, but differ from the events that
	// were recorded in the heads.
	FaultReplaced FaultKind = "replaced"
	// FaultDefinition is a pinned definition that is missing or was changed.
	FaultDefinition FaultKind = "definition"
	// FaultHeads is a damaged head file. The chains are checked against the heads that can
	// still be read.
	FaultHeads FaultKind = "heads"
	// FaultRecord is a record that does not match the events.
	FaultRecord FaultKind = "record"
)
