// Package engine is the engine for hook graphs: it runs the nodes of a graph on one
// request, before and after the call to the server.
//
// Rules:
//
//   - The call is sent at most once.
//   - A blocking hook that fails or times out stops the call, so that no request
//     or response skips a hook that applies to it.
//   - A fire-and-forget hook gets a copy, and neither delays nor changes the call.
//   - Everything that no hook has changed is passed on byte for byte.
//
// The engine does no I/O: scripts, the call and the audit are interfaces of the caller.
package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Scripts runs the scripts of hooks.
type Scripts interface {
	// RunHook runs a script on a context value. An error should be a *ScriptError; any
	// other error is reported unchanged, unless the timeout has passed. RunHook must return
	// soon after ctx is done.
	RunHook(ctx context.Context, call ScriptCall) (*ScriptResult, error)
}

// ScriptCall is a request to run a script.
type ScriptCall struct {
	Script hookdef.Script
	// Context is the script's context, a JSON object.
	Context json.RawMessage
	// Timeout is the total timeout of the script.
	Timeout time.Duration
	// Graph and Metadata are those of the request; they select the state of the script.
	Graph    string
	Metadata Metadata
}

// ScriptResult is the result of a script.
type ScriptResult struct {
	// Context is the context as the script left it.
	Context json.RawMessage
	// Value is the return value of the script; empty or null if it returned nothing.
	Value json.RawMessage
	// Audit are the audit records of the script, in order.
	Audit   []json.RawMessage
	Console []Line
}

// Line is a line of a script's console output.
type Line struct {
	// Level is log, info, warn, error or debug.
	Level string `json:"level"`
	Text  string `json:"text"`
}

// The error codes of hooks.
const (
	CodeScript  = "SCRIPT_ERROR"
	CodeTimeout = "TIMEOUT"
	// CodeRefused is the default code of a refusal.
	CodeRefused = "REFUSED"
	// CodeDropped is the code of a fire-and-forget hook that was not started, because too
	// many were running or the engine was closed.
	CodeDropped = "DROPPED"
	// CodeAudit is the code of an audit record that could not be stored.
	CodeAudit = "AUDIT_ERROR"
	// CodeMismatch is the code of a condition that compares different types and refuses to.
	CodeMismatch = "TYPE_MISMATCH"
	// CodeCall is the code of a failed call.
	CodeCall = "CALL_ERROR"
)

// ScriptError is the error of a script.
type ScriptError struct {
	// Code is CodeScript, CodeTimeout or CodeAudit.
	Code    string
	Message string
	// File, Line and Column are the position in the user's own script, if known.
	File         string
	Line, Column int
	// Console is the console output of the script.
	Console []Line
}

// Error implements error.
func (e *ScriptError) Error() string { return e.Message }

// Call is a request to a server.
type Call struct {
	// Method is the type of the request.
	Method hookdef.Type
	// Params is an object; empty if the request has none.
	Params json.RawMessage
	// Hold is the reason of a hook to hold the call for the approval of a person, or "".
	Hold string
	// Progress returns a progress message of the call as the hooks leave it, or nil if they
	// drop it. It is nil if no hook handles progress.
	Progress func(ctx context.Context, params json.RawMessage) json.RawMessage
}

// Caller sends the call.
type Caller interface {
	// Call sends the request once and returns its result. Hooks may have changed the
	// request, including the tool: Call must check whether the client may send it.
	Call(ctx context.Context, call Call) (json.RawMessage, error)
}

// CallerFunc adapts a function to a Caller.
type CallerFunc func(ctx context.Context, call Call) (json.RawMessage, error)

// Call implements Caller.
func (f CallerFunc) Call(ctx context.Context, call Call) (json.RawMessage, error) {
	return f(ctx, call)
}

// Auditor stores audit records of hooks.
type Auditor interface {
	// Audit stores a record.
	Audit(ctx context.Context, entry AuditEntry) error
}

// AuditEntry is a script's audit record, with fields that the script cannot forge.
type AuditEntry struct {
	Time     time.Time       `json:"time"`
	Graph    string          `json:"graph"`
	Node     string          `json:"node"`
	ClientID string          `json:"clientId,omitempty"`
	Server   string          `json:"serverName,omitempty"`
	Method   hookdef.Type    `json:"method"`
	Record   json.RawMessage `json:"record"`
}

// Metadata is the information about a request for scripts and conditions.
type Metadata struct {
	ClientID   string `json:"clientId,omitempty"`
	ClientName string `json:"clientName,omitempty"`
	ServerID   string `json:"serverId,omitempty"`
	ServerName string `json:"serverName,omitempty"`
	// Owner identifies the credential of the client. Scripts do not see it.
	Owner string `json:"-"`
	// Run is the run of the client that it used last, or nil without an open run.
	Run *RunMetadata `json:"run,omitempty"`
}

// RunMetadata is an open run with its current step.
type RunMetadata struct {
	ID   string `json:"id"`
	Step string `json:"step"`
}

// Request is one request to run a graph on.
type Request struct {
	// Method is the type of the request; if empty, it is the first type of the graph.
	Method   hookdef.Type
	Params   json.RawMessage
	Metadata Metadata
}

