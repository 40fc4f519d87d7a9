package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Tools gives the tools that a client sees, or the two that find and call them.
func (g *Gateway) Tools(ctx context.Context, c *Client) []json.RawMessage {
	switch {
	case g.may(ctx).none():
		return nil // there is nothing to search either
	case g.lazyFor(ctx):
		return lazyTools()
	}
	var out []json.RawMessage
	for _, t := range g.listed(ctx, c) {
		out = append(out, t.shown)
	}
	return out
}

// visible are the tools that a client may call.
func (g *Gateway) visible(ctx context.Context, c *Client) []*tool {
	s, may := g.ready(ctx, c), g.may(ctx)
	var out []*tool
	for _, t := range s.tools {
		if may.tool(t) {
			out = append(out, t)
		}
	}
	return out
}

// Prompts gives the prompts that a client sees.
func (g *Gateway) Prompts(ctx context.Context, c *Client) []json.RawMessage {
	return g.shown(ctx, c, func(s *surface) []*entry { return s.prompts })
}

// Resources gives the resources that a client sees.
func (g *Gateway) Resources(ctx context.Context, c *Client) []json.RawMessage {
	return g.shown(ctx, c, func(s *surface) []*entry { return s.resources })
}

// Templates gives the resource templates that a client sees.
func (g *Gateway) Templates(ctx context.Context, c *Client) []json.RawMessage {
	return g.shown(ctx, c, func(s *surface) []*entry { return s.templates })
}

func (g *Gateway) shown(ctx context.Context, c *Client, list func(*surface) []*entry) []json.RawMessage {
	s, may := g.ready(ctx, c), g.may(ctx)
	var out []json.RawMessage
	for _, e := range list(s) {
		if may.upstream(e.member) {
			out = append(out, e.shown)
		}
	}
	return out
}

// HasPrompt tells whether a prompt is one of an upstream.
func (g *Gateway) HasPrompt(ctx context.Context, c *Client, name string) bool {
	if g.surface.Load().prompt[name] != nil {
		return true
	}
	// Its upstream may not be known yet.
	return strings.Contains(name, separator) && g.ready(ctx, c).prompt[name] != nil
}

// hasTemplate tells whether a template is one of an upstream.
func (g *Gateway) hasTemplate(ctx context.Context, c *Client, uri string) bool {
	if g.surface.Load().address[uri] != nil {
		return true
	}
	ours := strings.HasPrefix(uri, "guideway:") // nothing is started to know that
	return uri != "" && !ours && g.ready(ctx, c).address[uri] != nil
}

// GetPrompt gets a prompt.
func (g *Gateway) GetPrompt(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	o := g.observe(c, "prompts/get", &r)
	e := g.ready(ctx, c).prompt[r.Name]
	if e == nil || !g.may(ctx).upstream(e.member) {
		return o.turnDown(ctx, &wire.Error{Code: wire.CodeInvalidParams, Message: fmt.Sprintf("unknown prompt %q", clip(r.Name, maxName))})
	}
	ctx = o.about(ctx, e.member, e.original, &r)
	if err := g.requestLimited(c, e.member, r); err != nil {
		return o.turnDown(ctx, err)
	}
	result, err := g.send(ctx, c, ask{method: "prompts/get", member: e.member, original: e.original, shown: e.name}, r)
	o.end(ctx, result, err)
	if err != nil {
		return nil, err
	}
	return g.readdress(e.member, result), nil
}

// resourceNotFound is the protocol's error for an address that nobody has, by
// the era.
func resourceNotFound(c *Client, uri string) error {
	failure := &wire.Error{Code: -32002, Message: "Resource not found", Data: wire.Object(wire.Member{Key: "uri", Value: wire.Text(clip(uri, maxAddress))})}
	if c.Modern {
		failure.Code = wire.CodeInvalidParams
	}
	return failure
}

// owner finds whose resource an address is.
func (g *Gateway) owner(ctx context.Context, c *Client, uri string) (*member, string, error) {
	m, original := g.ready(ctx, c).route(g, uri)
	if m == nil || !g.may(ctx).upstream(m) {
		return nil, "", resourceNotFound(c, uri)
	}
	return m, original, nil
}

