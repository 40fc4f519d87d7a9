package mcp

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxClient bounds the name of a client, in characters.
const maxClient = 64

// withClient labels the caller with the name in the client's request. The name is only a
// label: a client may send any.
func withClient(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	p, ok := auth.PrincipalFrom(ctx)
	info := req.ClientInfo()
	if !ok || info == nil || auth.TokenLeaseFrom(ctx) != nil { // The name of the client's token identifies it better.
		return ctx
	}
	p.Client = plainLine(info.Name, maxClient)
	return auth.WithPrincipal(ctx, p)
}

// plainLine returns one line of text that is safe to show to a person: hidden characters are
// escaped, and it has at most limit characters.
func plainLine(text string, limit int) string {
	text = visible.EscapeLine(text)
	if runes := []rune(text); len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return text
}

// callerFrom returns the caller of ctx. Over MCP every caller is an agent.
func callerFrom(ctx context.Context) (run.Caller, error) {
	p, ok := auth.PrincipalFrom(ctx)
	if !ok || p.User == "" {
		return run.Caller{}, guideway.Errorf(guideway.CodeUnauthorized, "the caller is unknown").
			WithFix("connect with the bearer token of the server; guideway doctor shows the path of its file")
	}
	return run.Caller{Principal: p, Via: run.ViaAgent}, nil
}
