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
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// Observer observes each request to an upstream. It is called within every request, so it
// must not block.
type Observer interface {
	// Begin is called when the upstream of a request is known, before anything is sent, or
	// right before End for a request without an upstream. The upstream gets the Trace that
	// Begin sets; the returned context applies to the rest of the request, hooks included.
	Begin(ctx context.Context, x *Exchange) context.Context
	// End is called with the outcome of the request. x does not change afterwards.
	End(ctx context.Context, x *Exchange)
}

// Exchange is one request of a client and its outcome.
type Exchange struct {
	// Method is the MCP method, such as "tools/call".
	Method string
	Client guideway.Principal
	// Upstream and Project are empty if no upstream has the name. Name is the upstream's
	// name of the tool or prompt, or the upstream's URI of the resource; Shown is the name
	// or URI that the client uses.
	Upstream, Project, Name, Shown string
	// Began and Ended are the times of the request; Ended is zero until End.
	Began, Ended time.Time
	Outcome      Outcome
	// Held is the ID of the held call, if the call is held or was approved by a person.
	Held string
	// Error is the reason for an unsuccessful outcome; otherwise empty.
	Error string
	// Arguments are the client's arguments, and Result is the answer to the client. Neither
	// may be changed; an observer that keeps them after End must account for their memory.
	Arguments, Result json.RawMessage
	// Trace is the client's trace context until Begin changes it.
	Trace Trace

	// sent reports whether anything was sent to an upstream.
	sent bool
}

// Trace is a W3C Trace Context.
type Trace struct{ Parent, State string }

// Outcome is the outcome of a request.
type Outcome string

// The outcomes of requests.
const (
	// OutcomeOK is an answer of the upstream.
	OutcomeOK Outcome = "ok"
	// OutcomeToolError is an answer of the upstream with isError set.
	OutcomeToolError Outcome = "tool_error"
	// OutcomeAnswered is an answer of a hook instead of the upstream.
	OutcomeAnswered Outcome = "answered"
	// OutcomeAsked is an input request to the client, which answers it with another
	// request.
	OutcomeAsked Outcome = "asked"
	// OutcomeHeld is a call that waits for the approval of a person, and OutcomeDenied one
	// that a person denied.
	OutcomeHeld   Outcome = "held"
	OutcomeDenied Outcome = "denied"
	// OutcomeRefused is a refusal by the gateway or a hook.
	OutcomeRefused Outcome = "refused"
	// OutcomeTimeout, OutcomeCancelled and OutcomeCrash mean that there is no answer: the
	// time was up, the client cancelled, or the server was unreachable or exited.
	OutcomeTimeout   Outcome = "timeout"
	OutcomeCancelled Outcome = "cancelled"
	OutcomeCrash     Outcome = "crash"
	// OutcomeError is any other error, such as an MCP error or a failed hook.
	OutcomeError Outcome = "error"
)

// observation is an observed request; nil if there is no observer.
type observation struct {
	Exchange
	observer Observer
	begun    bool
}

// observe starts the observation of a request.
func (g *Gateway) observe(c *Client, method string, r *Request) *observation {
	if g.opts.Observer == nil {
		return nil
	}
	return &observation{observer: g.opts.Observer, Exchange: Exchange{
		Method: method, Client: c.Principal, Name: clipText(r.Name, maxAddress), Shown: clipText(r.Name, maxAddress), Began: time.Now(), Arguments: r.Arguments,
		Trace: traceOf(c, r.Meta),
	}}
}

// setTarget sets the upstream of the request and calls Begin. The request then has the
// trace that the observer sets.
func (o *observation) setTarget(ctx context.Context, m *member, original string, r *Request) context.Context {
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

// markSent records that a request was sent to an upstream.
func markSent(ctx context.Context) {
	if o, ok := ctx.Value(observationKey{}).(*observation); ok {
		o.sent = true
	}
}

// setOutcome records the outcome of a request from its result and its error, unless an
// outcome was recorded before.
func (o *observation) setOutcome(ctx context.Context, result json.RawMessage, err error) {
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

// setRefused records a refusal by the gateway.
func (o *observation) setRefused(why string) {
	if o != nil {
		o.Outcome, o.Error = OutcomeRefused, why
	}
}

// endUnrouted ends a request that the gateway refuses.
func (o *observation) endUnrouted(ctx context.Context, err error) (json.RawMessage, error) {
	o.setRefused(err.Error())
	o.endWith(ctx, nil, err)
	return nil, err
}

// endWith calls End with the answer for the client.
func (o *observation) endWith(ctx context.Context, result json.RawMessage, err error) {
	if o == nil {
		return
	}
	o.setOutcome(ctx, result, err)
	if !o.begun {
		ctx = o.setTarget(ctx, nil, "", &Request{})
	}
	o.Result, o.Ended = result, time.Now()
	o.observer.End(ctx, &o.Exchange)
}

// answerOf returns the outcome of a request that has a result.
func (o *observation) answerOf(result json.RawMessage) Outcome {
	says := func(key, value string) bool {
		if !bytes.Contains(result, []byte(key)) { // Most answers need no decoding.
			return false
		}
		found := false
		_ = jsonrpc.Each(result, func(name string, given json.RawMessage) error {
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

// failureOf returns the outcome of an error.
func failureOf(ctx context.Context, err error) Outcome {
	var failure *jsonrpc.Error
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

// firstText returns the text of the first block of an answer, shortened.
func firstText(result json.RawMessage) string {
	const most = 1 << 10
	members, err := jsonrpc.Members(result)
	if err != nil {
		return ""
	}
	var content []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(members["content"], &content) != nil || len(content) == 0 {
		return ""
	}
	return clipText(content[0].Text, most)
}

// The members of _meta that carry a trace in 2026-07-28. The HTTP headers have the same
// names.
const (
	traceParent = "traceparent"
	traceState  = "tracestate"
)

// traceOf returns the trace context of a request, from its _meta or else from the HTTP
// headers.
func traceOf(c *Client, meta json.RawMessage) Trace {
	if bytes.Contains(meta, []byte(traceParent)) {
		if parent := jsonrpc.TextMember(meta, traceParent); parent != "" {
			return Trace{Parent: parent, State: jsonrpc.TextMember(meta, traceState)}
		}
	}
	return c.Trace
}

// traceOfHeader returns the trace context of an HTTP request.
func traceOfHeader(h http.Header) Trace {
	if h == nil {
		return Trace{}
	}
	return Trace{Parent: h.Get(traceParent), State: h.Get(traceState)}
}

// addTo adds a trace context to a call to an upstream, in its _meta and as headers.
func (t Trace) addTo(call *upstream.Call) {
	if t.Parent == "" {
		return
	}
	call.Meta = slices.DeleteFunc(call.Meta, func(m jsonrpc.Member) bool { return m.Key == traceParent || m.Key == traceState })
	call.Meta = append(call.Meta, jsonrpc.Member{Key: traceParent, Value: jsonrpc.Text(t.Parent)})
	call.Trace = map[string]string{traceParent: t.Parent}
	if t.State != "" {
		call.Meta = append(call.Meta, jsonrpc.Member{Key: traceState, Value: jsonrpc.Text(t.State)})
		call.Trace[traceState] = t.State
	}
}
