package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/platform/textpart"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Request is a client's request to an upstream, with parsed params.
type Request struct {
	// Name is the name of the tool or prompt, or the URI of the resource.
	Name string
	// Arguments are forwarded unchanged. They may be nil.
	Arguments json.RawMessage
	// Meta is the client's _meta.
	Meta json.RawMessage
	// Responses are the answers to an input request of the modern protocol, and State is
	// the request state that came with it.
	Responses json.RawMessage
	State     string
	// Header holds the HTTP headers of the request, which must match its body. If nil, they
	// are not compared.
	Header http.Header
	// Scopes are the policies that apply to the call. If nil, the policies of the client's
	// open runs apply.
	Scopes []toolpolicy.Scope

	// byModel reports that a model calls the tool through tool_call.
	byModel bool
	// approved identifies the binding of a held call that is sent; see checkHold.
	approved string
	// trace, if set, replaces the client's trace context.
	trace Trace
	// delivery, if set, records whether the call was sent and why it failed.
	delivery *delivery
}

// HasTool reports whether Call handles a name: it is a tool of an upstream, a tool of the
// gateway, or a name to which a hook applies. It does not check the client's access.
func (g *Gateway) HasTool(c *Client, name string) bool {
	s := g.surfaceOf(c)
	return s.byName[name] != nil || isLazy(name) || name == resultRead && g.opts.Results != nil || g.unlistedTool(c, name) != nil || g.findPageTool(c, s, name) != nil
}

// findsToolLater waits for the lists of the upstreams if one of them has no prefix, and
// reports whether HasTool is true then: the client may have listed the tools at another
// instance.
func (g *Gateway) findsToolLater(ctx context.Context, c *Client, name string) bool {
	if !slices.ContainsFunc(g.allMembers(), func(m *member) bool { return m.NoPrefix }) {
		return false
	}
	g.readySurface(ctx, c)
	return g.HasTool(c, name)
}

// Call calls a tool. An error of type *jsonrpc.Error is sent to the client unchanged.
func (g *Gateway) Call(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	if isLazy(r.Name) { // A client that still has an earlier list may use these names too.
		return g.lazyCall(ctx, c, r)
	}
	if r.Name == resultRead && g.opts.Results != nil {
		return g.readResult(c, r)
	}
	return g.callTool(ctx, c, r)
}

func (g *Gateway) callTool(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	o := g.observe(c, methodCall, &r)
	t, err := g.findTool(ctx, c, r.Name)
	if err != nil {
		if t = g.unlistedTool(c, r.Name); t == nil || !g.accessOf(ctx).allowsTool(t) {
			return o.endUnrouted(ctx, cmp.Or(g.requireLogin(ctx, c, r.Name), err))
		}
	}
	ctx = o.setTarget(ctx, t.member, t.original, &r)
	if err := t.checkUse(c, r.byModel); err != nil {
		o.setRefused(err.Error())
		result, err := g.toolAnswer(c, t, nil, err)
		o.endWith(ctx, result, err)
		return result, err
	}
	result, err := g.callFound(ctx, c, t, r, o)
	o.endWith(ctx, result, err)
	return result, err
}

// callFound calls a tool. It refuses the call if its headers are wrong, if the tool waits
// for approval, or if a limit is reached.
func (g *Gateway) callFound(ctx context.Context, c *Client, t *tool, r Request, o *observation) (json.RawMessage, error) {
	whole := r.Scopes != nil // the call of a machine or a check
	if c.Modern && r.Header != nil {
		if failure := upstream.CheckHeaders(t.headers, r.Header, r.Arguments); failure != nil {
			o.setRefused(failure.Message)
			return nil, failure
		}
	}
	if t.blocked != "" {
		why, fix := blockedText("the tool "+t.name, t.blocked, t.member)
		o.setRefused(why)
		return c.finishResult(toolError(guideway.CodeForbidden, why, fix))
	}
	if err := g.checkLimits(ctx, c, t, r.State); err != nil {
		o.setRefused(err.Error())
		return c.finishResult(toolError(guideway.ErrorCode(err), err.Error(), guideway.ErrorFix(err)))
	}
	if err := g.refuseByPolicy(ctx, c, t, &r); err != nil {
		o.setRefused(err.Error())
		return g.toolAnswer(c, t, nil, err)
	}
	var result json.RawMessage
	var err error
	if g.hooksApply(methodCall, t.member, t.original) {
		result, err = g.callWithHooks(ctx, c, t, r)
	} else {
		result, err = g.sendTool(ctx, c, t, t, r)
	}
	o.setOutcome(ctx, result, err)
	if r.delivery != nil {
		r.delivery.err = err
	}
	if err == nil {
		result = g.rewriteURIs(c, route{method: methodCall, member: t.member}, result)
		if !whole {
			result = g.storeLarge(c, t.member, result)
		}
	}
	return g.toolAnswer(c, t, result, err)
}

