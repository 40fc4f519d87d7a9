package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Observer is told of each request that is about an upstream. It is on the way of
// every call, so it must not wait for anything.
type Observer interface {
	// Begin is told of a request once it is known whose it is, before anything is
	// sent. The Trace that it leaves goes to the upstream; the context that it
	// gives is that of the rest of the request, hooks included.
	Begin(ctx context.Context, x *Exchange) context.Context
	// End is told how the request came out. Nobody changes x any more.
	End(ctx context.Context, x *Exchange)
}

// Exchange is one request of a client and what came of it.
type Exchange struct {
	// Method is such as "tools/call".
	Method string
	Client guideway.Principal
	// Upstream and Project say whose it is, both empty where nobody's; Name is
	// the tool, prompt or address by its upstream's name, Shown by the client's.
	Upstream, Project, Name, Shown string
	// Began and Ended are the times; Ended is zero until the end.
	Began, Ended time.Time
	Outcome      Outcome
	// Error says why there is no good answer; empty where there is one.
	Error string
	// Arguments are those of the client and Result is what it got. They must not
	// be changed, nor kept beyond End without being counted.
	Arguments, Result json.RawMessage
	// Trace is the client's own at Begin.
	Trace Trace

	// sent says that something was handed to an upstream.
	sent bool
}

// Trace is the context of a trace, as W3C Trace Context writes it.
type Trace struct{ Parent, State string }

// Outcome is how a request came out.
type Outcome string

// The outcomes.
const (
	// OutcomeOK is an answer of the upstream.
	OutcomeOK Outcome = "ok"
	// OutcomeToolError is an answer of the upstream that says of itself that it
	// is an error.
	OutcomeToolError Outcome = "tool_error"
	// OutcomeAnswered is an answer of a hook in the upstream's place.
	OutcomeAnswered Outcome = "answered"
	// OutcomeAsked is a question to the client, whose answer is another request.
	OutcomeAsked Outcome = "asked"
	// OutcomeRefused is a request that the gateway or a hook has refused.
	OutcomeRefused Outcome = "refused"
	// OutcomeTimeout, OutcomeCancelled and OutcomeCrash are requests without an
	// answer: none came in time, the client took it back, or the server was not
	// there or went away.
	OutcomeTimeout   Outcome = "timeout"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeCrash     Outcome = "crash"
	// OutcomeError is any other failure: an error of the protocol, a hook that
	// failed.
	OutcomeError Outcome = "error"
)

// observation is a request that somebody watches; nil is one that nobody does.
type observation struct {
	Exchange
	observer Observer
	begun    bool
}

// observe begins to watch a request.
func (g *Gateway) observe(c *Client, method string, r *Request) *observation {
	if g.opts.Observer == nil {
		return nil
	}
	return &observation{observer: g.opts.Observer, Exchange: Exchange{
		Method: method, Client: c.Principal, Name: clip(r.Name, maxAddress), Shown: clip(r.Name, maxAddress), Began: time.Now(), Arguments: r.Arguments,
		Trace: traceOf(c, r.Meta),
	}}
}

// about says whose the request is, which begins it. The request carries on what
// the observer made of the trace.
func (o *observation) about(ctx context.Context, m *member, original string, r *Request) context.Context {
	if o == nil {
		return ctx
	}
	if m != nil {
		o.Upstream, o.Project, o.Name = m.Name(), m.Project, original
	}
	o.begun = true
	ctx = o.observer.Begin(context.WithValue(ctx, observationKey{}, o), &o.Exchange)
	r.trace = o.Trace
	return ctx
}

type observationKey struct{}

// markSent notes that a request went to an upstream.
func markSent(ctx context.Context) {
	if o, ok := ctx.Value(observationKey{}).(*observation); ok {
		o.sent = true
	}
}

// settle notes how a request came out, from what is known inside.
func (o *observation) settle(ctx context.Context, result json.RawMessage, err error) {
	if o == nil || o.Outcome != "" {
		return
	}
	if err != nil {
		o.Outcome, o.Error = failureOf(ctx, err), err.Error()
		return
	}
	o.Outcome = o.answerOf(result)
	if o.Outcome == OutcomeToolError {
		o.Error = firstText(result)
	}
}

