package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Hooks are a user's own logic around calls and lists of tools.
type Hooks interface {
	// Looks tells whether any hook looks at a method of an upstream's tool; the
	// tool is "" for tools/list. It is asked at every call.
	Looks(method, upstream, tool string) bool
	// Around does a call with the hooks. send makes the call itself, once at
	// most. The result is what the client gets.
	Around(ctx context.Context, call HookCall, send func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)) (json.RawMessage, error)
}

// HookCall is what hooks are told of a call, in the upstream's own names.
type HookCall struct {
	Method, Upstream, Tool string
	// Before is the tool that the call was of, where hooks have looked at it and
	// made it one of Tool. They have done their part; only others that look at
	// Tool are left.
	Before string
	Client guideway.Principal
	Params json.RawMessage
}

const (
	methodCall = "tools/call"
	methodList = "tools/list"
)

func (g *Gateway) looks(method string, m *member, tool string) bool {
	return g.opts.Hooks != nil && g.opts.Hooks.Looks(method, m.Name(), tool)
}

// unlisted gives a name that no tool of an upstream has, where hooks look at calls
// of it: they may know the tool that it means, or answer themselves. nil is none.
func (g *Gateway) unlisted(name string) *tool {
	if g.opts.Hooks == nil || len(name) > maxName || g.surface.Load().names.taken[name] {
		return nil
	}
	for _, m := range g.all() {
		original, ok := strings.CutPrefix(name, m.prefix())
		if ok && original != "" && !m.Tools[original].Hide && g.looks(methodCall, m, original) {
			return &tool{entry: entry{member: m, name: name, original: original}, unlisted: true}
		}
	}
	return nil
}

// hooked does a call with the hooks around it. They may make it one of another
// tool of the same upstream, which is looked at as if the client had called it.
func (g *Gateway) hooked(ctx context.Context, c *Client, t *tool, r Request) (json.RawMessage, error) {
	result, err := g.aroundCall(ctx, c, t, r)
	if err == nil && !wire.Valid(result) { // it is written into the answer as it is
		return nil, guideway.Errorf(guideway.CodeInvalid, "a hook has made a result that is no JSON")
	}
	return result, err
}

func (g *Gateway) aroundCall(ctx context.Context, c *Client, t *tool, r Request) (json.RawMessage, error) {
	return g.opts.Hooks.Around(ctx, hookCall(c, t, "", r), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
		to, r, err := g.afterHooks(ctx, c, t, r, params)
		if err != nil {
			return nil, err
		}
		if to == t || !g.looks(methodCall, to.member, to.original) {
			return g.sendTool(ctx, c, t, to, r)
		}
		return g.opts.Hooks.Around(ctx, hookCall(c, to, t.original, r), func(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
			last, r, err := g.afterHooks(ctx, c, to, r, params)
			if err != nil {
				return nil, err
			}
			if last != to {
				return nil, guideway.Errorf(guideway.CodeRefused, "one hook made the call of %q one of %q, and another one of %q", t.original, to.original, last.original).
					WithFix("let one hook alone change the tool")
			}
			return g.sendTool(ctx, c, t, to, r)
		})
	})
}

func hookCall(c *Client, t *tool, before string, r Request) HookCall {
	members := []wire.Member{{Key: "name", Value: wire.Text(t.original)}}
	if r.Arguments != nil {
		members = append(members, wire.Member{Key: "arguments", Value: r.Arguments})
	}
	return HookCall{
		Method: methodCall, Upstream: t.member.Name(), Tool: t.original, Before: before,
		Client: c.Principal, Params: wire.Object(members...),
	}
}

// afterHooks reads what hooks have made of a call. A member that would not go on is
// an error: what a hook does is done, or said not to be.
func (g *Gateway) afterHooks(ctx context.Context, c *Client, t *tool, r Request, params json.RawMessage) (*tool, Request, error) {
	members, err := wire.Members(params, "name", "arguments")
	if err != nil {
		return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook has made params that are none: %w", err)
	}
	for key := range members {
		if key != "name" && key != "arguments" {
			return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook has set params.%s; hooks change the name and the arguments", clip(key, maxName)).
				WithFix("change params.arguments")
		}
	}
	if r.Arguments = members["arguments"]; r.Arguments != nil && r.Arguments[0] != '{' && string(r.Arguments) != "null" {
		return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook has made arguments that are no object")
	}
	var name string
	if json.Unmarshal(members["name"], &name) != nil || name == "" {
		return nil, r, guideway.Errorf(guideway.CodeInvalid, "a hook has taken the name of the tool away")
	}
	if name == t.original && !t.unlisted {
		return t, r, nil
	}
	to, err := g.target(ctx, c, t, name)
	return to, r, err
}

