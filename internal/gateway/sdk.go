package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Extend has a server say what it can do with the gateway.
func (g *Gateway) Extend(opts *mcp.ServerOptions) {
	if opts.Capabilities == nil {
		opts.Capabilities = &mcp.ServerCapabilities{}
	}
	caps := opts.Capabilities
	caps.Tools = &mcp.ToolCapabilities{ListChanged: true}
	caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	caps.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}
	caps.Logging = &mcp.LoggingCapabilities{} //nolint:staticcheck // SA1019: upstreams log, and legacy clients listen
	caps.Completions = &mcp.CompletionCapabilities{}
	opts.SubscribeHandler = g.subscribeHandler
	opts.UnsubscribeHandler = g.unsubscribeHandler
	opts.Instructions += " Where there is tool_search, it finds tools of other MCP servers, and tool_call calls them."
}

// Attach has a server offer what the gateway offers, besides its own tools, whose
// names no upstream gets.
func (g *Gateway) Attach(server *mcp.Server, tools []string) {
	d := &downstream{gateway: g, server: server, sessions: map[*mcp.ServerSession]*downstreamSession{}}
	d.handle = d.handlers()
	g.mu.Lock()
	g.downstream, g.own.tools = d, tools
	g.mu.Unlock()
	g.rebuild()
	server.AddReceivingMiddleware(d.middleware)
	g.OnChange(d.poke)
	g.OnNotification(d.hear)
}

// Reserve keeps names of prompts for the server's own: no upstream has one of them
// from now on.
func (g *Gateway) Reserve(prompts []string) {
	g.mu.Lock()
	g.own.prompts = prompts
	g.mu.Unlock()
	g.rebuild()
}

// downstream is the SDK's side of the gateway.
type downstream struct {
	gateway *Gateway
	server  *mcp.Server
	handle  map[string]handler

	mu       sync.Mutex
	next     int
	sessions map[*mcp.ServerSession]*downstreamSession
	// updates are on their way to all who follow a resource.
	updates outbox
}

// downstreamSession is a session of the legacy era, or one on stdio.
type downstreamSession struct {
	id    string
	level string
	logs  *outbox
}

// changeMark is a name that appears and disappears in a list, for the SDK to
// tell clients that the list has changed.
const changeMark = "guideway-list-changed"

// poke tells clients that a list has changed.
func (d *downstream) poke(kind Kind) {
	switch kind {
	case KindTools:
		d.server.AddTool(&mcp.Tool{Name: changeMark, InputSchema: map[string]any{"type": "object"}},
			func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
				return nil, &jsonrpc.Error{Code: wire.CodeInvalidParams, Message: "unknown tool"}
			})
		d.server.RemoveTools(changeMark)
	case KindPrompts:
		d.server.AddPrompt(&mcp.Prompt{Name: changeMark}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return nil, &jsonrpc.Error{Code: wire.CodeInvalidParams, Message: "unknown prompt"}
		})
		d.server.RemovePrompts(changeMark)
	case KindResources:
		uri := "guideway://" + changeMark
		d.server.AddResource(&mcp.Resource{URI: uri, Name: changeMark}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, mcp.ResourceNotFoundError(uri)
		})
		d.server.RemoveResources(uri)
	}
}

// hear hands on what upstreams tell outside of calls.
func (d *downstream) hear(client, method string, params json.RawMessage) {
	ctx := context.Background()
	if method == "notifications/resources/updated" {
		var p mcp.ResourceUpdatedNotificationParams
		if json.Unmarshal(params, &p) == nil {
			d.updates.put(parcel{name: p.URI, size: len(params), send: func() { _ = d.server.ResourceUpdated(ctx, &p) }})
		}
		return
	}
	d.mu.Lock()
	var to *mcp.ServerSession
	var logs *outbox
	for session, of := range d.sessions {
		if "session:"+of.id == client {
			to, logs = session, of.logs
		}
	}
	d.mu.Unlock()
	if to != nil {
		logs.put(parcel{size: len(params), send: func() { notify(ctx, to, method, params) }})
	}
}

