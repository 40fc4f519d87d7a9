package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Client describes the client of one request.
type Client struct {
	// Session is the session ID of a legacy client; empty for a modern one, which has no
	// session.
	Session   string
	Principal guideway.Principal
	// connection is the client's connection; nil for a modern client over HTTP.
	connection *mcp.ServerSession
	// Holder is the ID of the client's named token; empty for the token of the token file.
	Holder string
	// Modern reports whether the request uses the modern protocol.
	Modern bool
	// Capabilities are the input requests that the client supports.
	Capabilities Capabilities
	// Ask sends a question to the client. It is used for legacy clients only.
	Ask upstream.Asker
	// Notify sends a notification with the response to the request; if nil, notifications
	// are dropped. Progress is sent only if Token is set.
	Notify func(ctx context.Context, method string, params json.RawMessage)
	// receiver is the session that gets the updates of the resources that the request
	// subscribes to; nil outside of the SDK.
	receiver *mcp.ServerSession
	// Token is the client's progress token.
	Token json.RawMessage
	// Logs reports whether the client wants log messages.
	Logs bool
	// Level is the minimum level of the log messages that the client asked for; empty
	// disables them.
	Level string
	// Trace is the trace context from the HTTP headers of the request.
	Trace Trace
}

// Capabilities are the declared capabilities of a client that concern input requests, and its
// extensions; nil means not declared.
type Capabilities struct {
	Elicitation json.RawMessage     `json:"elicitation,omitempty"`
	Sampling    json.RawMessage     `json:"sampling,omitempty"`
	Roots       json.RawMessage     `json:"roots,omitempty"`
	Extensions  upstream.Extensions `json:"extensions,omitempty"`
}

// canAsk reports whether an upstream can ask the client for input during a call.
func (c *Client) canAsk() bool {
	return c.Capabilities.Elicitation != nil || c.Capabilities.Sampling != nil || c.Capabilities.Roots != nil && !c.Modern
}

// encodeCapabilities returns the client's capabilities in the form that upstreams receive.
// tasks reports whether they include the extension for tasks.
func (c *Client) encodeCapabilities(tasks bool) json.RawMessage {
	var members []jsonrpc.Member
	for _, m := range []jsonrpc.Member{
		{Key: "elicitation", Value: c.Capabilities.Elicitation},
		{Key: "extensions", Value: c.Capabilities.encodeExtensions(tasks)},
		{Key: "roots", Value: c.Capabilities.Roots},
		{Key: "sampling", Value: c.Capabilities.Sampling},
	} {
		if m.Value != nil {
			members = append(members, m)
		}
	}
	return jsonrpc.Object(members...)
}

// supports reports whether the client has declared the capability that a method needs, and
// returns the capability's name. For an unknown method it returns the method.
func (c *Client) supports(method string) (ok bool, capability string) {
	switch method {
	case "elicitation/create":
		return c.Capabilities.Elicitation != nil, "elicitation"
	case "sampling/createMessage":
		return c.Capabilities.Sampling != nil, "sampling"
	case "roots/list":
		return c.Capabilities.Roots != nil, "roots"
	}
	return false, method
}

// sharingKey returns a key that is equal only for clients that share their state.
func (c *Client) sharingKey() string {
	if c.Session != "" {
		return "session:" + c.Session
	}
	return "user:" + c.stateOwner() + ":" + c.Principal.Client
}

// listKey returns the key of the lists that a request gets. In the modern protocol, a
// client may send requests with and without capabilities. If clients without capabilities
// share a session with an upstream, only the requests with capabilities use the client's
// own session.
func (c *Client) listKey() string {
	if c.canAsk() || c.hasApps() {
		return c.sharingKey()
	}
	return muteKey(c.sharingKey())
}

// muteKey returns the key of the lists for requests of a client without capabilities. It
// differs from all sharing keys.
func muteKey(client string) string { return "mute:" + client }

// stateOwner returns the owner of a request state: the user, and the token if the client
// has one.
func (c *Client) stateOwner() string {
	if c.Holder == "" {
		return c.Principal.User
	}
	return c.Principal.User + "\x00" + c.Holder
}

// newClient returns the client of a request, as far as the credentials and the headers
// describe it.
func newClient(ctx context.Context, header http.Header) *Client {
	principal, _ := auth.PrincipalFrom(ctx)
	c := &Client{Principal: principal, Logs: true, Trace: traceOfHeader(header)}
	if h := auth.TokenLeaseFrom(ctx); h != nil {
		c.Holder = h.ID
	}
	return c
}

// setName sets the name that the client sends, unless the client's token has a name.
func (c *Client) setName(name string) {
	if c.Principal.Client == "" {
		c.Principal.Client = clipText(name, 64)
	}
}

const modernVersion = upstream.ModernVersion

// newUpstreamCall builds a call that the gateway makes for its own purposes.
func newUpstreamCall(method string, members ...jsonrpc.Member) upstream.Call {
	return upstream.Call{Method: method, Members: members}
}
