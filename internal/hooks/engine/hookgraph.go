// Package engine is the engine for hook graphs: it takes one request through
// the nodes of a graph, on the way to its server and back (seed 001).
//
// Rules:
//   - The call is sent at most once, whatever happens.
//   - A blocking hook that fails, or takes too long, stops the call: nothing goes
//     on that a hook should have seen and did not.
//   - A fire-and-forget hook gets a copy, is waited for by nothing, and changes
//     nothing.
//   - What no hook has changed goes on byte for byte.
//
// The engine does no I/O of its own: scripts, the call and the audit are
// interfaces of the caller's.
package engine

import (
	"context"
	"encoding/json"
	"time"

	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Scripts runs the scripts of hooks.
type Scripts interface {
	// RunHook runs a script on a context value. An error is best a
	// *ScriptError; any other is told as it is. It must come back soon after
	// ctx is done.
	RunHook(ctx context.Context, call ScriptCall) (*ScriptResult, error)
}

// ScriptCall is one run of a script.
type ScriptCall struct {
	Script hookdef.Script
	// Context is the value of the script's context, a JSON object.
	Context json.RawMessage
	// Timeout is what the script may take in all.
	Timeout time.Duration
}

// ScriptResult is what a script did.
type ScriptResult struct {
	// Context is the context as the script left it.
	Context json.RawMessage
	// Value is what the script returned; empty or null is nothing.
	Value json.RawMessage
	// Audit are the records that the script handed to the audit, in order.
	Audit   []json.RawMessage
	Console []Line
}

// Line is a line of a script's console.
type Line struct {
	// Level is log, info, warn, error or debug.
	Level string `json:"level"`
	Text  string `json:"text"`
}

// The codes of errors of hooks.
const (
	CodeScript  = "SCRIPT_ERROR"
	CodeTimeout = "TIMEOUT"
	// CodeRefused is of a hook that refuses a call and gives no code.
	CodeRefused = "REFUSED"
	// CodeDropped is of a fire-and-forget hook that had no room to run.
	CodeDropped = "DROPPED"
	// CodeAudit is of an audit that could not be written.
	CodeAudit = "AUDIT_ERROR"
	// CodeCall is of a call that failed.
	CodeCall = "CALL_ERROR"
)

// ScriptError is why a script failed.
type ScriptError struct {
	// Code is CodeScript or CodeTimeout.
	Code    string
	Message string
	// File, Line and Column are where, in the user's own script, if it is known.
	File         string
	Line, Column int
	// Console is what the script had written.
	Console []Line
}

// Error implements error.
func (e *ScriptError) Error() string { return e.Message }

// Call is a request on its way to a server.
type Call struct {
	// Method is tools/call or tools/list.
	Method hookdef.Type
	// Params is an object; it is empty where the request has none.
	Params json.RawMessage
}

// Caller sends the call.
type Caller interface {
	// Call sends the request once and gives its result. Hooks may have changed
	// what it asks for, the tool too: whether this client may do that must be
	// looked at here.
	Call(ctx context.Context, call Call) (json.RawMessage, error)
}

// CallerFunc is a function that is a Caller.
type CallerFunc func(ctx context.Context, call Call) (json.RawMessage, error)

// Call implements Caller.
func (f CallerFunc) Call(ctx context.Context, call Call) (json.RawMessage, error) {
	return f(ctx, call)
}

// Auditor keeps what hooks hand to it.
type Auditor interface {
	// Audit keeps a record, or says why not.
	Audit(ctx context.Context, entry AuditEntry) error
}

// AuditEntry is a record that a hook hands to the audit, with what the engine knows and no
// script can forge.
type AuditEntry struct {
	Time     time.Time       `json:"time"`
	Graph    string          `json:"graph"`
	Node     string          `json:"node"`
	ClientID string          `json:"clientId,omitempty"`
	Server   string          `json:"serverName,omitempty"`
	Method   hookdef.Type    `json:"method"`
	Record   json.RawMessage `json:"record"`
}

// Metadata is what scripts and conditions learn of a request beside itself.
type Metadata struct {
	ClientID   string `json:"clientId,omitempty"`
	ClientName string `json:"clientName,omitempty"`
	ServerID   string `json:"serverId,omitempty"`
	ServerName string `json:"serverName,omitempty"`
}

// Request is one request to take through a graph.
type Request struct {
	Params   json.RawMessage
	Metadata Metadata
}

// Status is how a request came out.
type Status string

// The statuses.
const (
	// StatusPassed is a call whose request and response no hook changed.
	StatusPassed Status = "passed"
	// StatusChanged is a call whose request or response a hook changed.
	StatusChanged Status = "changed"
	// StatusAnswered is a request that a hook answered in place of the server.
	StatusAnswered Status = "answered"
	// StatusRefused is a request, or the response to it, that a hook refused.
	StatusRefused Status = "refused"
	// StatusError is a hook or a call that failed.
	StatusError Status = "error"
)

// Outcome is how a request came out.
type Outcome struct {
	Status Status
	// Request is the request as it was sent, or would have been.
	Request Call
	// Response is the result to give back; empty where the request was refused
	// or failed.
	Response json.RawMessage
	// Err says why there is no response. Of a call that failed it is the
	// caller's own error; else it is a *guideway.Error.
	Err error
	// Sent says that the call was sent.
	Sent bool
	// Node is the node that refused, answered or failed.
	Node string

	trace *trace
}

// Nodes is what the nodes did so far, in the order in which they began.
// Fire-and-forget hooks may still run; they are marked as pending.
func (o *Outcome) Nodes() []NodeTrace { return o.trace.snapshot() }

// Settle waits for the fire-and-forget hooks of this request and gives what all
// nodes did. The only error is that of ctx.
func (o *Outcome) Settle(ctx context.Context) ([]NodeTrace, error) {
	select {
	case <-o.trace.settled():
		return o.trace.snapshot(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// NodeTrace is what one node did. It holds parts of requests and responses.
type NodeTrace struct {
	ID   string           `json:"id"`
	Kind hookdef.NodeKind `json:"type"`
	// MS is how long it took, in milliseconds.
	MS float64 `json:"ms"`
	// Aside marks a fire-and-forget hook, Pending one that still runs.
	Aside   bool `json:"aside,omitempty"`
	Pending bool `json:"pending,omitempty"`
	// Skipped marks a call that was not sent because a hook had answered.
	Skipped bool `json:"skipped,omitempty"`
	// Branch is the way on from a condition.
	Branch  hookdef.Branch `json:"branch,omitempty"`
	Error   *NodeError     `json:"error,omitempty"`
	Console []Line         `json:"console"`
	// Changes are what a blocking hook changed, the first of them.
	Changes []Change `json:"changes,omitempty"`
}

// NodeError is why a node failed or refused.
type NodeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}