// notify sends a notification on the way of the request that ctx is of.
func notify(ctx context.Context, session *mcp.ServerSession, method string, params json.RawMessage) {
	switch method {
	case "notifications/progress":
		var p mcp.ProgressNotificationParams
		if json.Unmarshal(params, &p) == nil {
			_ = session.NotifyProgress(ctx, &p) // the client may be gone
		}
	case "notifications/message":
		var p mcp.LoggingMessageParams //nolint:staticcheck // SA1019: legacy clients listen
		if json.Unmarshal(params, &p) == nil {
			_ = session.Log(ctx, &p) //nolint:staticcheck // SA1019: legacy clients listen
		}
	}
}

// request is what all requests of clients have.
type request interface {
	mcp.Request
	ProtocolVersion() string
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// client tells who makes a request.
func (d *downstream) client(ctx context.Context, req request) (*Client, error) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, errors.New("the request has no session")
	}
	principal, _ := authn.PrincipalFrom(ctx)
	if info := req.ClientInfo(); info != nil && principal.Client == "" {
		principal.Client = clip(info.Name, 64)
	}
	c := &Client{
		Principal: principal, Modern: req.ProtocolVersion() >= upstream.ModernVersion, Logs: true,
		Notify: func(ctx context.Context, method string, params json.RawMessage) { notify(ctx, session, method, params) },
	}
	c.by(ctx)
	if extra := req.GetExtra(); extra != nil {
		c.Trace = traceOfHeader(extra.Header)
	}
	if caps := req.ClientCapabilities(); caps != nil {
		c.Can = canOf(caps)
	}
	if !c.Modern {
		of := d.sessionOf(session)
		c.Session, c.Level = of.id, of.level
		c.Ask = func(askCtx context.Context, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
			return askClient(ctx, askCtx, session, method, params)
		}
	}
	return c, nil
}

// canOf are the capabilities of a client, as it has declared them.
func canOf(caps *mcp.ClientCapabilities) Can {
	var can Can
	declared := func(v any) json.RawMessage {
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return text
	}
	if caps.Elicitation != nil {
		can.Elicitation = declared(caps.Elicitation)
	}
	if caps.Sampling != nil { //nolint:staticcheck // SA1019: legacy clients have it
		can.Sampling = declared(caps.Sampling) //nolint:staticcheck // SA1019: legacy clients have it
	}
	if caps.RootsV2 != nil { //nolint:staticcheck // SA1019: legacy clients have it
		can.Roots = declared(caps.RootsV2) //nolint:staticcheck // SA1019: legacy clients have it
	}
	return can
}

// sessionOf names a session, and ends what belongs to it when it ends.
func (d *downstream) sessionOf(session *mcp.ServerSession) downstreamSession {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.sessions[session]
	if of == nil {
		d.next++
		of = &downstreamSession{id: strconv.Itoa(d.next), logs: &outbox{}}
		d.sessions[session] = of
		go func() {
			_ = session.Wait() // however it has ended
			d.mu.Lock()
			delete(d.sessions, session)
			d.mu.Unlock()
			d.gateway.Release(&Client{Session: of.id})
		}()
	}
	return *of
}

// askClient asks a client of the legacy era. The context of the request has the
// question go out on the request's own way, and is not what ends it: the call
// that asks may be another one of the same client. The other context ends with
// the upstream's interest.
func askClient(ctx, until context.Context, session *mcp.ServerSession, method string, params json.RawMessage) (json.RawMessage, *wire.Error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	result, err := askTyped(ctx, session, method, params)
	if failure := (*jsonrpc.Error)(nil); errors.As(err, &failure) && failure.Code == codeRejected {
		// The request was answered in between. What belongs to none goes out on
		// the client's stream of notifications.
		apart, end := context.WithCancel(context.Background())
		defer end()
		defer context.AfterFunc(until, end)()
		result, err = askTyped(apart, session, method, params)
	}
	return typedAnswer(result, err)
}

// typedAnswer is an answer of the SDK as it is on the wire.
func typedAnswer(result any, err error) (json.RawMessage, *wire.Error) {
	if err == nil {
		var text json.RawMessage
		if text, err = json.Marshal(result); err == nil {
			return text, nil
		}
	}
	var failure *jsonrpc.Error
	if errors.As(err, &failure) {
		return nil, &wire.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
	}
	return nil, &wire.Error{Code: wire.CodeInternal, Message: "the client could not be asked: " + err.Error()}
}