// Status is the kind of outcome of a request.
type Status string

// The outcomes of a request.
const (
	// StatusPassed means that no hook changed the request or the response.
	StatusPassed Status = "passed"
	// StatusChanged means that a hook changed the request or the response.
	StatusChanged Status = "changed"
	// StatusAnswered means that a hook answered instead of the server.
	StatusAnswered Status = "answered"
	// StatusRefused means that a hook refused the request or its response.
	StatusRefused Status = "refused"
	// StatusError means that a hook or the call failed.
	StatusError Status = "error"
)

// Outcome is the outcome of a request.
type Outcome struct {
	Status Status
	// Request is the request as it was sent, or would have been.
	Request Call
	// Response is the result to return; empty for a refused or failed request.
	Response json.RawMessage
	// Err is the reason why there is no response: the caller's own error for a failed call,
	// possibly changed by hooks, a *Refusal for a refused request, and otherwise a
	// *guideway.Error.
	Err error
	// Sent reports whether the call was sent.
	Sent bool
	// Node is the node that refused or failed, or the hook that ended the request with its
	// own response.
	Node string

	trace *trace
}

// Nodes returns the traces of the nodes so far, in the order in which they started.
// Fire-and-forget hooks may still run; their traces are pending.
func (o *Outcome) Nodes() []NodeTrace { return o.trace.copyNodes() }

// Settle waits for the fire-and-forget hooks of this request and returns the traces of all
// nodes. Its only error is that of ctx.
func (o *Outcome) Settle(ctx context.Context) ([]NodeTrace, error) {
	select {
	case <-o.trace.settledDone():
		return o.trace.copyNodes(), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// NodeTrace is the trace of one node. It contains parts of requests and responses.
type NodeTrace struct {
	ID   string           `json:"id"`
	Kind hookdef.NodeKind `json:"type"`
	// MS is the duration in milliseconds.
	MS float64 `json:"ms"`
	// FireAndForget is set for a fire-and-forget hook; Pending is set while it runs.
	FireAndForget bool `json:"fireAndForget,omitempty"`
	Pending       bool `json:"pending,omitempty"`
	// Skipped is set for a call that was not sent because a hook had answered.
	Skipped bool `json:"skipped,omitempty"`
	// Branch is the chosen branch of a condition.
	Branch  hookdef.Branch `json:"branch,omitempty"`
	Error   *NodeError     `json:"error,omitempty"`
	Console []Line         `json:"console"`
	// Changes are the first changes of a blocking hook.
	Changes []Change `json:"changes,omitempty"`
}

// NodeError is the reason why a node failed or refused.
type NodeError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
}

// Program is a compiled graph. It is safe for concurrent use.
type Program struct {
	graph *hookdef.Linked
	nodes []node
	start int
	// handles reports which events besides results a hook handles.
	handles map[hookdef.Event]bool
}

// node is a node with the indices of its successors.
type node struct {
	*hookdef.Node
	script hookdef.Script
	// next is the next node on the main path, and background the fire-and-forget hooks; for
	// a condition, both by branch.
	next       map[hookdef.Branch]int
	background map[hookdef.Branch][]int
}

// Compile compiles a graph. It returns an error for an invalid graph: the engine runs
// checked graphs only.
func Compile(l *hookdef.Linked) (*Program, error) {
	if problems := l.Diagnostics(); len(problems) > 0 {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s breaks a rule: %s", l.ID, problems[0].Message).
			WithFix("%s", problems[0].Fix)
	}
	p := &Program{graph: l, nodes: make([]node, len(l.Nodes)), handles: map[hookdef.Event]bool{}}
	numbers := map[string]int{}
	for i := range l.Nodes {
		n := &l.Nodes[i]
		numbers[n.ID] = i
		p.nodes[i] = node{Node: n, script: l.Scripts[n.ID], next: map[hookdef.Branch]int{}, background: map[hookdef.Branch][]int{}}
		if n.Kind == hookdef.Start {
			p.start = i
		}
		if n.Kind == hookdef.HookNode {
			for _, e := range n.Hook.Handles {
				p.handles[e] = true
			}
		}
		if n.Kind == hookdef.HookNode && p.nodes[i].script.Text == "" {
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the hook %s of the hook graph %s has no script", n.ID, l.ID)
		}
		if n.Kind == hookdef.ConditionNode && n.Condition == nil {
			return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the condition node %s of the hook graph %s has no condition", n.ID, l.ID)
		}
	}
	for _, e := range l.Edges {
		from, to := &p.nodes[numbers[e.Source]], numbers[e.Target]
		if p.nodes[to].IsFireAndForget() {
			from.background[e.Branch] = append(from.background[e.Branch], to)
		} else {
			from.next[e.Branch] = to
		}
	}
	return p, nil
}

// next returns the node after a node on the main path.
func (p *Program) next(n *node, branch hookdef.Branch) *node { return &p.nodes[n.next[branch]] }

// Graph returns the source graph of the program.
func (p *Program) Graph() *hookdef.Linked { return p.graph }
