package phases

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// State is a document that says how far a workflow has come. Phases, steps,
// checkpoints, decisions and loops are numbers from 1, in the order of the
// workflow. Marshalled as JSON it is valid against the published schema. Times
// are RFC 3339.
type State struct {
	WorkflowID      string `json:"workflowId"`
	WorkflowVersion string `json:"workflowVersion"`
	// StateVersion is 1 unless the document says otherwise.
	StateVersion int    `json:"stateVersion"`
	StartedAt    string `json:"startedAt"`
	UpdatedAt    string `json:"updatedAt"`
	CompletedAt  string `json:"completedAt,omitempty"`
	CurrentPhase int    `json:"currentPhase"`
	// CurrentStep is 0 where there is none.
	CurrentStep     int   `json:"currentStep,omitempty"`
	CompletedPhases []int `json:"completedPhases"`
	SkippedPhases   []int `json:"skippedPhases"`
	// CompletedSteps are the steps by the number of their phase.
	CompletedSteps map[string][]int `json:"completedSteps"`
	// CheckpointResponses are by "phase-checkpoint", such as "2-1".
	CheckpointResponses map[string]CheckpointResponse `json:"checkpointResponses"`
	// DecisionOutcomes are by "phase-decision".
	DecisionOutcomes map[string]DecisionOutcome `json:"decisionOutcomes"`
	ActiveLoops      []ActiveLoop               `json:"activeLoops"`
	Variables        map[string]any             `json:"variables"`
	History          []HistoryEntry             `json:"history"`
	// Status is "running" unless the document says otherwise.
	Status    Status     `json:"status"`
	LastError *LastError `json:"lastError,omitempty"`
}

// Status is the state of a run.
type Status string

// The states of a run.
const (
	StatusRunning   Status = "running"
	StatusPaused    Status = "paused"
	StatusCompleted Status = "completed"
	StatusAborted   Status = "aborted"
	StatusError     Status = "error"
)

// CheckpointResponse is the answer to a checkpoint.
type CheckpointResponse struct {
	OptionID    string          `json:"optionId"`
	RespondedAt string          `json:"respondedAt"`
	Effects     *ResponseEffect `json:"effects,omitempty"`
}

// ResponseEffect is what an answer has brought about.
type ResponseEffect struct {
	VariablesSet   map[string]any `json:"variablesSet,omitempty"`
	TransitionedTo int            `json:"transitionedTo,omitempty"`
	PhasesSkipped  []int          `json:"phasesSkipped,omitempty"`
}

// DecisionOutcome is the branch that was taken.
type DecisionOutcome struct {
	BranchID       string `json:"branchId"`
	DecidedAt      string `json:"decidedAt"`
	TransitionedTo int    `json:"transitionedTo"`
}

// ActiveLoop is a loop under way.
type ActiveLoop struct {
	PhaseIndex       int    `json:"phaseIndex"`
	LoopIndex        int    `json:"loopIndex"`
	CurrentIteration int    `json:"currentIteration"`
	TotalItems       *int   `json:"totalItems,omitempty"`
	CurrentItem      any    `json:"currentItem,omitempty"`
	StartedAt        string `json:"startedAt"`
}

// HistoryEntry is something that has happened.
type HistoryEntry struct {
	Timestamp  string         `json:"timestamp"`
	Type       HistoryType    `json:"type"`
	Phase      int            `json:"phase,omitempty"`
	Step       int            `json:"step,omitempty"`
	Checkpoint int            `json:"checkpoint,omitempty"`
	Decision   int            `json:"decision,omitempty"`
	Loop       int            `json:"loop,omitempty"`
	Data       map[string]any `json:"data,omitempty"`
	Error      *HistoryError  `json:"error,omitempty"`
}

// HistoryError is what went wrong in an entry of the history.
type HistoryError struct {
	Message string `json:"message"`
	Code    string `json:"code,omitempty"`
}

// LastError is what went wrong last.
type LastError struct {
	Message   string `json:"message"`
	Code      string `json:"code,omitempty"`
	Phase     int    `json:"phase,omitempty"`
	Step      int    `json:"step,omitempty"`
	Timestamp string `json:"timestamp"`
}

// HistoryType is the kind of an entry of the history.
type HistoryType string

