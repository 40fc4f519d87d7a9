package server

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// checkTools calls the tools of upstreams for checks. A call is made as the user of this
// process. If the client whose output is checked has a token, the call has no more access
// than the token.
type checkTools struct{ surface *Surface }

var _ execute.Tools = (*checkTools)(nil)

// CallTool implements execute.Tools.
func (t *checkTools) CallTool(ctx context.Context, name string, arguments map[string]any) (execute.ToolResult, error) {
	upstreams := t.surface.Upstreams
	if upstreams == nil {
		return execute.ToolResult{}, guideway.Errorf(guideway.CodeNotFound, "the tool %s does not exist: no upstream is configured", name).
			WithFix("guideway upstream add --help")
	}
	user, err := app.LocalUser(t.surface.cfg)
	if err != nil {
		return execute.ToolResult{}, err
	}
	client := &gateway.Client{Principal: guideway.Principal{User: user, Client: "check"}, Modern: true}
	ctx = auth.WithPrincipal(ctx, client.Principal)
	// Listing the tools starts the upstreams.
	isListed := slices.ContainsFunc(upstreams.Gateway.CallableTools(ctx, client), func(t gateway.CallableTool) bool {
		return name == t.Name || name == t.Advertised
	})
	if !isListed {
		return execute.ToolResult{}, guideway.Errorf(guideway.CodeNotFound, "the gateway has no tool %s", name).
			WithFix("guideway upstream list shows the upstreams; the name of a tool is UPSTREAM__TOOL")
	}
	if arguments == nil {
		arguments = map[string]any{}
	}
	text, err := json.Marshal(arguments)
	if err != nil {
		return execute.ToolResult{}, guideway.Errorf(guideway.CodeInternal, "encode the arguments of the tool %s: %w", name, err)
	}
	raw, err := upstreams.Gateway.Call(ctx, client, gateway.Request{
		Name: name, Arguments: text, Scopes: []toolpolicy.Scope{}, // the policy of a step restricts its agent, not its checks
	})
	if err != nil {
		return execute.ToolResult{}, err
	}
	var result struct {
		Structured any `json:"structuredContent"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return execute.ToolResult{}, guideway.Errorf(guideway.CodeUnavailable, "the result of the tool %s cannot be read: %w", name, err)
	}
	shown := toolResult(raw)
	return execute.ToolResult{IsError: shown.Error, Structured: result.Structured, Text: shown.Content}, nil
}
