package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Extend adds the capabilities of the gateway to a server.
func (g *Gateway) Extend(opts *mcp.ServerOptions) {
	if opts.Capabilities == nil {
		opts.Capabilities = &mcp.ServerCapabilities{}
	}
	caps := opts.Capabilities
	caps.Tools = &mcp.ToolCapabilities{ListChanged: true}
	caps.Prompts = &mcp.PromptCapabilities{ListChanged: true}
	caps.Resources = &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true}
	caps.Logging = &mcp.LoggingCapabilities{} //nolint:staticcheck // SA1019: upstreams send log messages, and legacy clients receive them
	caps.Completions = &mcp.CompletionCapabilities{}
	opts.SubscribeHandler = g.subscribeHandler
	opts.UnsubscribeHandler = g.unsubscribeHandler
	if len(g.allMembers()) == 0 {
		return
	}
	opts.Instructions += " If tool_search is available, it finds tools of other MCP servers, and tool_call calls them."
}

// Attach adds the gateway's tools, prompts and resources to a server. No upstream can use
// the names in tools, which are the server's own.
func (g *Gateway) Attach(server *mcp.Server, tools []string) {
	d := &downstream{gateway: g, server: server, sessions: map[*mcp.ServerSession]*downstreamSession{}, held: map[*mcp.ServerSession]*heldLists{}}
	d.handle = d.handlers()
	g.mu.Lock()
	g.downstream, g.own.tools = d, tools
	g.mu.Unlock()
	g.rebuild()
	for method, serve := range g.extensionMethods() {
		d.handle[method] = d.serveExtension(serve)
		_ = mcp.AddReceivingCustomMethod(server, method, refuseMethod(method)) // The only error would be a method of the SDK.
	}
	server.AddReceivingMiddleware(d.middleware)
	server.AddSendingMiddleware(d.queueNotifications)
}

// Reserve reserves prompt names for the server: no upstream can use them from now on. It must
// be called before each change of the server's own lists.
func (g *Gateway) Reserve(prompts []string) {
	g.mu.Lock()
	g.own.prompts = prompts
	g.listVersion.Add(1)
	g.mu.Unlock()
	g.rebuild()
}

// downstream connects the gateway to its clients through the SDK.
type downstream struct {
	gateway *Gateway
	server  *mcp.Server
	handle  map[string]handler

	mu       sync.Mutex
	next     int
	sessions map[*mcp.ServerSession]*downstreamSession
	// held maps each session to the versions of the lists that the session knows.
	held map[*mcp.ServerSession]*heldLists
}

// downstreamSession is a legacy session or a session on stdio.
type downstreamSession struct {
	id    string
	level string
	// outbox sends the notifications that belong to no request.
	outbox *outbox
}

// request is the interface of all requests of clients.
type request interface {
	mcp.Request
	ProtocolVersion() string
	ClientInfo() *mcp.Implementation
	ClientCapabilities() *mcp.ClientCapabilities
}

// clientOf returns the client of a request.
func (d *downstream) clientOf(ctx context.Context, req request) (*Client, error) {
	session, ok := req.GetSession().(*mcp.ServerSession)
	if !ok {
		return nil, errors.New("the request has no MCP session")
	}
	c := newClient(ctx, headerOf(req))
	c.receiver, c.connection = session, ConnectionOf(req)
	c.Modern = req.ProtocolVersion() >= upstream.ModernVersion
	c.Notify = func(ctx context.Context, method string, params json.RawMessage) {
		sendNotification(ctx, session, method, params)
	}
	if info := req.ClientInfo(); info != nil {
		c.setName(info.Name)
	}
	if caps := req.ClientCapabilities(); caps != nil {
		c.Capabilities = capabilitiesOf(caps)
	}
	if !c.Modern {
		of := d.sessionOf(session)
		c.Session, c.Level = of.id, of.level
		c.Ask = func(askCtx context.Context, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
			return askClient(ctx, askCtx, session, method, params)
		}
	}
	return c, nil
}

// headerOf returns the HTTP headers of a request, or nil.
func headerOf(req mcp.Request) http.Header {
	if extra := req.GetExtra(); extra != nil {
		return extra.Header
	}
	return nil
}

// capabilitiesOf returns the declared capabilities of a client.
func capabilitiesOf(caps *mcp.ClientCapabilities) Capabilities {
	var can Capabilities
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
	if caps.Sampling != nil { //nolint:staticcheck // SA1019: legacy clients support it
		can.Sampling = declared(caps.Sampling) //nolint:staticcheck // SA1019: legacy clients support it
	}
	if caps.RootsV2 != nil { //nolint:staticcheck // SA1019: legacy clients support it
		can.Roots = declared(caps.RootsV2) //nolint:staticcheck // SA1019: legacy clients support it
	}
	if caps.Extensions != nil {
		_ = can.Extensions.UnmarshalJSON(declared(caps.Extensions)) // UnmarshalJSON never returns an error.
	}
	return can
}

