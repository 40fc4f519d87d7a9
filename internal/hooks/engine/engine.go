package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
)

// Options configure an Engine; only Scripts is required.
type Options struct {
	// Scripts runs the scripts of hooks.
	Scripts Scripts
	// Audit stores audit records. If nil, a hook that audits fails.
	Audit Auditor
	// Timeout is the timeout of a hook without its own; if 0, it is 5 seconds.
	Timeout time.Duration
	// Background is the maximum number of concurrent fire-and-forget hooks; if 0, it is 32.
	// Additional hooks are dropped, and their traces report it.
	Background int
	// OnBackground is called with the trace of each fire-and-forget hook after it has ended
	// or was dropped. It may be nil.
	OnBackground func(graph string, node NodeTrace)
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Background <= 0 {
		o.Background = 32
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Engine runs programs. It is safe for concurrent use.
type Engine struct {
	opts Options
	// slots holds a token for each running fire-and-forget hook.
	slots chan struct{}
	// life ends when the engine is closed.
	life context.Context //nolint:containedctx // the life of goroutines that outlive a request
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	asides sync.WaitGroup
}

// New returns an engine. Close closes it.
func New(opts Options) *Engine {
	opts = opts.withDefaults()
	life, stop := context.WithCancel(context.Background())
	return &Engine{opts: opts, slots: make(chan struct{}, opts.Background), life: life, stop: stop}
}

// Close waits for the running fire-and-forget hooks until ctx is done, and then cancels
// them. No more hooks start.
func (e *Engine) Close(ctx context.Context) {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	done := make(chan struct{})
	go func() {
		e.asides.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	e.stop()
	<-done
}

// Run runs a program on a request. It always returns an outcome.
func (e *Engine) Run(ctx context.Context, p *Program, request Request, caller Caller) *Outcome {
	x := &execution{engine: e, program: p, caller: caller, trace: newTrace(), state: state{
		method: cmp.Or(request.Method, p.graph.Type), params: value{raw: request.Params}, variables: value{raw: initialVariables(p.graph.Variables)},
		shared: value{raw: json.RawMessage("{}")}, event: hookdef.Result, metadata: request.Metadata, graph: p.graph.ID, started: e.opts.Now(),
	}}
	defer x.trace.endRequest()
	out := x.runNodes(ctx)
	out.Request = Call{Method: x.state.method, Params: x.state.params.raw, Hold: x.state.hold}
	out.Sent, out.trace = x.state.sent, x.trace
	if out.Err != nil {
		return out
	}
	out.Response = x.state.response.raw
	switch {
	case x.state.answered:
		out.Status = StatusAnswered
	case x.state.altered:
		out.Status = StatusChanged
	default:
		out.Status = StatusPassed
	}
	return out
}

// initialVariables returns the variables at the start of a request.
func initialVariables(variables map[string]json.RawMessage) json.RawMessage {
	if len(variables) == 0 {
		return json.RawMessage("{}")
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return json.RawMessage("{}") // the values are parts of a valid JSON document
	}
	return text
}

// execution is one run of a program.
type execution struct {
	engine  *Engine
	program *Program
	caller  Caller
	trace   *trace
	state   state
}

// runNodes runs the nodes until the end, or until one stops the request. A program is a
// tree, so no node runs twice.
func (x *execution) runNodes(ctx context.Context) *Outcome {
	at := x.program.start
	for range x.program.nodes {
		n := &x.program.nodes[at]
		if err := ctx.Err(); err != nil {
			return x.failedOutcome(n, guideway.Errorf(guideway.CodeUnavailable, "the request was cancelled%s: %w", x.whetherSent(), err))
		}
		branch, stopped := x.runNode(ctx, n)
		if stopped != nil {
			return stopped
		}
		if n.Kind == hookdef.End {
			if x.state.response.isEmpty() {
				return x.failedOutcome(n, x.programError("has no response at its end"))
			}
			return &Outcome{}
		}
		for _, aside := range n.background[branch] {
			x.startBackground(ctx, &x.program.nodes[aside])
		}
		next, ok := n.next[branch]
		if !ok {
			return x.failedOutcome(n, x.programError("has no edge to follow after the node '"+n.ID+"'"))
		}
		at = next
	}
	return x.failedOutcome(&x.program.nodes[at], x.programError("runs in a cycle"))
}

// programError returns the error of an unchecked program.
func (x *execution) programError(how string) error {
	return guideway.Errorf(guideway.CodeInternal, "the hook graph %s %s", x.state.graph, how)
}

// runNode runs a node. It returns no outcome if the request continues. It skips a hook that
// does not handle the current event.
func (x *execution) runNode(ctx context.Context, n *node) (hookdef.Branch, *Outcome) {
	if n.Kind == hookdef.HookNode && !n.Hook.Has(x.state.event) {
		return hookdef.NoBranch, nil
	}
	begun := x.engine.opts.Now()
	entry := NodeTrace{ID: n.ID, Kind: n.Kind}
	i := x.trace.addNode(entry)
	var stopped *Outcome
	branch := hookdef.NoBranch
	switch n.Kind {
	case hookdef.HookNode:
		stopped = x.runHook(ctx, n, &entry)
	case hookdef.Call:
		stopped = x.sendCall(ctx, n, &entry)
	case hookdef.ConditionNode:
		branch, stopped = x.evaluateCondition(n, &entry)
	default:
	}
	entry.MS = milliseconds(x.engine.opts.Now().Sub(begun))
	x.trace.setNode(i, entry)
	return branch, stopped
}

// evaluateCondition evaluates a condition. An error stops the request.
func (x *execution) evaluateCondition(n *node, entry *NodeTrace) (hookdef.Branch, *Outcome) {
	vars, err := x.state.newLookup(n.ID)
	if err != nil {
		entry.Error = &NodeError{Code: CodeScript, Message: err.Error()}
		return hookdef.NoBranch, x.failedOutcome(n, x.nodeFailure("condition", n, err))
	}
	mismatch := ""
	holds := n.Condition.HoldsNoting(vars, func(found string) {
		mismatch = cmp.Or(mismatch, found)
		entry.Console = append(entry.Console, Line{Level: "warn", Text: "comparison of different types: " + found})
	})
	if mismatch != "" && n.OnMismatch == hookdef.Refuse {
		entry.Error = &NodeError{Code: CodeMismatch, Message: mismatch}
		return hookdef.NoBranch, x.refusedOutcome("condition", n, CodeMismatch, "the condition compares different types: "+mismatch)
	}
	entry.Branch = hookdef.False
	if holds {
		entry.Branch = hookdef.True
	}
	return entry.Branch, nil
}

// sendCall sends the call, at most once. It does not send it if a hook has answered.
func (x *execution) sendCall(ctx context.Context, n *node, entry *NodeTrace) *Outcome {
	if x.state.answered {
		entry.Skipped = true
		return nil
	}
	if x.state.sent {
		return x.failedOutcome(n, x.programError("would send the call twice"))
	}
	x.state.sent = true
	begun := x.engine.opts.Now()
	response, err := x.caller.Call(ctx, Call{Method: x.state.method, Params: x.state.params.raw, Hold: x.state.hold, Progress: x.progressHandler(n)})
	x.state.took = x.engine.opts.Now().Sub(begun)
	if err == nil && len(response) == 0 {
		err = guideway.Errorf(guideway.CodeUnavailable, "the upstream returned an empty response")
	}
	if err != nil {
		x.state.failure = err
		entry.Error = &NodeError{Code: failureCode(err), Message: err.Error()}
		// Hooks that log calls also run for a failed call.
		for _, aside := range n.background[hookdef.NoBranch] {
			x.startBackground(ctx, &x.program.nodes[aside])
		}
		return x.handleError(ctx, n, err)
	}
	x.state.response = value{raw: response}
	return x.inputRequested(n)
}

// inputRequested ends the request if its response asks the client for input (revision
// 2026-07-28). The response is returned unchanged and must not contain a result besides the
// input request. The hooks after the call see the response to the request that contains the
// input.
func (x *execution) inputRequested(n *node) *Outcome {
	// Most responses need no decoding.
	if !mayContain(x.state.response.raw, "input_required") {
		return nil
	}
	t, err := x.state.response.decodeTree()
	if err != nil {
		return nil // a hook that reads the response reports the error
	}
	if kind := t.valueOf("resultType"); kind == nil || kind.text != "input_required" {
		return nil
	}
	for _, key := range t.keys {
		switch key {
		case "resultType", "inputRequests", "requestState", "_meta":
		default:
			return x.failedOutcome(n, x.nodeFailure("call", n, fmt.Errorf("the upstream's response asks for input, but also contains %q", key)))
		}
	}
	return &Outcome{}
}

// failedOutcome returns the outcome of a request that a node has stopped.
func (x *execution) failedOutcome(n *node, err error) *Outcome {
	return &Outcome{Status: StatusError, Err: err, Node: n.ID}
}

// nodeFailure returns the error of a failed node. It contains the node's kind, whether the
// call was sent, and the next action.
func (x *execution) nodeFailure(what string, n *node, err error) error {
	place := ""
	var script *ScriptError
	if errors.As(err, &script) && script.Line > 0 {
		place = fmt.Sprintf(" (%s:%d:%d)", script.File, script.Line, script.Column)
	}
	fix := cmp.Or(guideway.ErrorFix(err), "ask the owner of the hook graph to fix it, or disable it with: guideway hooks disable "+x.state.graph)
	return guideway.Errorf(guideway.CodeUnavailable, "the %s '%s' of the hook graph %s failed%s: %w%s", what, n.Title(), x.state.graph, x.whetherSent(), err, place).
		WithFix("%s", fix)
}

// whetherSent describes whether the call was sent, because a reader of an error needs to
// know its effects.
func (x *execution) whetherSent() string {
	if x.state.sent {
		return "; the call was sent, and its response is withheld"
	}
	return "; the call was not sent"
}

// refusedOutcome returns the outcome of a request that a node refuses; kind is hook or
// condition.
func (x *execution) refusedOutcome(kind string, n *node, code, message string) *Outcome {
	err := guideway.Errorf(guideway.CodeRefused, "refused by the %s '%s': %s%s", kind, n.Title(), cmp.Or(message, "no reason given"), x.whetherSent())
	return &Outcome{Status: StatusRefused, Err: &Refusal{Code: code, Graph: x.state.graph, Node: n.ID, err: err}, Node: n.ID}
}

// Refusal is the error of a request that a hook refused.
type Refusal struct {
	// Code is the hook's own code.
	Code        string
	Graph, Node string
	err         *guideway.Error
}

// Error implements error.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap returns the *guideway.Error.
func (r *Refusal) Unwrap() error { return r.err }