// codeRejected is the SDK's error for what is sent on the way of a request that
// was answered.
const codeRejected = -32005

func askTyped(ctx context.Context, session *mcp.ServerSession, method string, params json.RawMessage) (any, error) {
	if params == nil {
		params = json.RawMessage(`{}`)
	}
	switch method {
	case "elicitation/create":
		var p mcp.ElicitParams
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		p.Meta = nil // the tokens in it are of another connection
		return session.Elicit(ctx, &p)
	case "sampling/createMessage":
		var p mcp.CreateMessageWithToolsParams //nolint:staticcheck // SA1019: legacy clients have it
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		p.Meta = nil
		return session.CreateMessageWithTools(ctx, &p) //nolint:staticcheck // SA1019: legacy clients have it
	case "roots/list":
		return session.ListRoots(ctx, nil) //nolint:staticcheck // SA1019: legacy clients have it
	}
	return nil, fmt.Errorf("a client is not asked %q", method)
}

// middleware answers what is about upstreams, and adds them to lists.
func (d *downstream) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		handle, ok := d.handle[method]
		from, typed := req.(request)
		if !ok || !typed {
			return next(ctx, method, req)
		}
		c, err := d.client(ctx, from)
		if err != nil {
			return nil, err
		}
		result, err := handle(ctx, c, req, func() (mcp.Result, error) { return next(ctx, method, req) })
		var failure *wire.Error
		if errors.As(err, &failure) {
			return nil, &jsonrpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
		}
		return result, err
	}
}

// handler answers a request; own is the answer without the gateway.
type handler func(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error)

func (d *downstream) handlers() map[string]handler {
	g := d.gateway
	return map[string]handler{
		"tools/list":               merged("tools", "name", g.Tools),
		"prompts/list":             merged("prompts", "name", g.Prompts),
		"resources/list":           merged("resources", "uri", g.Resources),
		"resources/templates/list": merged("resourceTemplates", "uriTemplate", g.Templates),
		"tools/call":               d.callTool,
		"prompts/get":              d.getPrompt,
		"resources/read":           d.readResource,
		"completion/complete":      d.complete,
		"logging/setLevel":         d.setLevel,
	}
}

// raw is a result that is written already.
type raw struct {
	text json.RawMessage
	mcp.ResultBase
}

