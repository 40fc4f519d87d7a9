package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/upstream"
	"github.com/guideway-dev/guideway/internal/upstream/wire"
)

// Offered gives the tools that a client may call, as hooks show them, whatever way
// they are exposed to clients by. It is for agents of ours, which choose by name.
func (g *Gateway) Offered(ctx context.Context, c *Client) []json.RawMessage {
	var out []json.RawMessage
	for _, t := range g.listed(ctx, c) {
		out = append(out, t.shown)
	}
	return out
}

// Names are the names of tools, as far as they are known without asking an upstream.
type Names struct {
	// Tools has them all, whoever may call them.
	Tools     []string
	Upstreams []NamesOf
}

// NamesOf says what the names of one upstream's tools begin with, "" where they begin
// with nothing, and whether it was ever asked for them.
type NamesOf struct {
	Begins string
	Asked  bool
}

// Names gives the names that are known. Nothing is started for it.
func (g *Gateway) Names() Names {
	g.mu.Lock()
	defer g.mu.Unlock()
	var n Names
	for _, t := range g.surface.Load().tools {
		n.Tools = append(n.Tools, t.name)
	}
	for _, m := range g.members {
		n.Upstreams = append(n.Upstreams, NamesOf{Begins: m.prefix(), Asked: m.Known() != nil})
	}
	return n
}

// Fate says how far a call has come that has no result.
type Fate int

// The fates.
const (
	// NotSent was refused on our side, or could not be sent.
	NotSent Fate = iota
	// Answered came to the upstream, which says that it failed, or was stopped
	// on its way back.
	Answered
	// Unknown was sent, and nobody knows whether it was carried out.
	Unknown
)

// callFate is how far a call has come: whether it was sent, and what has failed.
type callFate struct {
	sent atomic.Bool
	err  error
}

// Do calls a tool on the same way as Call, and tells the fate of a call that failed
// in the place of an answer for a model. fate means nothing without an error.
func (g *Gateway) Do(ctx context.Context, c *Client, r Request) (result json.RawMessage, fate Fate, err error) {
	r.fate = &callFate{}
	result, err = g.callTool(ctx, c, r)
	if r.fate.err != nil {
		err = r.fate.err
	}
	var failure *wire.Error
	var gone *upstream.GoneError
	switch code := guideway.ErrorCode(err); {
	case err == nil:
		return result, NotSent, nil
	case !r.fate.sent.Load() || errors.As(err, &gone):
		return nil, NotSent, err
	case errors.As(err, &failure), code == guideway.CodeRefused, code == guideway.CodeInvalid, code == guideway.CodeForbidden:
		return nil, Answered, err
	}
	return nil, Unknown, err
}