// blockedText returns the message and the fix for a tool, a prompt, a template, a page or a
// skill that is not offered because of its pin.
func blockedText(what, why string, m *member) (message, fix string) {
	if strings.HasPrefix(why, invalidDefinition) || strings.HasPrefix(why, unreadableApprovals) {
		return what + " is withheld: " + why, "ask the user to check the upstream with: guideway upstream show " + m.Name()
	}
	return what + " waits for approval: " + why, "ask the user to review the changes with: guideway upstream approve " + m.Name()
}

func blockedError(what, why string, m *member) error {
	message, fix := blockedText(what, why, m)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message + "; " + fix}
}

// sendTool sends a call to the tool to, unless it is held. called is the tool that the client
// named; to is the same tool or a different tool of the same upstream.
func (g *Gateway) sendTool(ctx context.Context, c *Client, called, to *tool, r Request) (json.RawMessage, error) {
	hold, err := g.checkPolicy(to, r)
	if err != nil {
		return nil, err
	}
	r, asks, err := g.checkHold(ctx, c, called, to, r, hold)
	if asks != nil || err != nil {
		return asks, err
	}
	return g.send(ctx, c, route{method: methodCall, member: to.member, original: to.original, shown: called.name, headers: to.headers}, r)
}

// toolAnswer turns an error into a tool error, which a model can read. It returns protocol
// errors and the errors of a cancelled call unchanged.
func (g *Gateway) toolAnswer(c *Client, t *tool, result json.RawMessage, err error) (json.RawMessage, error) {
	var failure *jsonrpc.Error
	var denied *policyError
	var held *heldError
	switch {
	case err == nil:
		return result, nil
	case errors.As(err, &failure):
		return nil, failure
	case errors.As(err, &denied):
		return c.finishResult(denied.result())
	case errors.As(err, &held):
		return c.finishResult(held.result())
	case errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded):
		return nil, err
	}
	g.logger.Warn("a call of an upstream's tool was refused or failed", "upstream", t.member.Name(), "tool", t.original, "error", err)
	code := guideway.ErrorCode(err)
	if code == guideway.CodeInternal {
		code = guideway.CodeUnavailable
	}
	return c.finishResult(toolError(code, fmt.Sprintf("%s: %v", t.name, err), guideway.ErrorFix(err)))
}

// findTool returns a tool that the client may call.
func (g *Gateway) findTool(ctx context.Context, c *Client, name string) (*tool, error) {
	s := g.surfaceOf(c)
	t := s.byName[name]
	if t == nil && strings.Contains(name, separator) {
		s = g.readySurface(ctx, c) // The upstream's tools may not be known yet.
		t = s.byName[name]
	}
	if t == nil {
		t = g.findPageTool(c, s, name)
	}
	may := g.accessOf(ctx)
	if t != nil && may.allowsTool(t) {
		return t, nil
	}
	var known []string
	for _, each := range s.tools {
		if may.allowsTool(each) {
			known = append(known, each.name)
		}
	}
	return nil, unknownTool(name, known)
}

func unknownTool(name string, known []string) error {
	message := fmt.Sprintf("unknown tool %q", clipText(name, maxName))
	if near := spelling.Closest(name, known); near != "" {
		message += fmt.Sprintf("; did you mean %q?", near)
	}
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: message}
}

// route is the destination of a request.
type route struct {
	method string
	member *member
	// original is the upstream's name or URI of the target, and shown is the name or URI
	// that the client uses.
	original, shown string
	// prompt reports whether original is the name of a prompt.
	prompt  bool
	headers []upstream.HeaderArgument
	// tasks reports whether the upstream may run the request as a task, or the request is
	// about a task.
	tasks bool
	// params are further members of the params.
	params []jsonrpc.Member
}

// send sends a request to its upstream. If the upstream refuses a call because a person must
// log in, it asks for the login.
func (g *Gateway) send(ctx context.Context, c *Client, a route, r Request) (json.RawMessage, error) {
	result, err := g.sendOnce(ctx, c, a, r)
	var required *upstream.LoginRequired
	if !errors.As(err, &required) {
		return result, err
	}
	if err = g.explainLogin(ctx, c, a.member, err); a.method == methodCall {
		return g.sendAfterLogin(ctx, c, a, r, err)
	}
	return nil, err
}