// MarshalJSON implements json.Marshaler.
func (r *raw) MarshalJSON() ([]byte, error) {
	if len(r.Meta) == 0 {
		return r.text, nil
	}
	meta := json.RawMessage(`{}`)
	err := wire.Each(r.text, func(key string, value json.RawMessage) error {
		if key == "_meta" && value[0] == '{' {
			meta = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var members []wire.Member
	for key, value := range r.Meta {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		members = append(members, wire.Member{Key: key, Value: text})
	}
	if meta, err = wire.With(meta, members...); err != nil {
		return nil, err
	}
	return wire.With(r.text, wire.Member{Key: "_meta", Value: meta})
}

func rawResult(text json.RawMessage, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return &raw{text: text}, nil
}

// merged gives our own list with that of the upstreams behind it, on the last
// page.
func merged(member, id string, theirs func(context.Context, *Client) []json.RawMessage) handler {
	return func(ctx context.Context, c *Client, _ mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
		result, err := own()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(result)
		if err != nil {
			return nil, fmt.Errorf("write a list: %w", err)
		}
		members, err := wire.Members(text)
		if err != nil {
			return nil, fmt.Errorf("write a list: %w", err)
		}
		var list []json.RawMessage
		if members[member] != nil {
			if err := json.Unmarshal(members[member], &list); err != nil {
				return nil, fmt.Errorf("write a list: %w", err)
			}
		}
		list = slices.DeleteFunc(list, func(entry json.RawMessage) bool {
			name := member1(entry, id)
			return name == changeMark || name == "guideway://"+changeMark
		})
		if members["nextCursor"] == nil {
			list = append(list, theirs(ctx, c)...)
		}
		if list == nil {
			list = []json.RawMessage{}
		}
		all, err := json.Marshal(list)
		if err != nil {
			return nil, fmt.Errorf("write a list: %w", err)
		}
		text, err = wire.With(text, wire.Member{Key: member, Value: all})
		return rawResult(c.finish(text, err))
	}
}

func (d *downstream) callTool(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.CallToolRequest)
	if !ok {
		return own()
	}
	p := r.Params
	if !d.gateway.Has(p.Name) && d.own(ctx, p.Name) {
		return own()
	}
	in, err := d.request(c, p.Name, p.Meta, p.InputResponses, p.RequestState)
	if err != nil {
		return nil, err
	}
	in.Arguments = p.Arguments
	if extra := r.GetExtra(); extra != nil {
		in.Header = extra.Header
	}
	return rawResult(d.gateway.Call(ctx, c, in))
}

// own tells whether a tool that no upstream has is to be looked for among ours:
// one with the name of an upstream before it never is.
func (d *downstream) own(_ context.Context, name string) bool {
	for _, m := range d.gateway.all() {
		if p := m.prefix(); p != "" && len(name) > len(p) && name[:len(p)] == p {
			return false
		}
	}
	return true
}

// request takes params apart.
func (d *downstream) request(c *Client, name string, meta mcp.Meta, responses mcp.InputResponseMap, state string) (Request, error) {
	r := Request{Name: name, State: state}
	var err error
	if len(meta) > 0 {
		if token, ok := meta["progressToken"]; ok {
			if c.Token, err = json.Marshal(token); err != nil {
				return r, err
			}
		}
		if r.Meta, err = json.Marshal(meta); err != nil {
			return r, err
		}
	}
	if responses != nil {
		r.Responses, err = json.Marshal(responses)
	}
	return r, err
}

func (d *downstream) getPrompt(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.GetPromptRequest)
	if !ok || !d.gateway.HasPrompt(ctx, c, r.Params.Name) {
		return own()
	}
	p := r.Params
	in, err := d.request(c, p.Name, p.Meta, p.InputResponses, p.RequestState)
	if err == nil && p.Arguments != nil {
		in.Arguments, err = json.Marshal(p.Arguments)
	}
	if err != nil {
		return nil, err
	}
	return rawResult(d.gateway.GetPrompt(ctx, c, in))
}

func (d *downstream) readResource(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.ReadResourceRequest)
	if !ok || !d.gateway.HasResource(ctx, c, r.Params.URI) {
		return own()
	}
	p := r.Params
	in, err := d.request(c, p.URI, p.Meta, p.InputResponses, p.RequestState)
	if err != nil {
		return nil, err
	}
	return rawResult(d.gateway.ReadResource(ctx, c, in))
}

func (d *downstream) complete(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.CompleteRequest)
	if !ok || r.Params.Ref == nil {
		return own()
	}
	ref := r.Params.Ref
	if !d.gateway.HasPrompt(ctx, c, ref.Name) && !d.gateway.hasTemplate(ctx, c, ref.URI) {
		return own()
	}
	text, err := json.Marshal(r.Params)
	if err != nil {
		return nil, err
	}
	members, err := wire.Members(text)
	if err != nil {
		return nil, err
	}
	return rawResult(d.gateway.Complete(ctx, c, members["ref"], text))
}

func (d *downstream) setLevel(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.ServerRequest[*mcp.SetLoggingLevelParams]) //nolint:staticcheck // SA1019: legacy clients have it
	result, err := own()
	if !ok || err != nil {
		return result, err
	}
	level := string(r.Params.Level)
	d.mu.Lock()
	for _, of := range d.sessions {
		if of.id == c.Session {
			of.level = level
		}
	}
	d.mu.Unlock()
	d.gateway.SetLevel(ctx, c, level)
	return result, nil
}

func (g *Gateway) subscribeHandler(ctx context.Context, req *mcp.SubscribeRequest) error {
	c, err := g.downstreamOf().client(ctx, req)
	if err != nil {
		return err
	}
	err = g.Subscribe(ctx, c, req.Params.URI)
	var failure *wire.Error
	if errors.As(err, &failure) {
		return &jsonrpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
	}
	return err
}

func (g *Gateway) unsubscribeHandler(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	c, err := g.downstreamOf().client(ctx, req)
	if err != nil {
		return err
	}
	g.Unsubscribe(ctx, c, req.Params.URI)
	return nil
}

func (g *Gateway) downstreamOf() *downstream {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.downstream
}
