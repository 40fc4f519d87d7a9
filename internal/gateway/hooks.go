package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Hooks run user-defined logic before and after calls of tools, lists of tools, reads of
// resources and requests for prompts.
type Hooks interface {
	// Applies reports whether a hook applies to a method of an upstream's tool; the tool is
	// "" for other methods than tools/call. It is called for every request.
	Applies(method, upstream, tool string) bool
	// Versions returns the hashes of the hooks that apply to calls of a tool or to the list of
	// tools of its upstream, by their ids.
	Versions(upstream, tool string) map[string]string
	// Around runs the hooks of a request. send sends the request itself and may be called
	// at most once. If the hooks redirected the call to another tool, send calls Around
	// again with the context that it gets, and only the hooks that have not run yet are
	// run. The returned result is sent to the client.
	Around(ctx context.Context, call HookCall, send func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error)
}

// HookCall describes a call to hooks, with the upstream's own names.
type HookCall struct {
	Method, Upstream, Tool string
	Client                 guideway.Principal
	// Owner identifies the credential of the client: the user, and the token if there is one.
	Owner  string
	Params json.RawMessage
	// Run and Step are the open run of the client that it used last, and its current step.
	// They are empty without an open run, and for other methods than tools/call.
	Run, Step string
}

const (
	methodCall   = "tools/call"
	methodList   = "tools/list"
	methodRead   = "resources/read"
	methodPrompt = "prompts/get"
)

type progressKey struct{}

// WithProgress returns a context in which change changes the progress messages of a request,
// before the changes of the outer contexts. change returns the params to send, or nil to
// drop a message.
func WithProgress(ctx context.Context, change func(context.Context, json.RawMessage) json.RawMessage) context.Context {
	outer, _ := ctx.Value(progressKey{}).(func(context.Context, json.RawMessage) json.RawMessage)
	return context.WithValue(ctx, progressKey{}, func(ctx context.Context, params json.RawMessage) json.RawMessage {
		if params = change(ctx, params); params == nil || outer == nil {
			return params
		}
		return outer(ctx, params)
	})
}

func (g *Gateway) hooksApply(method string, m *member, tool string) bool {
	return g.opts.Hooks != nil && g.opts.Hooks.Applies(method, m.Name(), tool)
}

// unlistedTool returns a tool for a name that no upstream has, if a hook applies to calls
// of that name: the hook may redirect the call or answer it. Otherwise it returns nil.
func (g *Gateway) unlistedTool(c *Client, name string) *tool {
	if g.opts.Hooks == nil || len(name) > maxName || g.surfaceOf(c).names.taken[name] {
		return nil
	}
	for _, m := range g.allMembers() {
		original, ok := strings.CutPrefix(name, m.namePrefix())
		if ok && original != "" && !m.Tools[original].Hide && g.hooksApply(methodCall, m, original) {
			return &tool{entry: entry{member: m, name: name, full: name, original: original}, unlisted: true}
		}
	}
	return nil
}

// hookFix is the fix for a hook that returned invalid data.
const hookFix = "correct the script of the hook; guideway hooks list --active lists the hook graphs that run"

// callWithHooks makes a call with its hooks. The hooks may redirect the call to another
// tool of the same upstream, which is checked as if the client had called it.
func (g *Gateway) callWithHooks(ctx context.Context, c *Client, t *tool, r Request) (json.RawMessage, error) {
	result, err := g.aroundCall(ctx, c, t, r)
	if err == nil && !jsontext.Valid(result) { // The result becomes a part of the response unchanged, so it must be valid JSON.
		return nil, guideway.Errorf(guideway.CodeInvalid, "a hook returned a result that is not JSON").WithFix(hookFix)
	}
	return result, err
}

func (g *Gateway) aroundCall(ctx context.Context, c *Client, t *tool, r Request) (json.RawMessage, error) {
	return g.opts.Hooks.Around(ctx, hookCall(c, t, r), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		to, r, err := g.afterHooks(ctx, c, t, r, params)
		if err != nil {
			return nil, err
		}
		if to == t || !g.hooksApply(methodCall, to.member, to.original) {
			return g.sendTool(ctx, c, t, to, r)
		}
		return g.opts.Hooks.Around(ctx, hookCall(c, to, r), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			last, r, err := g.afterHooks(ctx, c, to, r, params)
			if err != nil {
				return nil, err
			}
			if last != to {
				return nil, guideway.Errorf(guideway.CodeRefused, "a hook redirected the call of %q to %q, and another hook to %q", t.original, to.original, last.original).
					WithFix("let only one hook change the tool")
			}
			return g.sendTool(ctx, c, t, to, r)
		})
	})
}

