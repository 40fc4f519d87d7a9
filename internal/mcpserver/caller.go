package mcpserver

import (
	"context"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxClient bounds what a client may call itself, in characters.
const maxClient = 64

// withClient adds to who calls what the client calls itself. It is a label: a
// client may say anything.
func withClient(ctx context.Context, req *mcp.CallToolRequest) context.Context {
	p, ok := authn.PrincipalFrom(ctx)
	info := req.ClientInfo()
	if !ok || info == nil || authn.HolderFrom(ctx) != nil { // the name of its token says more
		return ctx
	}
	p.Client = plainLine(info.Name, maxClient)
	return authn.WithPrincipal(ctx, p)
}

// plainLine makes one line of what may be shown to a person: without control
// characters, and not longer than most characters.
func plainLine(text string, most int) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
	}), " ")
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}

// callerFrom says who commands a run. Whatever comes over MCP is an agent's
// doing.
func callerFrom(ctx context.Context) (run.Caller, error) {
	p, ok := authn.PrincipalFrom(ctx)
	if !ok || p.User == "" {
		return run.Caller{}, guideway.Errorf(guideway.CodeUnauthorized, "this server does not know who calls").
			WithFix("connect with the token of the server")
	}
	return run.Caller{Principal: p, Via: run.ViaAgent}, nil
}
