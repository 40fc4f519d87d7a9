// Package engine is the engine of agent machines: it decides the next effect of a run and
// applies events to its state. It is pure: it calls no model, no tool and no script, but
// returns the call as an Effect and takes its outcome as an Event. A run is the fold of its
// events; package driver executes the effects.
package engine

import (
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway/internal/machine/llm"
)

// Kind is the kind of an event.
type Kind string

// The kinds of events. An intent is written before a call that costs money or has external
// effects, and its result after the call. The outcome of an intent without a result is
// unknown.
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
	KindInputRefused   Kind = "input_refused"
	KindPaused         Kind = "paused"
	KindResumed        Kind = "resumed"
	KindToolsAccepted  Kind = "tools_accepted"
	KindCompleted      Kind = "machine_completed"
	KindCancelled      Kind = "machine_cancelled"
)

// Event is an immutable fact of a run. Its kind determines which fields are set.
type Event struct {
	Kind Kind `json:"kind"`
	// State and Step are the position of the run.
	State string `json:"state,omitempty"`
	Step  Step   `json:"step,omitempty"`

	// Inputs are the inputs of the run. Limits replaces the budgets of the definition.
	// Index is the number of model answers and errors that the parent run received before
	// it started this run, or, in the result of a sub-machine, the number that the
	// sub-machine received. Depth is the nesting depth. Demo is the machine whose recording
	// answers. Allow restricts the tools and models of the agents. Guided are open guided
	// runs of the client that started or answered the run; their steps restrict its tools.
	Inputs map[string]json.RawMessage `json:"inputs,omitempty"`
	Limits *Limits                    `json:"limits,omitempty"`
	Index  int                        `json:"index,omitempty"`
	Depth  int                        `json:"depth,omitempty"`
	Demo   string                     `json:"demo,omitempty"`
	Allow  json.RawMessage            `json:"allow,omitempty"`
	Guided []string                   `json:"guided,omitempty"`
	// Pins are the hashes of the tools that the run may call, and of the hook graphs that
	// apply to them, at its start or when a person accepted them.
	Pins map[string]string `json:"pins,omitempty"`

	// Function is the called handler. Set, Unset and Contexts are the changes that it made,
	// Next is the state that it returned, and Console its output. In the result of a
	// sub-machine, Next is the key of common_data for the output.
	Function string                     `json:"function,omitempty"`
	Set      map[string]json.RawMessage `json:"set,omitempty"`
	Unset    []string                   `json:"unset,omitempty"`
	Contexts []ContextChange            `json:"contexts,omitempty"`
	Next     string                     `json:"next,omitempty"`
	Console  []string                   `json:"console,omitempty"`

	// Call numbers the model calls of the run from 1, and Attempt the attempts of one call.
	// Hash is the hash of the request.
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
	// Decision is a person's decision on a call whose outcome is unknown.
	Decision Decision `json:"decision,omitempty"`

	// Run and Machine identify a sub-machine. Usage is the usage of a sub-machine, or of a
	// failed model request.
	Run     string `json:"run,omitempty"`
	Machine string `json:"machine,omitempty"`
	Usage   *Usage `json:"spent,omitempty"`

	// Value is an input, an input that was refused, or the output.
	Value json.RawMessage `json:"value,omitempty"`
	// Error is the error of a failed call, Pause the reason for a pause.
	Error *RunError `json:"fault,omitempty"`
	Pause *Pause    `json:"pause,omitempty"`
	// Reason is the reason for a cancellation, or the rule that refused an input.
	Reason string `json:"reason,omitempty"`
	// Unknown is set if the outcome of an intent is unknown.
	Unknown bool `json:"unknown,omitempty"`
	// Took is the duration in milliseconds.
	Took int64 `json:"took,omitempty"`
	// Until is the time of the next attempt.
	Until *time.Time `json:"until,omitempty"`
}

// ContextChange is a handler's change of a conversation: it kept the first Keep messages
// and added others.
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
	// Key is the same for every attempt of a call, so that a tool can detect a repeated
	// call.
	Key string `json:"key,omitempty"`
	// Retry is the retry policy of the call, a value of definition.Retry.
	Retry string `json:"retry,omitempty"`
	// Attempt counts from 1.
	Attempt int `json:"attempt,omitempty"`
}

// ToolResult is the outcome of a call.
type ToolResult struct {
	Content string `json:"content"`
	// Error is set if the tool failed or was not called.
	Error bool `json:"error,omitempty"`
}

// Decision is a person's decision on a call whose outcome is unknown.
type Decision string

// The decisions of a person.
const (
	// DecideRetry calls the tool again.
	DecideRetry Decision = "retry"
	// DecideDone uses the given text as the result of the call.
	DecideDone Decision = "done"
	// DecideFailed reports to the agent that the call failed.
	DecideFailed Decision = "failed"
)

// RunError is the error of a handler or of a call.
type RunError struct {
	// Kind is one of the ErrorKind constants or an llm.Kind.
	Kind    string `json:"kind"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// File, Line and Column are the place where a handler failed.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	// Transient is set if the same call may succeed later.
	Transient bool `json:"transient,omitempty"`
}

// The kinds of errors that do not come from a model.
const (
	ErrorKindHandler        = "handler"
	ErrorKindTransition     = "transition"
	ErrorKindUnknownOutcome = "unknown_outcome"
	ErrorKindSubMachine     = "sub_machine"
	ErrorKindNoModel        = "no_model"
)

// Pause is the reason why a run is paused.
type Pause struct {
	// Code is PauseBudget, PausePermit, PauseTools, ErrorKindUnknownOutcome, or the kind of
	// another RunError.
	Code    string `json:"code"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Budget, Used and Limit describe an exhausted budget.
	Budget string `json:"budget,omitempty"`
	Used   int64  `json:"used,omitempty"`
	Limit  int64  `json:"limit,omitempty"`
	// Error is the error that paused the run.
	Error *RunError `json:"fault,omitempty"`
	// Tool is the call whose outcome is unknown.
	Tool *ToolCall `json:"tool,omitempty"`
}

// PauseBudget is the Code for an exhausted budget.
const PauseBudget = "budget"

// PausePermit is the Code for a run whose user lost the permission to continue it.
const PausePermit = "permit"

// PauseTools is the Code for a run whose tools or hook graphs changed. A process that has
// them as they were continues the run without a command.
const PauseTools = "tools"

// Limits are the current budgets; 0 means no limit.
type Limits struct {
	States    int   `json:"states,omitempty"`
	Calls     int   `json:"calls,omitempty"`
	Tokens    int   `json:"tokens,omitempty"`
	Cost      int64 `json:"cost,omitempty"`
	Millis    int64 `json:"millis,omitempty"`
	ToolCalls int   `json:"toolCalls,omitempty"`
}

// Usage is the resource usage of a run.
type Usage struct {
	States int       `json:"states"`
	Calls  int       `json:"calls"`
	Tools  int       `json:"tools"`
	Tokens llm.Usage `json:"usage"`
	// Cost is in millionths of the currency of the prices, Millis the execution time in
	// milliseconds.
	Cost   int64 `json:"cost"`
	Millis int64 `json:"millis"`
}

// addUsage adds the usage of a sub-machine.
func (s *Usage) addUsage(t Usage) {
	s.Calls += t.Calls
	s.Tools += t.Tools
	s.Tokens = s.Tokens.Add(t.Tokens)
	s.Cost += t.Cost
	s.Millis += t.Millis
}