func hookCall(c *Client, t *tool, r Request) HookCall {
	members := []jsonrpc.Member{{Key: "name", Value: jsonrpc.Text(t.original)}}
	if r.Arguments != nil {
		members = append(members, jsonrpc.Member{Key: "arguments", Value: r.Arguments})
	}
	call := HookCall{
		Method: methodCall, Upstream: t.member.Name(), Tool: t.original,
		Client: c.Principal, Owner: c.stateOwner(), Params: jsonrpc.Object(members...),
	}
	if len(r.Scopes) > 0 {
		call.Run, call.Step = r.Scopes[0].Run, r.Scopes[0].Step
	}
	return call
}

// sendWithHooks sends a read of a resource or a request for a prompt with its hooks, which
// may change the arguments of a prompt and the result.
func (g *Gateway) sendWithHooks(ctx context.Context, c *Client, a route, r Request) (json.RawMessage, error) {
	if !g.hooksApply(a.method, a.member, "") {
		return g.sendPinned(ctx, c, a, r)
	}
	members := c.newCall(a, r).Members
	result, err := g.opts.Hooks.Around(ctx, HookCall{
		Method: a.method, Upstream: a.member.Name(), Client: c.Principal, Owner: c.stateOwner(), Params: jsonrpc.Object(members...),
	}, func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		changed, err := jsonrpc.Members(params, members[0].Key, "arguments")
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook returned invalid params: %w", err).WithFix(hookFix)
		}
		r.Arguments = changed["arguments"]
		if len(changed) > 2 || len(changed) == 2 && (r.Arguments == nil || a.method == methodRead) || !bytes.Equal(changed[members[0].Key], members[0].Value) {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook changed params of %s; hooks can only change the arguments of prompts/get", a.method).WithFix("change only params.arguments of prompts/get, or context.response")
		}
		return g.sendPinned(ctx, c, a, r)
	})
	if err == nil && !jsontext.Valid(result) {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a hook returned a result that is not JSON").WithFix(hookFix)
	}
	return result, err
}

// sendPinned sends a request and checks the pin of a page.
func (g *Gateway) sendPinned(ctx context.Context, c *Client, a route, r Request) (json.RawMessage, error) {
	result, err := g.send(ctx, c, a, r)
	if err == nil && a.method == methodRead {
		result, err = g.checkPage(a.member, a.original, result)
	}
	return result, err
}

// afterHooks reads the call that hooks return. A member that cannot be forwarded is an
// error, so that no change of a hook is ignored silently.
func (g *Gateway) afterHooks(ctx context.Context, c *Client, t *tool, r Request, params json.RawMessage) (*tool, Request, error) {
	members, err := jsonrpc.Members(params, "name", "arguments")
	if err != nil {
		return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook returned invalid params: %w", err).WithFix(hookFix)
	}
	for key := range members {
		if key != "name" && key != "arguments" {
			return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook set params.%s; hooks can only change the name and the arguments", clipText(key, maxName)).
				WithFix("do not set params.%s in the script of the hook", clipText(key, maxName))
		}
	}
	if r.Arguments = members["arguments"]; r.Arguments != nil && r.Arguments[0] != '{' && string(r.Arguments) != "null" {
		return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook returned arguments that are not an object").WithFix(hookFix)
	}
	var name string
	if json.Unmarshal(members["name"], &name) != nil || name == "" {
		return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook returned params without a valid tool name").WithFix(hookFix)
	}
	if name == t.original && !t.unlisted {
		return t, r, nil
	}
	to, err := g.redirectTarget(ctx, c, t, r, name)
	return to, r, err
}

// redirectTarget returns the tool that hooks chose, if the client may call it.
func (g *Gateway) redirectTarget(ctx context.Context, c *Client, t *tool, r Request, name string) (*tool, error) {
	to := g.surfaceOf(c).findOriginal(t.member, name)
	switch {
	case to != nil && name != t.original && g.accessOf(ctx).allowsTool(to):
	case name == t.original:
		return nil, unknownTool(t.name, nil)
	default:
		return nil, guideway.Errorf(guideway.CodeRefused, "a hook redirected the call of %q to %q, which is not a tool of %s that this client may call",
			t.original, clipText(name, maxName), t.member.Name()).WithFix("check the tool's name in the hook graph, and the tools that the client's token allows")
	}
	if to.blocked != "" {
		why, fix := blockedText("the tool "+to.name, to.blocked, to.member)
		return nil, guideway.Errorf(guideway.CodeForbidden, "%s", why).WithFix("%s", fix)
	}
	if err := to.checkUse(c, r.byModel); err != nil {
		return nil, err
	}
	return to, g.checkToolLimit(ctx, to)
}