// ReadResource reads a resource.
func (g *Gateway) ReadResource(ctx context.Context, c *Client, r Request) (json.RawMessage, error) {
	o := g.observe(c, "resources/read", &r)
	m, original, err := g.owner(ctx, c, r.Name)
	if err != nil {
		return o.turnDown(ctx, err)
	}
	ctx = o.about(ctx, m, original, &r)
	if err := g.requestLimited(c, m, r); err != nil {
		return o.turnDown(ctx, err)
	}
	result, err := g.send(ctx, c, ask{method: "resources/read", member: m, original: original, shown: r.Name}, r)
	o.end(ctx, result, err)
	if err != nil {
		return nil, err
	}
	return c.cacheable(g.readdress(m, result), nil)
}

// cacheable adds to what was read what a client of the modern era has to be told
// of caches, where an upstream of the legacy era says nothing of them.
func (c *Client) cacheable(result json.RawMessage, err error) (json.RawMessage, error) {
	if err != nil || !c.Modern {
		return result, err
	}
	members, err := wire.Members(result, "contents", "ttlMs", "cacheScope")
	if err != nil || members["contents"] == nil {
		return result, err
	}
	var missing []wire.Member
	if members["ttlMs"] == nil {
		missing = append(missing, wire.Member{Key: "ttlMs", Value: json.RawMessage("0")})
	}
	if members["cacheScope"] == nil {
		missing = append(missing, wire.Member{Key: "cacheScope", Value: json.RawMessage(`"private"`)})
	}
	return wire.With(result, missing...)
}

// HasResource tells whether an address may be one of an upstream.
func (g *Gateway) HasResource(ctx context.Context, c *Client, uri string) bool {
	m, _ := g.ready(ctx, c).route(g, uri)
	return m != nil
}

// Complete completes an argument of a prompt or of a template. ref is the
// member of that name, rest the others.
func (g *Gateway) Complete(ctx context.Context, c *Client, ref, rest json.RawMessage) (json.RawMessage, error) {
	members, err := wire.Members(ref, "type", "name", "uri")
	if err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the ref is not an object"}
	}
	s := g.ready(ctx, c)
	var e *entry
	key := "name"
	if name := member1(ref, "name"); members["name"] != nil {
		e = s.prompt[name]
	} else {
		key = "uri"
		e = s.address[member1(ref, "uri")]
	}
	if e == nil || !g.may(ctx).upstream(e.member) {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the ref names nothing that is there"}
	}
	if ref, err = wire.With(ref, wire.Member{Key: key, Value: wire.Text(e.original)}); err != nil {
		return nil, err
	}
	r := Request{Name: e.name, Arguments: rest}
	o := g.observe(c, "completion/complete", &r)
	ctx = o.about(ctx, e.member, e.original, &r)
	if err := g.requestLimited(c, e.member, r); err != nil {
		return o.turnDown(ctx, err)
	}
	result, err := g.complete(ctx, c, e, ref, r)
	o.end(ctx, result, err)
	return result, err
}

// complete sends what is to be completed to its upstream.
func (g *Gateway) complete(ctx context.Context, c *Client, e *entry, ref json.RawMessage, r Request) (json.RawMessage, error) {
	markSent(ctx)
	want, _ := g.want(c, e.member, true)
	session, done, err := e.member.Session(ctx, want)
	if err != nil {
		return nil, err
	}
	defer done()
	call := c.call(ask{method: "completion/complete", member: e.member}, Request{trace: r.trace})
	call.Name = ""
	call.Members = []wire.Member{{Key: "ref", Value: ref}}
	err = wire.Each(r.Arguments, func(key string, value json.RawMessage) error {
		if key != "ref" && key != "_meta" {
			call.Members = append(call.Members, wire.Member{Key: key, Value: value})
		}
		return nil
	})
	if err != nil {
		return nil, &wire.Error{Code: wire.CodeInvalidParams, Message: "the params are not an object"}
	}
	result, err := session.Do(ctx, call)
	if err != nil {
		return nil, err
	}
	return c.final(result, session.Modern())
}
