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

// Options adjust an Engine; Scripts alone is needed.
type Options struct {
	// Scripts runs the scripts of hooks.
	Scripts Scripts
	// Audit keeps what hooks hand to it. Without one, a hook that audits fails.
	Audit Auditor
	// Timeout bounds a hook that sets no bound of its own: 5 seconds.
	Timeout time.Duration
	// Asides is how many fire-and-forget hooks may run at a time: 32. More are
	// dropped, and their traces say so.
	Asides int
	// OnAside is told what each fire-and-forget hook did, when it is over.
	OnAside func(graph string, node NodeTrace)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.Asides <= 0 {
		o.Asides = 32
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Engine runs programs. Its methods may be called from any goroutine.
type Engine struct {
	opts Options
	// slots holds a token for each fire-and-forget hook that runs.
	slots chan struct{}
	// life ends when the engine is closed.
	life context.Context //nolint:containedctx // the life of goroutines that outlive a request
	stop context.CancelFunc

	mu     sync.Mutex
	closed bool
	asides sync.WaitGroup
}

// New makes an engine. Close ends it.
func New(opts Options) *Engine {
	opts = opts.withDefaults()
	life, stop := context.WithCancel(context.Background())
	return &Engine{opts: opts, slots: make(chan struct{}, opts.Asides), life: life, stop: stop}
}

// Close waits for the fire-and-forget hooks that run, until ctx is done; then it
// cuts them off. It lets no more begin.
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

// Run takes a request through a program. It always gives an outcome.
func (e *Engine) Run(ctx context.Context, p *Program, request Request, caller Caller) *Outcome {
	x := &execution{engine: e, program: p, caller: caller, trace: newTrace(), state: state{
		method: p.graph.Type, params: value{raw: request.Params}, variables: value{raw: initial(p.graph.Variables)},
		shared: value{raw: json.RawMessage("{}")}, metadata: request.Metadata, graph: p.graph.ID, started: e.opts.Now(),
	}}
	defer x.trace.end()
	out := x.walk(ctx)
	out.Request = Call{Method: x.state.method, Params: x.state.params.raw}
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

// initial are the variables that a request begins with.
func initial(variables map[string]json.RawMessage) json.RawMessage {
	if len(variables) == 0 {
		return json.RawMessage("{}")
	}
	text, err := json.Marshal(variables)
	if err != nil {
		return json.RawMessage("{}") // they are parts of a document that was read as JSON
	}
	return text
}

// execution is one request on its way through a program.
type execution struct {
	engine  *Engine
	program *Program
	caller  Caller
	trace   *trace
	state   state
}

// walk goes from node to node until the end, or until one stops it. A program is
// a tree, so no node comes twice.
func (x *execution) walk(ctx context.Context) *Outcome {
	at := x.program.start
	for range x.program.nodes {
		n := &x.program.nodes[at]
		if err := ctx.Err(); err != nil {
			return x.failed(n, guideway.Errorf(guideway.CodeUnavailable, "the request was cancelled%s: %w", x.whetherSent(), err))
		}
		branch, stopped := x.visit(ctx, n)
		if stopped != nil {
			return stopped
		}
		if n.Kind == hookdef.End {
			if x.state.response.none() {
				return x.failed(n, x.broken("has no response at its end"))
			}
			return &Outcome{}
		}
		for _, aside := range n.asides[branch] {
			x.aside(ctx, &x.program.nodes[aside])
		}
		next, ok := n.next[branch]
		if !ok {
			return x.failed(n, x.broken("ends at node '"+n.ID+"'"))
		}
		at = next
	}
	return x.failed(&x.program.nodes[at], x.broken("goes in a circle"))
}

// broken is the error of a program that no checker has seen.
func (x *execution) broken(how string) error {
	return guideway.Errorf(guideway.CodeInternal, "the hook graph %s %s", x.state.graph, how)
}

// visit does what a node does. The outcome is nil where the request goes on.
func (x *execution) visit(ctx context.Context, n *node) (hookdef.Branch, *Outcome) {
	begun := x.engine.opts.Now()
	entry := NodeTrace{ID: n.ID, Kind: n.Kind}
	i := x.trace.begin(entry)
	var stopped *Outcome
	branch := hookdef.NoBranch
	switch n.Kind {
	case hookdef.HookNode:
		stopped = x.hook(ctx, n, &entry)
	case hookdef.Call:
		stopped = x.call(ctx, n, &entry)
	case hookdef.ConditionNode:
		branch, stopped = x.decide(n, &entry)
	default:
	}
	entry.MS = milliseconds(x.engine.opts.Now().Sub(begun))
	x.trace.set(i, entry)
	return branch, stopped
}

// decide asks a condition. One that cannot be asked stops the request.
func (x *execution) decide(n *node, entry *NodeTrace) (hookdef.Branch, *Outcome) {
	vars, err := x.state.lookup(n.ID)
	if err != nil {
		entry.Error = &NodeError{Code: CodeScript, Message: err.Error()}
		return hookdef.NoBranch, x.failed(n, x.stopped("condition", n, err))
	}
	entry.Branch = hookdef.False
	if n.Condition.Holds(vars) {
		entry.Branch = hookdef.True
	}
	return entry.Branch, nil
}

// call sends the call, once. Where a hook has answered there is nothing to send.
func (x *execution) call(ctx context.Context, n *node, entry *NodeTrace) *Outcome {
	if x.state.answered {
		entry.Skipped = true
		return nil
	}
	if x.state.sent {
		return x.failed(n, x.broken("would send the call twice"))
	}
	x.state.sent = true
	begun := x.engine.opts.Now()
	response, err := x.caller.Call(ctx, Call{Method: x.state.method, Params: x.state.params.raw})
	x.state.took = x.engine.opts.Now().Sub(begun)
	if err == nil && len(response) == 0 {
		err = guideway.Errorf(guideway.CodeUnavailable, "the server gave an empty response")
	}
	if err != nil {
		x.state.failure = err
		entry.Error = &NodeError{Code: CodeCall, Message: err.Error()}
		// Who keeps a record of calls wants those that failed most of all.
		for _, aside := range n.asides[hookdef.NoBranch] {
			x.aside(ctx, &x.program.nodes[aside])
		}
		return x.failed(n, err)
	}
	x.state.response = value{raw: response}
	return x.question(n)
}

// question stops where the response is none yet but asks the client for input
// (revision 2026-07-28): it goes back as it is, with nothing in it but the
// question, and the hooks behind the call see the response to the request that
// brings the input.
func (x *execution) question(n *node) *Outcome {
	// Most responses are only searched.
	if !mentions(x.state.response.raw, "input_required") {
		return nil
	}
	t, err := x.state.response.tree()
	if err != nil {
		return nil // a hook that looks at it says so
	}
	if kind := t.get("resultType"); kind == nil || kind.text != "input_required" {
		return nil
	}
	for _, key := range t.keys {
		switch key {
		case "resultType", "inputRequests", "requestState", "_meta":
		default:
			return x.failed(n, x.stopped("call", n, fmt.Errorf("the server asks for input and answers at once, with %q", key)))
		}
	}
	return &Outcome{}
}

// failed is the outcome of a request that a node has stopped.
func (x *execution) failed(n *node, err error) *Outcome {
	return &Outcome{Status: StatusError, Err: err, Node: n.ID}
}

// stopped is the error of a node that failed: what it was, whether the call was
// sent, and the way out.
func (x *execution) stopped(what string, n *node, err error) error {
	place := ""
	var script *ScriptError
	if errors.As(err, &script) && script.Line > 0 {
		place = fmt.Sprintf(" (%s:%d:%d)", script.File, script.Line, script.Column)
	}
	return guideway.Errorf(guideway.CodeUnavailable, "the %s '%s' of the hook graph %s failed%s: %w%s", what, n.Title(), x.state.graph, x.whetherSent(), err, place).
		WithFix("have its owner mend it, or turn it off: guideway hooks disable %s", x.state.graph)
}

// whetherSent says whether the call was sent: whoever gets an error wants to know
// what has been done.
func (x *execution) whetherSent() string {
	if x.state.sent {
		return "; the call was sent, and its response is kept back"
	}
	return "; the call was not sent"
}

// refused is the outcome of a request that a hook refuses.
func (x *execution) refused(n *node, code, message string) *Outcome {
	err := guideway.Errorf(guideway.CodeRefused, "refused by the hook '%s': %s%s", n.Title(), cmp.Or(message, "no reason is given"), x.whetherSent())
	return &Outcome{Status: StatusRefused, Err: &Refusal{Code: code, Graph: x.state.graph, Node: n.ID, err: err}, Node: n.ID}
}

// Refusal is the error of a request that a hook refused.
type Refusal struct {
	// Code is the hook's own.
	Code        string
	Graph, Node string
	err         *guideway.Error
}

// Error implements error.
func (r *Refusal) Error() string { return r.err.Error() }

// Unwrap gives the *guideway.Error.
func (r *Refusal) Unwrap() error { return r.err }