// sessionOf returns the state of a session. The state is released when the session ends.
func (d *downstream) sessionOf(session *mcp.ServerSession) downstreamSession {
	d.mu.Lock()
	defer d.mu.Unlock()
	of := d.sessions[session]
	if of == nil {
		d.next++
		of = &downstreamSession{id: strconv.Itoa(d.next), outbox: &outbox{}}
		d.sessions[session] = of
		go func() {
			_ = session.Wait() // The reason for the end is not needed.
			d.mu.Lock()
			delete(d.sessions, session)
			delete(d.held, session)
			d.mu.Unlock()
			d.gateway.Release(&Client{Session: of.id})
		}()
	}
	return *of
}

// askClient asks a legacy client. It sends the question with the response to the request of
// ctx. The end of that request does not end the question, because another call of the same
// client may have caused it. The until context ends when the upstream withdraws the
// question.
func askClient(ctx, until context.Context, session *mcp.ServerSession, method string, params json.RawMessage) (json.RawMessage, *jsonrpc.Error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(until, cancel)()
	result, err := askTyped(ctx, session, method, params)
	if failure := (*sdkjsonrpc.Error)(nil); errors.As(err, &failure) && failure.Code == codeRejected {
		// The request was already answered. A message outside a request is sent on the
		// client's notification stream.
		apart, end := context.WithCancel(context.Background())
		defer end()
		defer context.AfterFunc(until, end)()
		result, err = askTyped(apart, session, method, params)
	}
	return typedAnswer(result, err)
}

// typedAnswer encodes an answer of the SDK.
func typedAnswer(result any, err error) (json.RawMessage, *jsonrpc.Error) {
	if err == nil {
		var text json.RawMessage
		if text, err = json.Marshal(result); err == nil {
			return text, nil
		}
	}
	if failure := (*sdkjsonrpc.Error)(nil); errors.As(err, &failure) {
		return nil, &jsonrpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
	}
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternal, Message: "the client could not be asked: " + err.Error()}
}

// codeRejected is the SDK's error code for a message whose request was already answered.
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
		p.Meta = nil // The tokens in _meta belong to another connection.
		return session.Elicit(ctx, &p)
	case "sampling/createMessage":
		var p mcp.CreateMessageWithToolsParams //nolint:staticcheck // SA1019: legacy clients support it
		if err := json.Unmarshal(params, &p); err != nil {
			return nil, err
		}
		p.Meta = nil
		return session.CreateMessageWithTools(ctx, &p) //nolint:staticcheck // SA1019: legacy clients support it
	case "roots/list":
		return session.ListRoots(ctx, nil) //nolint:staticcheck // SA1019: legacy clients support it
	}
	return nil, fmt.Errorf("the request %q cannot be sent to a client", method)
}

// middleware answers requests to upstreams, and adds the entries of upstreams to lists.
func (d *downstream) middleware(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		handle, ok := d.handle[method]
		from, typed := req.(request)
		if !ok || !typed {
			return next(ctx, method, req)
		}
		c, err := d.clientOf(ctx, from)
		if err != nil {
			return nil, err
		}
		defer d.noteLists(method, c, req)()
		result, err := handle(ctx, c, req, func() (mcp.Result, error) { return next(ctx, method, req) })
		return result, sdkError(err)
	}
}

// sdkError returns a protocol error as the SDK's type, so that clients get its code.
func sdkError(err error) error {
	if failure := (*jsonrpc.Error)(nil); errors.As(err, &failure) {
		return &sdkjsonrpc.Error{Code: failure.Code, Message: failure.Message, Data: failure.Data}
	}
	return err
}

// handler answers a request. own answers it with the server's own handler.
type handler func(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error)

// passOn leaves a request to the server's own handler.
func passOn(_ context.Context, _ *Client, _ mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	return own()
}

func (d *downstream) handlers() map[string]handler {
	g := d.gateway
	return map[string]handler{
		"tools/list":                mergeLists("tools", "name", g.Tools),
		"prompts/list":              mergeLists("prompts", "name", g.Prompts),
		"resources/list":            mergeLists("resources", "uri", g.Resources),
		"resources/templates/list":  mergeLists("resourceTemplates", "uriTemplate", g.Templates),
		"tools/call":                d.callTool,
		"prompts/get":               d.getPrompt,
		"resources/read":            d.readResource,
		"completion/complete":       d.completeArgument,
		"logging/setLevel":          d.setLevel,
		"notifications/initialized": passOn,
		"subscriptions/listen":      passOn,
		"initialize":                d.negotiateExtensions,
		"server/discover":           d.negotiateExtensions,
	}
}

// encodedResult is a result that is already encoded.
type encodedResult struct {
	text json.RawMessage
	mcp.ResultBase
}