// listedTools returns the tools that a client sees, after the list hooks. If the hooks of
// an upstream fail, its tools are omitted: a list without a required change must not be
// shown.
func (g *Gateway) listedTools(ctx context.Context, c *Client) []*tool {
	tools := g.visibleTools(ctx, c)
	if g.opts.Hooks == nil {
		return tools
	}
	var out []*tool
	for len(tools) > 0 {
		m, n := tools[0].member, 1
		for n < len(tools) && tools[n].member == m {
			n++
		}
		part := tools[:n]
		tools = tools[n:]
		if g.hooksApply(methodList, m, "") {
			var err error
			if part, err = g.applyListHooks(ctx, c, m, part); err != nil {
				g.logger.Warn("the tools of an upstream are omitted: a tools/list hook failed", "upstream", m.Name(), "error", err)
			}
		}
		out = append(out, part...)
	}
	return out
}

// applyListHooks runs the list hooks on the tools of one upstream.
func (g *Gateway) applyListHooks(ctx context.Context, c *Client, m *member, tools []*tool) ([]*tool, error) {
	known := map[string]*tool{}
	list := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		known[t.original] = t
		raw, err := jsonrpc.With(t.shown, jsonrpc.Member{Key: "name", Value: jsonrpc.Text(t.original)})
		if err != nil {
			return nil, fmt.Errorf("encode the tools of the upstream %s: %w", m.Name(), err)
		}
		list[i] = raw
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("encode the tools of the upstream %s: %w", m.Name(), err)
	}
	r := Request{}
	o := g.observe(c, methodList, &r)
	ctx = o.setTarget(ctx, m, "", &r)
	result, err := g.opts.Hooks.Around(ctx, HookCall{
		Method: methodList, Upstream: m.Name(), Client: c.Principal, Owner: c.stateOwner(), Params: json.RawMessage(`{}`),
	}, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		markSent(ctx)
		return jsonrpc.Object(jsonrpc.Member{Key: "tools", Value: text}), nil
	})
	o.endWith(ctx, result, err)
	if err != nil {
		return nil, err
	}
	members, err := jsonrpc.Members(result, "tools")
	if err != nil || json.Unmarshal(members["tools"], &list) != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a hook returned an invalid list of the tools of the upstream %s", m.Name()).WithFix(hookFix)
	}
	part, err := toolsFromHooks(g.surfaceOf(c), m, known, list)
	may := g.accessOf(ctx)
	return slices.DeleteFunc(part, func(t *tool) bool { return !may.allowsTool(t) }), err
}

// toolsFromHooks converts the list that hooks return to tools with the clients' names.
func toolsFromHooks(s *surface, m *member, known map[string]*tool, list []json.RawMessage) ([]*tool, error) {
	seen := map[string]bool{}
	out := make([]*tool, 0, len(list))
	for _, raw := range list {
		members, err := jsonrpc.Members(raw, "name", "description", "inputSchema")
		original := jsonrpc.TextMember(raw, "name")
		if schema := members["inputSchema"]; err != nil || original == "" || len(schema) == 0 || schema[0] != '{' {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook returned a tool whose name or inputSchema is missing or invalid: %s", clipText(string(raw), maxName)).WithFix(hookFix)
		}
		name := m.namePrefix() + original
		t := tool{entry: entry{member: m, original: original, name: name, full: name}, description: jsonrpc.TextMember(raw, "description")}
		if old := known[original]; old != nil {
			t.name, t.full, t.uses, t.hash = old.name, old.full, old.uses, old.hash
		} else if replaceInvalid(name) != name || len(name) > maxAdvertised {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook gave a tool the invalid name %q", clipText(original, maxName)).
				WithFix("use letters, digits, dots, dashes and underscores, and at most %d bytes with the upstream's prefix", maxAdvertised)
		} else if s.names.taken[t.name] {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook gave a tool the name %q, which is reserved or used by another tool", clipText(original, maxName)).
				WithFix("use another name")
		}
		if seen[t.name] {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook gave two tools the name %q", original).WithFix(hookFix)
		}
		seen[t.name] = true
		if t.shown, err = jsonrpc.With(raw, jsonrpc.Member{Key: "name", Value: jsonrpc.Text(t.name)}); err != nil {
			return nil, fmt.Errorf("encode the tools of the upstream %s: %w", m.Name(), err)
		}
		out = append(out, &t)
	}
	return out, nil
}

// Relist notifies clients that their list of tools is outdated, after a change of list
// hooks.
func (g *Gateway) Relist() {
	g.listVersion.Add(1)
	if d := g.downstreamOf(); d != nil && g.held.Load() {
		d.notifyChanged(KindTools)
	}
}
