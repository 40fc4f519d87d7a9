package gateway

import (
	"context"
	"encoding/json"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Client is who calls, by one request.
type Client struct {
	// Session names the session of the legacy era; empty in the modern one,
	// which has none.
	Session   string
	Principal guideway.Principal
	// Holder names the client's own token; empty is that of the token file.
	Holder string
	// Modern is the era of the request.
	Modern bool
	// Can is what the client can be asked for.
	Can Can
	// Ask asks the client; for the legacy era alone.
	Ask upstream.Asker
	// Notify sends a notification on the way of the request; nil drops it. It
	// gets progress only if Token is set.
	Notify func(ctx context.Context, method string, params json.RawMessage)
	// Token is the client's own progress token.
	Token json.RawMessage
	// Logs says that the client wants log messages.
	Logs bool
	// Level is the least level of log messages that a client of the legacy era
	// has asked for; empty is none.
	Level string
	// Trace is the one that the headers of the request say it is part of.
	Trace Trace
}

// Can is what a client can be asked for: capabilities as it has declared them,
// nil where it has not.
type Can struct {
	Elicitation json.RawMessage
	Sampling    json.RawMessage
	Roots       json.RawMessage
}

// interactive tells whether the client can be asked what an upstream may want to
// know in the midst of a call.
func (c *Client) interactive() bool {
	return c.Can.Elicitation != nil || c.Can.Sampling != nil || c.Can.Roots != nil && !c.Modern
}

// capabilities are those of the client, as an upstream is told.
func (c *Client) capabilities() json.RawMessage {
	var members []wire.Member
	for _, m := range []wire.Member{{Key: "elicitation", Value: c.Can.Elicitation}, {Key: "roots", Value: c.Can.Roots}, {Key: "sampling", Value: c.Can.Sampling}} {
		if m.Value != nil {
			members = append(members, m)
		}
	}
	return wire.Object(members...)
}

// can tells whether the client has declared what a method of a question needs,
// and what that is.
func (c *Client) can(method string) (ok bool, capability string) {
	switch method {
	case "elicitation/create":
		return c.Can.Elicitation != nil, "elicitation"
	case "sampling/createMessage":
		return c.Can.Sampling != nil, "sampling"
	case "roots/list":
		return c.Can.Roots != nil, "roots"
	}
	return false, method
}

// name tells clients apart that share nothing.
func (c *Client) name() string {
	if c.Session != "" {
		return "session:" + c.Session
	}
	return "user:" + c.owner() + ":" + c.Principal.Client
}

// owner is whose a question is: the user's, and a token's own where the client has
// one.
func (c *Client) owner() string {
	if c.Holder == "" {
		return c.Principal.User
	}
	return c.Principal.User + "\x00" + c.Holder
}

// by names the token that a client came in by.
func (c *Client) by(ctx context.Context) {
	if h := authn.TokenLeaseFrom(ctx); h != nil {
		c.Holder = h.ID
	}
}

const modernVersion = upstream.ModernVersion

// call is a call of ours to an upstream.
func call(method string, members ...wire.Member) upstream.Call {
	return upstream.Call{Method: method, Members: members}
}