// The 18 kinds of entries.
const (
	HistoryWorkflowStarted     HistoryType = "workflow_started"
	HistoryWorkflowCompleted   HistoryType = "workflow_completed"
	HistoryWorkflowAborted     HistoryType = "workflow_aborted"
	HistoryPhaseEntered        HistoryType = "phase_entered"
	HistoryPhaseExited         HistoryType = "phase_exited"
	HistoryPhaseSkipped        HistoryType = "phase_skipped"
	HistoryStepStarted         HistoryType = "step_started"
	HistoryStepCompleted       HistoryType = "step_completed"
	HistoryCheckpointReached   HistoryType = "checkpoint_reached"
	HistoryCheckpointResponse  HistoryType = "checkpoint_response"
	HistoryDecisionReached     HistoryType = "decision_reached"
	HistoryDecisionBranchTaken HistoryType = "decision_branch_taken"
	HistoryLoopStarted         HistoryType = "loop_started"
	HistoryLoopIteration       HistoryType = "loop_iteration"
	HistoryLoopCompleted       HistoryType = "loop_completed"
	HistoryLoopBreak           HistoryType = "loop_break"
	HistoryVariableSet         HistoryType = "variable_set"
	HistoryFailed              HistoryType = "error"
)

// historyTypes are the kinds of entries.
func historyTypes() []string {
	return []string{
		"workflow_started", "workflow_completed", "workflow_aborted", "phase_entered", "phase_exited", "phase_skipped",
		"step_started", "step_completed", "checkpoint_reached", "checkpoint_response", "decision_reached", "decision_branch_taken",
		"loop_started", "loop_iteration", "loop_completed", "loop_break", "variable_set", "error",
	}
}

// ParseState checks a document that is a state and reads it. All problems are
// reported at once; the state is nil if there is one. Whether its numbers are of
// phases and steps that a workflow has is not asked here.
func ParseState(file string, root *doc.Node) (*State, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "state")
	if !p.Document(at, "A state", "write one object with workflowId, workflowVersion, startedAt, updatedAt and currentPhase") {
		return nil, p.Found
	}
	s := p.state(at)
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return s, nil
}

// state reads the root.
func (p *parser) state(at shape.Place) *State {
	p.Object(at, "workflowId", "workflowVersion", "stateVersion", "startedAt", "updatedAt", "completedAt", "currentPhase", "currentStep",
		"completedPhases", "skippedPhases", "completedSteps", "checkpointResponses", "decisionOutcomes", "activeLoops", "variables",
		"history", "status", "lastError")
	p.Require(at, "workflowId", "workflowVersion", "startedAt", "updatedAt", "currentPhase")
	s := &State{
		WorkflowID: p.id(at.Key("workflowId")), WorkflowVersion: p.text(at.Key("workflowVersion")),
		StateVersion: 1,
		StartedAt:    p.time(at.Key("startedAt")), UpdatedAt: p.time(at.Key("updatedAt")), CompletedAt: p.time(at.Key("completedAt")),
		CurrentPhase: p.integer(at.Key("currentPhase"), 1), CurrentStep: p.integer(at.Key("currentStep"), 1),
		CompletedPhases: p.integers(at.Key("completedPhases")), SkippedPhases: p.integers(at.Key("skippedPhases")),
		CompletedSteps:      table(p, at.Key("completedSteps"), 1, p.integers),
		CheckpointResponses: table(p, at.Key("checkpointResponses"), 2, p.response),
		DecisionOutcomes:    table(p, at.Key("decisionOutcomes"), 2, p.outcome),
		ActiveLoops:         list(p, at.Key("activeLoops"), "loop", p.activeLoop),
		Variables:           p.values(at.Key("variables")),
		History:             list(p, at.Key("history"), "entry", p.historyEntry),
		Status:              StatusRunning,
		LastError:           p.lastError(at.Key("lastError")),
	}
	if version := p.integer(at.Key("stateVersion"), 1); version > 0 {
		s.StateVersion = version
	}
	if status := p.Choice(at.Key("status"), CodeEnum, string(StatusRunning), string(StatusPaused), string(StatusCompleted),
		string(StatusAborted), string(StatusError)); status != "" {
		s.Status = Status(status)
	}
	return s
}

// table reads an object whose keys are numbers from 1, or so many of them with a
// hyphen between.
func table[T any](p *parser, at shape.Place, numbers int, read func(shape.Place) T) map[string]T {
	if !p.Open(at) {
		return nil
	}
	out := make(map[string]T, len(at.Node.Members))
	for i := range at.Node.Members {
		member := at.Member(i)
		value := at.Key(member.Name)
		value.Name = at.Name + "." + member.Name
		if !isKey(member.Name, numbers) {
			form, example := "a phase's number, from 1", "1"
			if numbers > 1 {
				form, example = "two numbers from 1 with a hyphen between: the phase's and its own in the phase", "2-1"
			}
			p.Errorf(member, CodeStateKey, fmt.Sprintf("write the key as %s, such as \"%s\"", form, example),
				"The key %s of '%s' is not of the form \"%s\".", shape.Quote(member.Name), at.Name, example)
		}
		out[member.Name] = read(value)
	}
	return out
}