// sendOnce sends a request to its upstream. It also forwards questions of the upstream to the
// client in a way that the protocol versions of both allow.
func (g *Gateway) sendOnce(ctx context.Context, c *Client, a route, r Request) (json.RawMessage, error) {
	markSent(ctx)
	var st state
	if r.State != "" {
		var err error
		if st, err = g.sealer.openState(r.State, c.stateOwner(), a.shown); err != nil {
			return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: err.Error()}
		}
		if st.Parked != "" {
			return g.resume(ctx, c, st, a, r.Responses)
		}
		if st.Login {
			r.Responses = nil // The answer was for the gateway.
		}
	}
	modern := false
	if known := a.member.Known(); known != nil {
		modern = known.Info.Version >= upstream.ModernVersion
	}
	want, parked := g.sessionFor(c, a.member, modern)
	if parked {
		result, err := g.park(ctx, c, want, a, r)
		if next := g.findReplacement(ctx, c, a, r, err); next != nil {
			a.member = next
			return g.sendOnce(ctx, c, a, r)
		}
		return result, err
	}
	s, done, err := a.member.Session(ctx, want)
	if next := g.findReplacement(ctx, c, a, r, err); next != nil {
		a.member = next
		return g.sendOnce(ctx, c, a, r)
	}
	if err != nil {
		return nil, err
	}
	defer done()
	return g.exchange(ctx, c, s, a, r, st.Upstream)
}

// findReplacement returns the upstream that has replaced the closed upstream of a request:
// after the lookup of the name, the upstream was restarted or its configuration changed. It
// returns nil if err has a different reason, or if the client may not send the request to
// the replacement: its tool or prompt may wait for approval, and the approval of a held call
// covers only an equal tool of an equal upstream.
func (g *Gateway) findReplacement(ctx context.Context, c *Client, a route, r Request, err error) *member {
	if !errors.Is(err, upstream.ErrClosed) {
		return nil
	}
	next := g.findMember(a.member.Name())
	if next == nil || next.Upstream == a.member.Upstream {
		return nil
	}
	s, may := g.readySurface(ctx, c), g.accessOf(ctx)
	if a.method == methodCall {
		if t := s.findOriginal(next, a.original); t == nil || t.blocked != "" || !may.allowsTool(t) || !g.covers(c, t, r) {
			return nil
		}
		return next
	}
	if e := s.findPrompt(next, a.original); a.prompt && (e == nil || e.blocked != "") || !may.allowsUpstream(next) {
		return nil
	}
	return next
}

// personOf returns the person whose login the sessions of a client with an upstream use, or ""
// if they use the configured credential or the login of the local user.
func (g *Gateway) personOf(c *Client, m *member) string {
	if l := g.opts.Upstream.Logins; l == nil || l.User == c.Principal.User || !m.Spec.CanLogIn() {
		return ""
	}
	return c.Principal.User
}

// sessionFor returns the upstream session that a request needs, and reports whether the
// call may have to be parked. A person has own sessions with an upstream that has logins.
func (g *Gateway) sessionFor(c *Client, m *member, modern bool) (want upstream.Want, parked bool) {
	person := g.personOf(c, m)
	own, asks := m.Sessions == SessionsClient || person != "", c.canAsk() || c.hasApps()
	switch {
	case m.Sessions == SessionsShared && person != "":
		return upstream.Want{Client: c.sharingKey(), User: person}, false
	case m.Sessions != SessionsShared && !own && modern && !asks && !c.Modern && c.Level == "":
		return m.Plain(), false
	case m.Sessions == SessionsShared, !own && (modern || !asks):
		return upstream.Want{}, false
	case modern || !c.canAsk() || !c.Modern:
		return upstream.Want{Client: c.sharingKey(), User: person, Capabilities: c.encodeCapabilities(false), Ask: g.newAsker(c, m)}, false
	}
	return upstream.Want{Client: c.sharingKey(), User: person, Capabilities: c.encodeCapabilities(false), Alone: true}, true
}