// MarshalJSON implements json.Marshaler.
func (r *encodedResult) MarshalJSON() ([]byte, error) {
	if len(r.Meta) == 0 {
		return r.text, nil
	}
	meta := json.RawMessage(`{}`)
	err := jsonrpc.Each(r.text, func(key string, value json.RawMessage) error {
		if key == "_meta" && value[0] == '{' {
			meta = value
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var members []jsonrpc.Member
	for key, value := range r.Meta {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		members = append(members, jsonrpc.Member{Key: key, Value: text})
	}
	if meta, err = jsonrpc.With(meta, members...); err != nil {
		return nil, err
	}
	return jsonrpc.With(r.text, jsonrpc.Member{Key: "_meta", Value: meta})
}

func rawResult(text json.RawMessage, err error) (mcp.Result, error) {
	if err != nil {
		return nil, err
	}
	return &encodedResult{text: text}, nil
}

// mergeLists returns a handler that appends the upstreams' entries to the last page of the
// server's own list.
func mergeLists(member, id string, theirs func(context.Context, *Client) []json.RawMessage) handler {
	return func(ctx context.Context, c *Client, _ mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
		result, err := own()
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(result)
		if err == nil {
			text, err = mergeList(text, member, id, func() []json.RawMessage { return theirs(ctx, c) })
		}
		if err != nil {
			return nil, fmt.Errorf("encode the list %q: %w", member, err)
		}
		return rawResult(c.finishResult(text))
	}
}

// mergeList adds the upstreams' entries to an encoded page of the server's own list if it
// is the last page, and removes changeMark.
func mergeList(page json.RawMessage, member, id string, theirs func() []json.RawMessage) (json.RawMessage, error) {
	members, err := jsonrpc.Members(page)
	if err != nil {
		return nil, err
	}
	var list []json.RawMessage
	if members[member] != nil {
		if err := json.Unmarshal(members[member], &list); err != nil {
			return nil, err
		}
	}
	list = slices.DeleteFunc(list, func(entry json.RawMessage) bool {
		name := jsonrpc.TextMember(entry, id)
		return name == changeMark || name == "guideway://"+changeMark
	})
	if members["nextCursor"] == nil {
		list = append(list, theirs()...)
	}
	if list == nil {
		list = []json.RawMessage{}
	}
	all, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	return jsonrpc.With(page, jsonrpc.Member{Key: member, Value: all})
}

func (d *downstream) callTool(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.CallToolRequest)
	if !ok {
		return own()
	}
	p := r.Params
	if !d.gateway.HasTool(c, p.Name) && d.isOwnTool(p.Name) {
		if result, err := own(); err == nil || !d.gateway.findsToolLater(ctx, c, p.Name) {
			return result, err
		}
	}
	in, err := d.newRequest(c, p.Name, p.Meta, p.InputResponses, p.RequestState)
	if err != nil {
		return nil, err
	}
	in.Arguments, in.Header = p.Arguments, headerOf(r)
	return rawResult(d.gateway.Call(ctx, c, in))
}

// isOwnTool reports whether a name that no upstream has may be the name of one of the
// server's own tools. A name with an upstream's prefix never is.
func (d *downstream) isOwnTool(name string) bool {
	return !slices.ContainsFunc(d.gateway.allMembers(), func(m *member) bool {
		p := m.shortPrefix()
		return p != "" && len(name) > len(p) && strings.HasPrefix(name, p)
	})
}

// newRequest builds a Request from SDK params, and sets the client's progress token.
func (d *downstream) newRequest(c *Client, name string, meta mcp.Meta, responses mcp.InputResponseMap, state string) (Request, error) {
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
	in, err := d.newRequest(c, p.Name, p.Meta, p.InputResponses, p.RequestState)
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
	in, err := d.newRequest(c, p.URI, p.Meta, p.InputResponses, p.RequestState)
	if err != nil {
		return nil, err
	}
	return rawResult(d.gateway.ReadResource(ctx, c, in))
}

func (d *downstream) completeArgument(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.CompleteRequest)
	if !ok || r.Params.Ref == nil {
		return own()
	}
	ref := r.Params.Ref
	if !d.gateway.HasPrompt(ctx, c, ref.Name) && (ref.URI == "" || !d.gateway.HasResource(ctx, c, ref.URI)) {
		return own()
	}
	text, err := json.Marshal(r.Params)
	if err != nil {
		return nil, err
	}
	members, err := jsonrpc.Members(text)
	if err != nil {
		return nil, err
	}
	return rawResult(d.gateway.Complete(ctx, c, members["ref"], text))
}

func (d *downstream) setLevel(ctx context.Context, c *Client, req mcp.Request, own func() (mcp.Result, error)) (mcp.Result, error) {
	r, ok := req.(*mcp.ServerRequest[*mcp.SetLoggingLevelParams]) //nolint:staticcheck // SA1019: legacy clients support it
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
	c, err := g.downstreamOf().clientOf(ctx, req)
	if err != nil {
		return err
	}
	return sdkError(g.Subscribe(ctx, c, req.Params.URI))
}

func (g *Gateway) unsubscribeHandler(ctx context.Context, req *mcp.UnsubscribeRequest) error {
	c, err := g.downstreamOf().clientOf(ctx, req)
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