// isKey says whether a key is so many numbers from 1 with hyphens between.
func isKey(key string, numbers int) bool {
	parts := strings.Split(key, "-")
	for _, part := range parts {
		if !isDigits(part) || part[0] == '0' {
			return false
		}
	}
	return len(parts) == numbers
}

// values reads an object of any members.
func (p *parser) values(at shape.Place) map[string]any {
	if !p.Open(at) {
		return nil
	}
	values, _ := at.Node.Any().(map[string]any)
	return values
}

// response reads the answer to a checkpoint.
func (p *parser) response(at shape.Place) CheckpointResponse {
	at, ok := p.nested(at, "optionId", "respondedAt", "effects")
	if !ok {
		return CheckpointResponse{}
	}
	p.Require(at, "optionId", "respondedAt")
	r := CheckpointResponse{OptionID: p.id(at.Key("optionId")), RespondedAt: p.time(at.Key("respondedAt"))}
	if effects, ok := p.nested(at.Key("effects"), "variablesSet", "transitionedTo", "phasesSkipped"); ok {
		r.Effects = &ResponseEffect{
			VariablesSet:   p.values(effects.Key("variablesSet")),
			TransitionedTo: p.integer(effects.Key("transitionedTo"), 1),
			PhasesSkipped:  p.integers(effects.Key("phasesSkipped")),
		}
	}
	return r
}

// outcome reads the branch that was taken.
func (p *parser) outcome(at shape.Place) DecisionOutcome {
	at, ok := p.nested(at, "branchId", "decidedAt", "transitionedTo")
	if !ok {
		return DecisionOutcome{}
	}
	p.Require(at, "branchId", "decidedAt", "transitionedTo")
	return DecisionOutcome{
		BranchID: p.id(at.Key("branchId")), DecidedAt: p.time(at.Key("decidedAt")), TransitionedTo: p.integer(at.Key("transitionedTo"), 1),
	}
}

// activeLoop reads a loop under way.
func (p *parser) activeLoop(at shape.Place) ActiveLoop {
	p.Object(at, "phaseIndex", "loopIndex", "currentIteration", "totalItems", "currentItem", "startedAt")
	p.Require(at, "phaseIndex", "loopIndex", "currentIteration", "startedAt")
	l := ActiveLoop{
		PhaseIndex: p.integer(at.Key("phaseIndex"), 1), LoopIndex: p.integer(at.Key("loopIndex"), 1),
		CurrentIteration: p.integer(at.Key("currentIteration"), 0), CurrentItem: at.Node.Get("currentItem").Any(),
		StartedAt: p.time(at.Key("startedAt")),
	}
	if total := at.Key("totalItems"); total.Node != nil {
		n := p.integer(total, 0)
		l.TotalItems = &n
	}
	return l
}

// historyEntry reads something that has happened.
func (p *parser) historyEntry(at shape.Place) HistoryEntry {
	p.Object(at, "timestamp", "type", "phase", "step", "checkpoint", "decision", "loop", "data", "error")
	p.Require(at, "timestamp", "type")
	h := HistoryEntry{
		Timestamp: p.time(at.Key("timestamp")), Type: HistoryType(p.Choice(at.Key("type"), CodeEnum, historyTypes()...)),
		Phase: p.integer(at.Key("phase"), 1), Step: p.integer(at.Key("step"), 1), Checkpoint: p.integer(at.Key("checkpoint"), 1),
		Decision: p.integer(at.Key("decision"), 1), Loop: p.integer(at.Key("loop"), 1),
		Data: p.values(at.Key("data")),
	}
	if problem, ok := p.nested(at.Key("error"), "message", "code"); ok {
		p.Require(problem, "message")
		h.Error = &HistoryError{Message: p.text(problem.Key("message")), Code: p.text(problem.Key("code"))}
	}
	return h
}

// lastError reads what went wrong last; nil where nothing did.
func (p *parser) lastError(at shape.Place) *LastError {
	at, ok := p.nested(at, "message", "code", "phase", "step", "timestamp")
	if !ok {
		return nil
	}
	p.Require(at, "message", "timestamp")
	return &LastError{
		Message: p.text(at.Key("message")), Code: p.text(at.Key("code")), Phase: p.integer(at.Key("phase"), 1),
		Step: p.integer(at.Key("step"), 1), Timestamp: p.time(at.Key("timestamp")),
	}
}