// newCall builds the call to an upstream.
func (c *Client) newCall(a route, r Request, extra ...jsonrpc.Member) upstream.Call {
	key := "name"
	switch a.method {
	case methodRead, methodGetSkill, methodReadDirectory:
		key = "uri"
	case methodGetTask, methodUpdateTask, methodCancelTask:
		key = "taskId"
	}
	members := make([]jsonrpc.Member, 0, 4)
	members = append(members, jsonrpc.Member{Key: key, Value: jsonrpc.Text(a.original)})
	members = append(members, a.params...)
	if r.Arguments != nil {
		members = append(members, jsonrpc.Member{Key: "arguments", Value: r.Arguments})
	}
	call := upstream.Call{
		Method: a.method, Name: a.original, Members: append(members, extra...),
		Meta: forwardedMeta(r.Meta), Capabilities: c.encodeCapabilities(a.tasks), Headers: upstream.HeadersOf(a.headers, r.Arguments),
		Progress: c.Token != nil,
	}
	if c.Level != "" {
		call.Meta = append(call.Meta, jsonrpc.Member{Key: metaLevel, Value: jsonrpc.Text(c.Level)})
	}
	r.trace.addTo(&call)
	return call
}

func asksLogs(meta []jsonrpc.Member) bool {
	return slices.ContainsFunc(meta, func(m jsonrpc.Member) bool { return m.Key == metaLevel })
}

// metaLevel is the member of _meta that sets the log level of a request in the modern
// protocol.
const metaLevel = "io.modelcontextprotocol/logLevel"

// forwardedMeta returns the members of a client's _meta to forward. It omits the progress
// token and the members of the protocol, except the log level.
func forwardedMeta(meta json.RawMessage) []jsonrpc.Member {
	if meta == nil {
		return nil
	}
	var kept []jsonrpc.Member
	err := jsonrpc.Each(meta, func(key string, value json.RawMessage) error {
		if key == metaLevel || key != "progressToken" && !strings.HasPrefix(key, "io.modelcontextprotocol/") {
			kept = append(kept, jsonrpc.Member{Key: key, Value: value})
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return kept
}

// maxRounds is the maximum number of requests that exchange sends for one call.
const maxRounds = 10

// exchange makes a call in a session. If a modern upstream asks for input, exchange asks a
// legacy client directly, but returns the questions to a modern client.
func (g *Gateway) exchange(ctx context.Context, c *Client, s *upstream.Session, a route, r Request, upstreamState string) (json.RawMessage, error) {
	responses := r.Responses
	for range maxRounds {
		var extra []jsonrpc.Member
		if responses != nil {
			extra = append(extra, jsonrpc.Member{Key: "inputResponses", Value: responses})
		}
		if upstreamState != "" {
			extra = append(extra, jsonrpc.Member{Key: "requestState", Value: jsonrpc.Text(upstreamState)})
		}
		a.tasks = a.tasks || g.mayRunAsTask(c, s, a)
		call := c.newCall(a, r, extra...)
		call.Notify = c.notifier(ctx)
		call.Logs = s.Modern() && asksLogs(call.Meta)
		if r.delivery != nil {
			r.delivery.sent.Store(true)
		}
		result, err := s.Do(ctx, call)
		if err != nil {
			return nil, g.describeTaskError(c, a, err)
		}
		if a.tasks && (a.method != methodCall || jsonrpc.TextMember(result, resultType) == taskResult) {
			return g.finishTask(c, a, result)
		}
		if !s.Modern() {
			return c.finalResult(result, false)
		}
		questions, next, err := parseInputRequests(result)
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeUnavailable, "the server's answer is invalid: %w", err).
				WithFix("check the effects of the call at the server before you repeat it")
		}
		if questions == nil {
			return c.finalResult(result, true)
		}
		if questions, err = g.checkQuestions(c, a.member, questions); err != nil {
			return nil, err
		}
		if c.Modern {
			return c.inputResult(questions, g.sealer.sealState(state{User: c.stateOwner(), Tool: a.shown, Upstream: next, Approved: r.approved}))
		}
		if responses, err = g.askAll(ctx, c, questions); err != nil {
			return nil, err
		}
		upstreamState = next
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the server asked for input %d times, which is the maximum for one call", maxRounds).
		WithFix("pass in the arguments all that the server asks for, or ask the operator of the server")
}

// notifier returns a function that forwards the progress and the log messages of a call.
func (c *Client) notifier(ctx context.Context) func(string, json.RawMessage) {
	if c.Notify == nil {
		return nil
	}
	return func(method string, params json.RawMessage) {
		switch method {
		case "notifications/progress":
			if c.Token == nil {
				return
			}
			if change, ok := ctx.Value(progressKey{}).(func(context.Context, json.RawMessage) json.RawMessage); ok {
				if params = change(ctx, params); params == nil {
					return
				}
			}
			mine, err := jsonrpc.With(params, jsonrpc.Member{Key: "progressToken", Value: c.Token})
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

// clipText returns the start of a text, with an ellipsis if it is cut.
func clipText(text string, most int) string { return textpart.Shorten(text, most) }
