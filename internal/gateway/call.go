package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/spelling"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Request is what a client asks of an upstream: the params of the call, taken
// apart.
type Request struct {
	// Name is the tool's or prompt's name, or the resource's address.
	Name string
	// Arguments are passed on as they are; nil where there are none.
	Arguments json.RawMessage
	// Meta is the client's _meta.
	Meta json.RawMessage
	// Responses and State come with the answer to a question, in the modern
	// era.
	Responses json.RawMessage
	State     string
	// Header came with the call over HTTP; nil is nothing to compare with.
	Header http.Header

	// trace goes to the upstream in place of the client's own, where it is set.
	trace Trace
	// fate, if set, is told how far the call has come.
	fate *callFate
}

// Has tells whether a tool is one of an upstream.
func (g *Gateway) Has(name string) bool {
	s := g.surface.Load()
	return s.byName[name] != nil || isLazy(name) || g.unlisted(name) != nil
}

// Call calls a tool. An error that is a *wire.Error is for the client as it is.
func (g *Gateway) Call(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	if isLazy(r.Name) { // also for a client that holds a list of before
		return g.lazyCall(ctx, c, r)
	}
	return g.callTool(ctx, c, r)
}

func (g *Gateway) callTool(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	o := g.observe(c, methodCall, &r)
	t, err := g.find(ctx, c, r.Name)
	if err != nil {
		if t = g.unlisted(r.Name); t == nil || !g.may(ctx).tool(t) {
			return o.turnDown(ctx, err)
		}
	}
	ctx = o.about(ctx, t.member, t.original, &r)
	result, err := g.callFound(ctx, c, t, r, o)
	o.end(ctx, result, err)
	return result, err
}

// callFound calls a tool that the client may call, if nothing else holds it back.
func (g *Gateway) callFound(ctx context.Context, c *Client, t *tool, r Request, o *observation) (json.RawMessage, error) {
	if c.Modern && r.Header != nil {
		if failure := mismatch(t.headers, r.Header, r.Arguments); failure != nil {
			o.refused(failure.Message)
			return nil, failure
		}
	}
	if t.blocked != "" {
		why := fmt.Sprintf("the tool %s is held back: %s", t.name, t.blocked)
		o.refused(why)
		return c.finish(toolError(guideway.CodeForbidden, why, approveFix(t)), nil)
	}
	if !g.limits.first(r.State) {
		if err := g.limited(c, t); err != nil {
			o.refused(err.Error())
			return c.finish(toolError(guideway.ErrorCode(err), err.Error(), guideway.ErrorFix(err)), nil)
		}
	}
	var result json.RawMessage
	var err error
	if g.looks(methodCall, t.member, t.original) {
		result, err = g.hooked(ctx, c, t, r)
	} else {
		result, err = g.sendTool(ctx, c, t, t, r)
	}
	o.settle(ctx, result, err)
	if r.fate != nil {
		r.fate.err = err
	}
	if err == nil {
		result = g.readdress(t.member, result)
	}
	return g.toolAnswer(c, t, result, err)
}

// approveFix says what lets a tool that is held back be called.
func approveFix(t *tool) string {
	return "ask the user to look at it and to run: guideway upstream approve " + t.member.Name()
}

// sendTool sends the call of one tool to another one of its upstream, or to
// itself.
func (g *Gateway) sendTool(ctx context.Context, c *Client, called, to *tool, r Request) (json.RawMessage, error) {
	return g.send(ctx, c, ask{method: methodCall, member: to.member, original: to.original, shown: called.name, headers: to.headers}, r)
}

// toolAnswer gives errors of ours the form that a model reads.
func (g *Gateway) toolAnswer(c *Client, t *tool, result json.RawMessage, err error) (json.RawMessage, error) {
	var failure *wire.Error
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &failure):
		return nil, failure
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return nil, err
	}
	g.logger.Warn("a call to an upstream has failed", "upstream", t.member.Name(), "tool", t.original, "error", err)
	code := guideway.ErrorCode(err)
	if code == guideway.CodeInternal {
		code = guideway.CodeUnavailable
	}
	return c.finish(toolError(code, fmt.Sprintf("%s: %v", t.name, err), guideway.ErrorFix(err)), nil)
}

// find gives a tool that the client may call.
func (g *Gateway) find(ctx context.Context, c *Client, name string) (*tool, error) {
	s := g.surface.Load()
	t := s.byName[name]
	if t == nil && strings.Contains(name, separator) {
		s = g.ready(ctx, c) // its upstream may not be known yet
		t = s.byName[name]
	}
	may := g.may(ctx)
	if t != nil && may.tool(t) {
		return t, nil
	}
	var known []string
	for _, each := range s.tools {
		if may.tool(each) {
			known = append(known, each.name)
		}
	}
	return nil, unknownTool(name, known)
}

func unknownTool(name string, known []string) error {
	message := fmt.Sprintf("unknown tool %q", clip(name, maxName))
	if near := spelling.Closest(name, known); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	return &wire.Error{Code: wire.CodeInvalidParams, Message: message}
}

func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// ask is where a request goes.
type ask struct {
	method string
	member *member
	// original is what the upstream calls it, shown what clients do.
	original, shown string
	headers         []headerArgument
}

