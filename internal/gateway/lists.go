package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Tools returns the tools that a client sees: all of them, or tool_search and tool_call.
func (g *Gateway) Tools(ctx context.Context, c *Client) []json.RawMessage {
	switch {
	case g.accessOf(ctx).isEmpty():
		return nil // Not even tool_search, which would find no tool.
	case g.lazyFor(ctx):
		g.held.Store(true)
		if len(g.surfaceOf(c).members) == 0 {
			return nil
		}
		return append(lazyTools(), g.resultTools()...)
	}
	out := g.resultTools()
	for _, t := range g.listedTools(ctx, c) {
		out = append(out, t.shown)
	}
	return out
}

// visibleTools returns the tools that a client may call.
func (g *Gateway) visibleTools(ctx context.Context, c *Client) []*tool {
	s, may := g.readySurface(ctx, c), g.accessOf(ctx)
	return lists.Filter(s.tools, func(t *tool) bool { return may.allowsTool(t) && t.checkUse(c, false) == nil })
}

// Prompts returns the prompts that a client sees.
func (g *Gateway) Prompts(ctx context.Context, c *Client) []json.RawMessage {
	return g.shownEntries(ctx, c, func(s *surface) []*entry { return s.prompts })
}

// Resources returns the resources that a client sees.
func (g *Gateway) Resources(ctx context.Context, c *Client) []json.RawMessage {
	return g.shownEntries(ctx, c, func(s *surface) []*entry { return s.resources })
}

// Templates returns the resource templates that a client sees.
func (g *Gateway) Templates(ctx context.Context, c *Client) []json.RawMessage {
	return g.shownEntries(ctx, c, func(s *surface) []*entry { return s.templates })
}

func (g *Gateway) shownEntries(ctx context.Context, c *Client, list func(*surface) []*entry) []json.RawMessage {
	s, may := g.readySurface(ctx, c), g.accessOf(ctx)
	var out []json.RawMessage
	for _, e := range list(s) {
		if may.allowsUpstream(e.member) {
			out = append(out, e.shown)
		}
	}
	return out
}

// HasPrompt reports whether a prompt belongs to an upstream.
func (g *Gateway) HasPrompt(ctx context.Context, c *Client, name string) bool {
	if g.surfaceOf(c).prompt[name] != nil {
		return true
	}
	// The upstream's prompts may not be known yet.
	return strings.Contains(name, separator) && g.readySurface(ctx, c).prompt[name] != nil
}

