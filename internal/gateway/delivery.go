package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/gateway/jsonrpc"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// CallableTool is a tool that a client may call.
type CallableTool struct {
	// Name is the full name, and Advertised the name that clients see, at most 49 bytes.
	Name, Advertised string
	// Definition is the tool as clients see it.
	Definition json.RawMessage
	// Hash is the hash of the tool's pin, or of Definition if a hook added the tool. Hooks are
	// the hashes of the hooks that apply to calls of the tool.
	Hash  string
	Hooks map[string]string
}

// CallableTools returns the tools that a client may call, after the list hooks, even if the
// client itself is offered tool search only. It serves agents of this server, which choose
// tools by name.
func (g *Gateway) CallableTools(ctx context.Context, c *Client) []CallableTool {
	return lists.Map(g.listedTools(ctx, c), func(t *tool) CallableTool {
		out := CallableTool{Name: t.full, Advertised: t.name, Definition: t.shown, Hash: t.hash}
		if out.Hash == "" {
			out.Hash = digest.Hex(t.shown)
		}
		if g.opts.Hooks != nil {
			out.Hooks = g.opts.Hooks.Versions(t.member.Name(), t.original)
		}
		return out
	})
}

// Names holds the full tool names that are known without asking an upstream.
type Names struct {
	// Tools lists the tools in the lists that clients share, regardless of access.
	Tools     []string
	Upstreams []UpstreamNames
}

// UpstreamNames holds the prefix of one upstream's tool names, which may be empty, and reports
// whether the upstream's tools are known.
type UpstreamNames struct {
	Prefix string
	Known  bool
}

// Names returns the known names. It starts no upstream.
func (g *Gateway) Names() Names {
	g.mu.Lock()
	defer g.mu.Unlock()
	var n Names
	for _, t := range g.surfaces.Load().shared.tools {
		n.Tools = append(n.Tools, t.full)
	}
	for _, m := range g.members {
		n.Upstreams = append(n.Upstreams, UpstreamNames{Prefix: m.namePrefix(), Known: m.Known() != nil})
	}
	return n
}

// DeliveryStatus describes whether a failed call reached the upstream.
type DeliveryStatus int

// The delivery statuses.
const (
	// NotSent: the gateway refused the call or could not send it.
	NotSent DeliveryStatus = iota
	// Answered: the upstream answered with an error, or a hook stopped the answer.
	Answered
	// Unknown: the call was sent, and its outcome is unknown.
	Unknown
)

// delivery records whether a call was sent, and the error of a failed call.
type delivery struct {
	sent atomic.Bool
	err  error
}

// Do calls a tool like Call. If the upstream or a hook fails, Do returns the error and the
// delivery status, while Call returns an error result for the model. The status is
// meaningful only with an error.
func (g *Gateway) Do(ctx context.Context, c *Client, r Request) (result json.RawMessage, fate DeliveryStatus, err error) {
	r.delivery = &delivery{}
	result, err = g.callTool(ctx, c, r)
	if r.delivery.err != nil {
		err = r.delivery.err
	}
	var failure *jsonrpc.Error
	var gone *upstream.GoneError
	switch code := guideway.ErrorCode(err); {
	case err == nil:
		return result, NotSent, nil
	case !r.delivery.sent.Load() || errors.As(err, &gone):
		return nil, NotSent, err
	case errors.As(err, &failure), code == guideway.CodeRefused, code == guideway.CodeInvalid, code == guideway.CodeForbidden:
		return nil, Answered, err
	}
	return nil, Unknown, err
}