// send sends a request to its upstream, once, and brings what the upstream asks
// meanwhile to the client, by the era of both.
func (g *Gateway) send(ctx context.Context, c *Client, a ask, r Request) (json.RawMessage, error) {
	markSent(ctx)
	var st state
	if r.State != "" {
		var err error
		if st, err = g.sealer.open(r.State, c.owner(), a.shown); err != nil {
			return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: err.Error()}
		}
		if st.Parked != "" {
			return g.resume(ctx, c, st, a, r.Responses)
		}
	}
	modern := false
	if known := a.member.Known(); known != nil {
		modern = known.Info.Version >= upstream.ModernVersion
	}
	want, parked := g.want(c, a.member, modern)
	if parked {
		return g.park(ctx, c, want, a, r)
	}
	s, done, err := a.member.Session(ctx, want)
	if err != nil {
		return nil, err
	}
	defer done()
	return g.converse(ctx, c, s, a, r, st.Upstream)
}

// want says which session a request needs, and whether it may have to be parked.
func (g *Gateway) want(c *Client, m *member, modern bool) (want upstream.Want, parked bool) {
	own := m.Sessions == SessionsClient
	switch {
	case m.Sessions == SessionsShared, modern && !own, !c.interactive() && !own:
		return upstream.Want{}, false
	case modern || !c.interactive() || !c.Modern:
		return upstream.Want{Client: c.name(), Capabilities: c.capabilities(), Ask: g.asker(c, m)}, false
	}
	return upstream.Want{Client: c.name(), Capabilities: c.capabilities(), Alone: true}, true
}

// call makes the call to an upstream.
func (c *Client) call(a ask, r Request, extra ...wire.Member) upstream.Call {
	key := "name"
	if a.method == "resources/read" {
		key = "uri"
	}
	members := make([]wire.Member, 0, 4)
	members = append(members, wire.Member{Key: key, Value: wire.Text(a.original)})
	if r.Arguments != nil {
		members = append(members, wire.Member{Key: "arguments", Value: r.Arguments})
	}
	call := upstream.Call{
		Method: a.method, Name: a.original, Members: append(members, extra...),
		Meta: passed(r.Meta), Capabilities: c.capabilities(), Headers: headersOf(a.headers, r.Arguments),
	}
	if c.Level != "" {
		call.Meta = append(call.Meta, wire.Member{Key: metaLevel, Value: wire.Text(c.Level)})
	}
	r.trace.carry(&call)
	return call
}

func asksLogs(meta []wire.Member) bool {
	for _, m := range meta {
		if m.Key == metaLevel {
			return true
		}
	}
	return false
}

// metaLevel says in the modern era which log messages a request wants.
const metaLevel = "io.modelcontextprotocol/logLevel"

// passed is what of a client's _meta goes on: not what is about the connection
// between the client and us.
func passed(meta json.RawMessage) []wire.Member {
	if meta == nil {
		return nil
	}
	var kept []wire.Member
	err := wire.Each(meta, func(key string, value json.RawMessage) error {
		if key == metaLevel || key != "progressToken" && !strings.HasPrefix(key, "io.modelcontextprotocol/") {
			kept = append(kept, wire.Member{Key: key, Value: value})
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return kept
}

// maxRounds bounds how often an upstream may ask in one call.
const maxRounds = 10

// converse does a call in a session that is right for it. A client of the legacy
// era is asked by us what an upstream of the modern era wants to know.
func (g *Gateway) converse(ctx context.Context, c *Client, s *upstream.Session, a ask, r Request, upstreamState string) (json.RawMessage, error) {
	responses := r.Responses
	for range maxRounds {
		var extra []wire.Member
		if responses != nil {
			extra = append(extra, wire.Member{Key: "inputResponses", Value: responses})
		}
		if upstreamState != "" {
			extra = append(extra, wire.Member{Key: "requestState", Value: wire.Text(upstreamState)})
		}
		call := c.call(a, r, extra...)
		call.Notify = c.notes(ctx)
		call.Logs = s.Modern() && asksLogs(call.Meta)
		if r.fate != nil {
			r.fate.sent.Store(true)
		}
		result, err := s.Do(ctx, call)
		if err != nil {
			return nil, err
		}
		if !s.Modern() {
			return c.final(result, false)
		}
		questions, next, err := wanted(result)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "the server's answer cannot be used: %w", err)
		}
		if questions == nil {
			return c.final(result, true)
		}
		if questions, err = g.allowed(c, a.member, questions); err != nil {
			return nil, err
		}
		if c.Modern {
			return c.asking(questions, g.sealer.seal(state{User: c.owner(), Tool: a.shown, Upstream: next}))
		}
		if responses, err = g.askAll(ctx, c, questions); err != nil {
			return nil, err
		}
		upstreamState = next
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the server has asked %d times and still wants to know more", maxRounds)
}

// notes gives what hands on the notifications of a call.
func (c *Client) notes(ctx context.Context) func(string, json.RawMessage) {
	if c.Notify == nil {
		return nil
	}
	return func(method string, params json.RawMessage) {
		switch method {
		case "notifications/progress":
			if c.Token == nil {
				return
			}
			mine, err := wire.With(params, wire.Member{Key: "progressToken", Value: c.Token})
			if err == nil {
				c.Notify(ctx, method, mine)
			}
		case "notifications/message":
			if c.Logs {
				c.Notify(ctx, method, params)
			}
		}
	}
}
