// Package engine is the engine of agent machines: what comes next in a run, and
// what an event makes of it. It is pure: it calls no model, no tool and no script,
// but says as a value which of them is to be called, and takes the outcome as an
// event. A run is its events; package driver carries the effects out.
package engine

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events. An intent is written before something is done that costs or
// changes something outside, its result after it: an intent without a result is a
// call whose outcome nobody knows.
const (
	KindStarted        Kind = "machine_started"
	KindStateEntered   Kind = "state_entered"
	KindHandlerResult  Kind = "handler_result"
	KindModelIntent    Kind = "llm_intent"
	KindModelResult    Kind = "llm_result"
	KindToolIntent     Kind = "tool_intent"
	KindToolResult     Kind = "tool_result"
	KindToolDecided    Kind = "tool_decided"
	KindSubIntent      Kind = "sub_intent"
	KindSubResult      Kind = "sub_result"
	KindInputRequested Kind = "input_requested"
	KindInputGiven     Kind = "input_given"
	KindPaused         Kind = "paused"
	KindResumed        Kind = "resumed"
	KindCompleted      Kind = "machine_completed"
	KindCancelled      Kind = "machine_cancelled"
)

// Event is an immutable fact of a run. Which fields it has follows from its kind.
type Event struct {
	Kind Kind `json:"kind"`
	// State and Step say where the run stands.
	State string `json:"state,omitempty"`
	Step  Step   `json:"step,omitempty"`

	// Inputs are what the run begins with, Limits its budgets where they are not
	// the definition's, Index the answers of models that its parent had before,
	// Depth how many machines run within each other, Demo the machine whose
	// recording answers, and Allow what the agents may use.
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
	Limits *Limits                    `json:"limits,omitempty"`
	Index  int                        `json:"index,omitempty"`
	Depth  int                        `json:"depth,omitempty"`
	Demo   string                     `json:"demo,omitempty"`
	Allow  json.RawMessage            `json:"allow,omitempty"`

	// Function is the handler that was called, Set, Unset and Contexts what it
	// changed, Next the state that it answered, and Console what it printed.
	Function string                     `json:"function,omitempty"`
	Set      map[string]json.RawMessage `json:"set,omitempty"`
	Unset    []string                   `json:"unset,omitempty"`
	Contexts []ContextChange            `json:"contexts,omitempty"`
	Next     string                     `json:"next,omitempty"`
	Console  []string                   `json:"console,omitempty"`

	// Call numbers the calls of models in the run, from 1, Attempt the attempts
	// at one of them; Hash is that of the request.
	Call     int           `json:"call,omitempty"`
	Attempt  int           `json:"attempt,omitempty"`
	Agent    string        `json:"agent,omitempty"`
	Model    string        `json:"model,omitempty"`
	Hash     string        `json:"hash,omitempty"`
	Response *llm.Response `json:"response,omitempty"`
	// Cost is in millionths of the currency of the prices.
	Cost int64 `json:"cost,omitempty"`

	// Tool is the call of a tool, Result its outcome.
	Tool   *ToolCall   `json:"tool,omitempty"`
	Result *ToolResult `json:"result,omitempty"`
	// Decision is what somebody has decided about a call whose outcome is not
	// known.
	Decision Decision `json:"decision,omitempty"`

	// Run, Machine and Spent are of a machine within the machine.
	Run     string `json:"run,omitempty"`
	Machine string `json:"machine,omitempty"`
	Spent   *Spent `json:"spent,omitempty"`

	// Value is an input, or the output.
	Value json.RawMessage `json:"value,omitempty"`
	// Fault is what went wrong, Pause why the run rests.
	Fault *Fault `json:"fault,omitempty"`
	Pause *Pause `json:"pause,omitempty"`
	// Reason is why somebody cancelled.
	Reason string `json:"reason,omitempty"`
	// Unknown says that the outcome of an intent is not known.
	Unknown bool `json:"unknown,omitempty"`
	// Took is how long it took, in milliseconds.
	Took int64 `json:"took,omitempty"`
	// Until is when the next attempt is due.
	Until *time.Time `json:"until,omitempty"`
}

// ContextChange is what a handler did to a conversation: it kept the first
// messages and added others.
type ContextChange struct {
	Name string        `json:"name"`
	Keep int           `json:"keep"`
	Add  []llm.Message `json:"add,omitempty"`
}

// ToolCall is a call of a tool.
type ToolCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
	// Key is the same at every attempt, for tools that know what they have done.
	Key string `json:"key,omitempty"`
	// Retry is the policy in force: one of machines.Retry.
	Retry string `json:"retry,omitempty"`
	// Attempt is 1 at the first.
	Attempt int `json:"attempt,omitempty"`
}

// ToolResult is the outcome of a call.
type ToolResult struct {
	Content string `json:"content"`
	// Error says that the tool failed, or was not called.
	Error bool `json:"error,omitempty"`
}

// Decision is what somebody decides about a call whose outcome is not known.
type Decision string

// The decisions.
const (
	// DecideRetry calls the tool again.
	DecideRetry Decision = "retry"
	// DecideDone takes what was given for its result.
	DecideDone Decision = "done"
	// DecideFailed tells the agent that the call failed.
	DecideFailed Decision = "failed"
)

// Fault is what went wrong in a handler, or in a call for good.
type Fault struct {
	// Kind is one of the Fault constants, or an llm.Kind.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// File, Line and Column are where a handler failed.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Transient says that the same call may succeed later.
	Transient bool `json:"transient,omitempty"`
}

// The kinds of faults that are not a model's.
const (
	FaultHandler    = "handler"
	FaultTransition = "transition"
	FaultUnknown    = "unknown_outcome"
	FaultSub        = "sub_machine"
	FaultModel      = "no_model"
)

// Pause is why a run rests although it is not at its end.
type Pause struct {
	// Code is PauseBudget, PausePermit, FaultUnknown, or the kind of a Fault.
	Code    string `json:"code"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Budget, Used and Limit are of a budget that is used up.
	Budget string `json:"budget,omitempty"`
	Used   int64  `json:"used,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	// Fault is what went wrong.
	Fault *Fault `json:"fault,omitempty"`
	// Tool is the call whose outcome is not known.
	Tool *ToolCall `json:"tool,omitempty"`
}

// PauseBudget is the Code of a budget that is used up.
const PauseBudget = "budget"

// PausePermit is the Code of a run whose beginner may not have it go on any more.
const PausePermit = "permit"

// Limits are the budgets in force; 0 is no bound.
type Limits struct {
	States    int   `json:"states,omitempty"`
	Calls     int   `json:"calls,omitempty"`
	Tokens    int   `json:"tokens,omitempty"`
	Cost      int64 `json:"cost,omitempty"`
	Millis    int64 `json:"millis,omitempty"`
	ToolCalls int   `json:"toolCalls,omitempty"`
}

// Spent is what a run has used.
type Spent struct {
	States int       `json:"states"`
	Calls  int       `json:"calls"`
	Tools  int       `json:"tools"`
	Usage  llm.Usage `json:"usage"`
	// Cost is in millionths, Millis the time at work.
	Cost   int64 `json:"cost"`
	Millis int64 `json:"millis"`
}

// add adds what a machine within has used.
func (s *Spent) add(t Spent) {
	s.Calls += t.Calls
	s.Tools += t.Tools
	s.Usage = s.Usage.Add(t.Usage)
	s.Cost += t.Cost
	s.Millis += t.Millis
}