// refused notes a refusal of the gateway's own.
func (o *observation) refused(why string) {
	if o != nil {
		o.Outcome, o.Error = OutcomeRefused, why
	}
}

// turnDown ends a request that is nobody's.
func (o *observation) turnDown(ctx context.Context, err error) (json.RawMessage, error) {
	o.refused(err.Error())
	o.end(ctx, nil, err)
	return nil, err
}

// end tells the observer. The answer is the one that the client gets.
func (o *observation) end(ctx context.Context, result json.RawMessage, err error) {
	if o == nil {
		return
	}
	o.settle(ctx, result, err)
	if !o.begun {
		ctx = o.about(ctx, nil, "", &Request{})
	}
	o.Result, o.Ended = result, time.Now()
	o.observer.End(ctx, &o.Exchange)
}

// answerOf tells an answer by what it says of itself.
func (o *observation) answerOf(result json.RawMessage) Outcome {
	says := func(key, value string) bool {
		if !bytes.Contains(result, []byte(key)) { // most answers are only searched
			return false
		}
		found := false
		_ = wire.Each(result, func(name string, given json.RawMessage) error {
			found = found || name == key && string(given) == value
			return nil
		})
		return found
	}
	switch {
	case says("resultType", `"input_required"`):
		return OutcomeAsked
	case !o.sent:
		return OutcomeAnswered
	case says("isError", "true"):
		return OutcomeToolError
	}
	return OutcomeOK
}

// failureOf tells failures apart.
func failureOf(ctx context.Context, err error) Outcome {
	var failure *wire.Error
	var none *upstream.NoAnswer
	var gone *upstream.GoneError
	switch {
	case errors.As(err, &failure):
		return OutcomeError
	case errors.Is(err, errCancelled), errors.Is(err, context.Canceled), ctx.Err() != nil:
		return OutcomeCancelled
	case errors.As(err, &none) && none.Late, errors.Is(err, context.DeadlineExceeded):
		return OutcomeTimeout
	case none != nil, errors.As(err, &gone):
		return OutcomeCrash
	case guideway.ErrorCode(err) == guideway.CodeRefused, guideway.ErrorCode(err) == guideway.CodeForbidden:
		return OutcomeRefused
	}
	return OutcomeError
}

// firstText is what an answer says first, cut.
func firstText(result json.RawMessage) string {
	const most = 1 << 10
	members, err := wire.Members(result)
	if err != nil {
		return ""
	}
	var content []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(members["content"], &content) != nil || len(content) == 0 {
		return ""
	}
	return clip(content[0].Text, most)
}

// The members of _meta that carry a trace (2026-07-28); the headers of HTTP are
// called the same.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// traceOf is the trace that a request is part of, by its client: what its _meta
// says, or else the headers of HTTP.
func traceOf(c *Client, meta json.RawMessage) Trace {
	if bytes.Contains(meta, []byte(traceParent)) {
		if parent := member1(meta, traceParent); parent != "" {
			return Trace{Parent: parent, State: member1(meta, traceState)}
		}
	}
	return c.Trace
}

// traceOfHeader is the trace that a request over HTTP is part of.
func traceOfHeader(h http.Header) Trace {
	if h == nil {
		return Trace{}
	}
	return Trace{Parent: h.Get(traceParent), State: h.Get(traceState)}
}

// carry has a call to an upstream carry a trace, in its _meta and as headers.
func (t Trace) carry(call *upstream.Call) {
	if t.Parent == "" {
		return
	}
	call.Meta = slices.DeleteFunc(call.Meta, func(m wire.Member) bool { return m.Key == traceParent || m.Key == traceState })
	call.Meta = append(call.Meta, wire.Member{Key: traceParent, Value: wire.Text(t.Parent)})
	call.Trace = map[string]string{traceParent: t.Parent}
	if t.State != "" {
		call.Meta = append(call.Meta, wire.Member{Key: traceState, Value: wire.Text(t.State)})
		call.Trace[traceState] = t.State
	}
}