// GetPrompt gets a prompt.
func (g *Gateway) GetPrompt(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	o := g.observe(c, methodPrompt, &r)
	e := g.readySurface(ctx, c).prompt[r.Name]
	if e == nil || !g.accessOf(ctx).allowsUpstream(e.member) {
		return o.endUnrouted(ctx, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", clipText(r.Name, maxName))})
	}
	if e.blocked != "" {
		return o.endUnrouted(ctx, blockedError("the prompt "+e.name, e.blocked, e.member))
	}
	return g.sendRouted(ctx, c, o, route{method: methodPrompt, member: e.member, original: e.original, shown: e.name, prompt: true}, r)
}

// sendRouted sends an observed request to its upstream, unless a limit refuses it.
func (g *Gateway) sendRouted(ctx context.Context, c *Client, o *observation, a route, r Request) (json.RawMessage, error) {
	ctx = o.setTarget(ctx, a.member, a.original, &r)
	if err := g.checkRequestLimits(ctx, c, a.member, r); err != nil {
		return o.endUnrouted(ctx, err)
	}
	result, err := g.sendWithHooks(ctx, c, a, r)
	o.endWith(ctx, result, err)
	if err != nil {
		return nil, withClientURI(err, a)
	}
	return g.rewriteURIs(c, a, result), nil
}

// withClientURI returns an error with the URI that the client used, instead of the upstream's.
func withClientURI(err error, a route) error {
	var failure *jsonrpc.Error
	if !errors.As(err, &failure) || a.method != methodRead || jsonrpc.TextMember(failure.Data, "uri") != a.original {
		return err
	}
	changed := *failure
	changed.Data = jsonrpc.RewriteObject(failure.Data, func(key string, value json.RawMessage) json.RawMessage {
		if key == "uri" {
			return jsonrpc.Text(a.shown)
		}
		return value
	})
	return &changed
}

// maxAddress is the maximum length of a URI in an error or a record.
const maxAddress = 4 << 10

// resourceNotFound returns the MCP error for an unknown URI, in the client's protocol
// version.
func resourceNotFound(c *Client, uri string) error {
	failure := &jsonrpc.Error{Code: -32002, Message: "Resource not found", Data: jsonrpc.Object(jsonrpc.Member{Key: "uri", Value: jsonrpc.Text(clipText(uri, maxAddress))})}
	if c.Modern {
		failure.Code = jsonrpc.CodeInvalidParams
	}
	return failure
}

// findOwner returns the upstream of a resource and the upstream's URI for it.
func (g *Gateway) findOwner(ctx context.Context, c *Client, uri string) (*member, string, error) {
	m, original := g.readySurface(ctx, c).findRoute(uri)
	if m == nil || !g.accessOf(ctx).allowsUpstream(m) {
		return nil, "", resourceNotFound(c, uri)
	}
	return m, original, nil
}

// ReadResource reads a resource.
func (g *Gateway) ReadResource(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	o := g.observe(c, methodRead, &r)
	m, original, err := g.findOwner(ctx, c, r.Name)
	if err != nil {
		return o.endUnrouted(ctx, err)
	}
	result, err := g.sendRouted(ctx, c, o, route{method: methodRead, member: m, original: original, shown: r.Name}, r)
	return c.withCacheHints("contents", result, err)
}

// withCacheHints adds the cache hints that the result of a read lacks. A modern client
// requires them.
func (c *Client) withCacheHints(of string, result json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil || !c.Modern {
		return result, err
	}
	members, err := jsonrpc.Members(result, of, "ttlMs", "cacheScope")
	if err != nil || members[of] == nil {
		return result, err
	}
	var missing []jsonrpc.Member
	if members["ttlMs"] == nil {
		missing = append(missing, jsonrpc.Member{Key: "ttlMs", Value: json.RawMessage("0")})
	}
	if members["cacheScope"] == nil {
		missing = append(missing, jsonrpc.Member{Key: "cacheScope", Value: json.RawMessage(`"private"`)})
	}
	return jsonrpc.With(result, missing...)
}

// HasResource reports whether a URI or a template may belong to an upstream.
func (g *Gateway) HasResource(ctx context.Context, c *Client, uri string) bool {
	m, _ := g.surfaceOf(c).findRoute(uri)
	if begin, rest := splitURI(uri); m == nil && (!isReserved(schemeOf(begin)) || strings.HasPrefix(rest, namesPath)) {
		m, _ = g.readySurface(ctx, c).findRoute(uri) // The upstream's resources may not be known yet.
	}
	return m != nil
}

// Complete completes an argument of a prompt or a template. ref is the params' member
// "ref", and rest holds the params, whose members "ref" and "_meta" are ignored.
func (g *Gateway) Complete(ctx context.Context, c *Client, ref, rest json.RawMessage) (json.RawMessage, error) {
	members, err := jsonrpc.Members(ref, "type", "name", "uri")
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the ref is invalid: " + err.Error()}
	}
	s := g.readySurface(ctx, c)
	var e *entry
	key := "name"
	if name := jsonrpc.TextMember(ref, "name"); members["name"] != nil {
		e = s.prompt[name]
	} else {
		key = "uri"
		uri := jsonrpc.TextMember(ref, "uri")
		if e = s.address[uri]; e == nil {
			if m, original := s.findRoute(uri); m != nil {
				e = &entry{member: m, name: uri, original: original}
			}
		}
	}
	if e == nil || !g.accessOf(ctx).allowsUpstream(e.member) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf("there is no prompt or resource with the %s %q", key, clipText(jsonrpc.TextMember(ref, key), maxName))}
	}
	if e.blocked != "" {
		return nil, blockedError("the prompt or template "+e.name, e.blocked, e.member)
	}
	if ref, err = jsonrpc.With(ref, jsonrpc.Member{Key: key, Value: jsonrpc.Text(e.original)}); err != nil {
		return nil, err
	}
	r := Request{Name: e.name, Arguments: rest}
	o := g.observe(c, "completion/complete", &r)
	ctx = o.setTarget(ctx, e.member, e.original, &r)
	if err := g.checkRequestLimits(ctx, c, e.member, r); err != nil {
		return o.endUnrouted(ctx, err)
	}
	a := route{method: "completion/complete", member: e.member, original: e.original, prompt: key == "name"}
	result, err := g.sendCompletion(ctx, c, a, ref, r)
	o.endWith(ctx, result, err)
	return result, err
}

// sendCompletion sends a completion request to its upstream.
func (g *Gateway) sendCompletion(ctx context.Context, c *Client, a route, ref json.RawMessage, r Request) (json.RawMessage, error) {
	markSent(ctx)
	want, _ := g.sessionFor(c, a.member, true)
	session, done, err := a.member.Session(ctx, want)
	if next := g.findReplacement(ctx, c, a, Request{}, err); next != nil {
		session, done, err = next.Session(ctx, want)
	}
	if err != nil {
		return nil, err
	}
	defer done()
	call := c.newCall(a, Request{trace: r.trace})
	call.Name = ""
	call.Members = []jsonrpc.Member{{Key: "ref", Value: ref}}
	err = jsonrpc.Each(r.Arguments, func(key string, value json.RawMessage) error {
		if key != "ref" && key != "_meta" {
			call.Members = append(call.Members, jsonrpc.Member{Key: key, Value: value})
		}
		return nil
	})
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the params are invalid: " + err.Error()}
	}
	result, err := session.Do(ctx, call)
	if err != nil {
		return nil, err
	}
	return c.finalResult(result, session.Modern())
}