// target is the tool that hooks have chosen, if the client may call it.
func (g *Gateway) target(ctx context.Context, c *Client, t *tool, name string) (*tool, error) {
	var to *tool
	for _, each := range g.surface.Load().byName {
		if each.member.Upstream == t.member.Upstream && each.original == name {
			to = each
		}
	}
	switch {
	case to != nil && name != t.original && g.may(ctx).tool(to):
	case name == t.original:
		return nil, unknownTool(t.name, nil)
	default:
		return nil, guideway.Errorf(guideway.CodeRefused, "a hook made the call of %q one of %q, which is no tool of %s that this client may call",
			t.original, clip(name, maxName), t.member.Name()).WithFix("look at the names in the hook graph")
	}
	if to.blocked != "" {
		return nil, guideway.Errorf(guideway.CodeForbidden, "the tool %s is held back: %s", to.name, to.blocked).
			WithFix("%s", approveFix(to))
	}
	return to, g.toolLimited(to)
}

// listed are the tools that a client sees, as the hooks have them that look at
// lists. An upstream whose hooks fail is left out: what a hook should have changed
// is not shown without it.
func (g *Gateway) listed(ctx context.Context, c *Client) []*tool {
	tools := g.visible(ctx, c)
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
		if g.looks(methodList, m, "") {
			var err error
			if part, err = g.relisted(ctx, c, m, part); err != nil {
				g.logger.Warn("the tools of an upstream are left out: a hook that looks at them has not let them pass", "upstream", m.Name(), "error", err)
			}
		}
		out = append(out, part...)
	}
	return out
}

// relisted has hooks look at the tools of one upstream.
func (g *Gateway) relisted(ctx context.Context, c *Client, m *member, tools []*tool) ([]*tool, error) {
	known := map[string]*tool{}
	list := make([]json.RawMessage, len(tools))
	for i, t := range tools {
		known[t.original] = t
		raw, err := wire.With(t.shown, wire.Member{Key: "name", Value: wire.Text(t.original)})
		if err != nil {
			return nil, fmt.Errorf("write a list: %w", err)
		}
		list[i] = raw
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, fmt.Errorf("write a list: %w", err)
	}
	r := Request{}
	o := g.observe(c, methodList, &r)
	ctx = o.about(ctx, m, "", &r)
	result, err := g.opts.Hooks.Around(ctx, HookCall{
		Method: methodList, Upstream: m.Name(), Client: c.Principal, Params: json.RawMessage(`{}`),
	}, func(ctx context.Context, _ json.RawMessage) (json.RawMessage, error) {
		markSent(ctx)
		return wire.Object(wire.Member{Key: "tools", Value: text}), nil
	})
	o.end(ctx, result, err)
	if err != nil {
		return nil, err
	}
	members, err := wire.Members(result, "tools")
	if err != nil || json.Unmarshal(members["tools"], &list) != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "a hook has made a list of tools that is none")
	}
	part, err := g.renamed(m, known, list)
	may := g.may(ctx)
	return slices.DeleteFunc(part, func(t *tool) bool { return !may.tool(t) }), err
}

// renamed gives the tools of a list that hooks have made the names that clients
// use.
func (g *Gateway) renamed(m *member, known map[string]*tool, list []json.RawMessage) ([]*tool, error) {
	s := g.surface.Load()
	seen := map[string]bool{}
	out := make([]*tool, 0, len(list))
	for _, raw := range list {
		members, err := wire.Members(raw, "name", "description", "inputSchema")
		original := member1(raw, "name")
		if schema := members["inputSchema"]; err != nil || original == "" || len(schema) == 0 || schema[0] != '{' {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook has made a tool without a name or an inputSchema: %s", clip(string(raw), maxName))
		}
		t := tool{entry: entry{member: m, original: original, name: m.prefix() + original}, description: member1(raw, "description")}
		if old := known[original]; old != nil {
			t.name = old.name
		} else if clean(t.name) != t.name || len(t.name) > maxName || s.names.taken[t.name] {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook has given a tool the name %q, which is taken, reserved or no name", clip(original, maxName)).
				WithFix("use letters, digits, dots, dashes and underscores, and a name of its own")
		}
		if seen[t.name] {
			return nil, guideway.Errorf(guideway.CodeInvalid, "a hook has given two tools the name %q", original)
		}
		seen[t.name] = true
		if t.shown, err = wire.With(raw, wire.Member{Key: "name", Value: wire.Text(t.name)}); err != nil {
			return nil, fmt.Errorf("write a list: %w", err)
		}
		out = append(out, &t)
	}
	return out, nil
}

// Relist tells clients to ask for the tools anew, for when other hooks look at
// lists.
func (g *Gateway) Relist() {
	g.mu.Lock()
	notify := g.notify
	g.mu.Unlock()
	if notify != nil && g.held.Load() {
		notify(KindTools)
	}
}
