package server

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/evidence/execute"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	engine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/machine/llm"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// MachineTools implements driver.Tools: the tools of upstreams, called through the gateway
// like the calls of a client, and the built-in tools.
type MachineTools struct {
	// gateway is nil if no gateway is configured.
	gateway *gateway.Gateway
	builtin *mcpserver.AgentTools
	runs    *run.Service
	// isTokenValid reports whether the token of a client is still valid; see auth.Tokens.
	isTokenValid func(id string) (bool, error)
	log          *slog.Logger
}

var _ driver.Tools = (*MachineTools)(nil)

// newMachineTools returns the tools that machine runs can call: the tools of upstreams and
// the built-in tools of Guideway.
func newMachineTools(cfg *config.Config, opts mcpserver.Options, u *Upstreams) (*MachineTools, error) {
	own, err := mcpserver.NewAgentTools(opts)
	if err != nil {
		return nil, err
	}
	tokens, err := app.OpenTokens(cfg)
	if err != nil {
		return nil, err
	}
	m := &MachineTools{builtin: own, runs: opts.Runs, log: opts.Logger, isTokenValid: tokens.IsValid}
	if u != nil {
		m.gateway = u.Gateway
	}
	return m, nil
}

// LazyTools creates the tools at the first call.
type LazyTools struct{ Open func() (*MachineTools, error) }

var _ driver.Tools = (*LazyTools)(nil)

// Tools implements driver.Tools.
func (l *LazyTools) Tools(ctx context.Context, f driver.RunScope) ([]engine.ToolInfo, error) {
	m, err := l.Open()
	if err != nil {
		return nil, err
	}
	return m.Tools(ctx, f)
}

// Call implements driver.Tools.
func (l *LazyTools) Call(ctx context.Context, f driver.RunScope, c engine.ToolCall) (engine.ToolResult, error) {
	m, err := l.Open()
	if err != nil {
		return engine.ToolResult{}, fmt.Errorf("%w: %w", driver.ErrNotCalled, err)
	}
	return m.Call(ctx, f, c)
}

// NewCommandTools returns the tools for a command that executes machine runs. closeTools
// releases the resources that the tools opened.
func NewCommandTools(ctx context.Context, a *app.App, cfg *config.Config) (tools *LazyTools, closeTools func()) {
	var opened *Surface
	tools = &LazyTools{Open: sync.OnceValues(func() (*MachineTools, error) {
		s, err := OpenSurface(context.WithoutCancel(ctx), a, cfg, a.Host.LookupProject)
		if err != nil {
			return nil, err
		}
		opened = s
		return s.Tools.Open()
	})}
	return tools, func() {
		if opened != nil {
			opened.Close()
		}
	}
}

// idempotencyMetaKey is the member of _meta with the idempotency key of a call, which is
// the same for every attempt.
const idempotencyMetaKey = "dev.guideway/idempotency-key"

// withPrincipal returns the context and the gateway client for the tool calls of a run. The
// calls are made as the user of the run, are labeled with the machine, and have the
// permissions of the client that started the run.
func (m *MachineTools) withPrincipal(ctx context.Context, f driver.RunScope) (context.Context, *gateway.Client, error) {
	p := guideway.Principal{User: f.User, Client: "machine " + app.OneLine(f.Machine)}
	ctx = auth.WithPrincipal(ctx, p)
	client := &gateway.Client{Principal: p, Modern: true}
	if len(f.Allow) > 0 {
		lent, valid, err := readDelegation(f, m.isTokenValid)
		if err != nil {
			return nil, nil, err
		}
		h := &auth.TokenLease{ID: "machine:" + f.Run, Name: p.Client, Allow: lent.Allow}
		if !valid { // the token was revoked or has expired, so its runs have no permissions
			h.Allow = auth.Allow{}
		}
		ctx, client.Holder = auth.WithTokenLease(ctx, h), h.ID
	}
	return ctx, client, nil
}

// readDelegation returns the permissions that a run got from the client that started it.
// valid reports whether the token of the client, if it has one, is still valid.
func readDelegation(f driver.RunScope, isTokenValid func(id string) (bool, error)) (lent auth.Delegation, valid bool, err error) {
	if err := json.Unmarshal(f.Allow, &lent); err != nil {
		return lent, false, guideway.Errorf(guideway.CodeInternal, "read the permissions of the run %s: %w", f.Run, err)
	}
	if lent.Token == "" {
		return lent, true, nil
	}
	if valid, err = isTokenValid(lent.Token); err != nil {
		return lent, false, guideway.Errorf(guideway.CodeUnavailable, "look up the token of the client that started the run %s: %w", f.Run, err)
	}
	return lent, valid, nil
}

// PermitFunc is the type of driver.Options.Permit.
type PermitFunc = func(ctx context.Context, f driver.RunScope) (why string, err error)

// NewMachinePermit returns a function that permits a run while the token of the client that
// started it is valid, because its model calls cost money on behalf of that client.
func NewMachinePermit(cfg *config.Config) (PermitFunc, error) {
	tokens, err := app.OpenTokens(cfg)
	if err != nil {
		return nil, err
	}
	return func(_ context.Context, f driver.RunScope) (string, error) {
		_, valid, err := readDelegation(f, tokens.IsValid)
		if err == nil && !valid {
			return "the token of the client that started the run was revoked or has expired", nil
		}
		return "", err
	}, nil
}

// Tools implements driver.Tools.
func (m *MachineTools) Tools(ctx context.Context, f driver.RunScope) ([]engine.ToolInfo, error) {
	ctx, client, err := m.withPrincipal(ctx, f)
	if err != nil {
		return nil, err
	}
	var out []engine.ToolInfo
	seen := map[string]bool{}
	for _, t := range m.builtin.Offered(ctx) {
		seen[t.Name] = true
		out = append(out, engine.ToolInfo{
			Definition: llm.Definition{Name: t.Name, Description: t.Description, Parameters: t.Parameters}, Repeatable: t.Repeatable,
		})
	}
	if m.gateway == nil {
		return out, nil
	}
	for _, t := range m.gateway.CallableTools(ctx, client) {
		info, ok := toolInfo(t)
		if !ok {
			m.log.WarnContext(ctx, "a tool is not available to agents: its definition is not valid, or its name has more than 64 characters", "tool", t.Name)
			continue
		}
		if seen[info.Name] {
			m.log.WarnContext(ctx, "a tool is not available to agents: another tool has the same name", "tool", t.Name)
			continue
		}
		seen[info.Name] = true
		out = append(out, info)
	}
	return out, nil
}

// toolInfo parses a tool of tools/list. The models of a machine get its full name, which
// the roles and policies of the machine name. ok is false if models cannot use it.
func toolInfo(tool gateway.CallableTool) (info engine.ToolInfo, ok bool) {
	var t struct {
		Description string          `json:"description"`
		InputSchema json.RawMessage `json:"inputSchema"`
		Annotations struct {
			ReadOnly   bool `json:"readOnlyHint"`
			Idempotent bool `json:"idempotentHint"`
		} `json:"annotations"`
	}
	if json.Unmarshal(tool.Definition, &t) != nil || tool.Name == "" {
		return info, false
	}
	info = engine.ToolInfo{
		Definition: llm.Definition{Name: ModelToolName(tool.Name), Description: t.Description, Parameters: t.InputSchema},
		Repeatable: t.Annotations.ReadOnly || t.Annotations.Idempotent, Hash: tool.Hash, Hooks: tool.Hooks,
	}
	const longest = 64
	return info, len(info.Name) <= longest
}

// ModelToolName returns the name of a tool for models. It replaces the characters that
// models do not accept with _.
func ModelToolName(name string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, name)
}

// Call implements driver.Tools.
func (m *MachineTools) Call(ctx context.Context, f driver.RunScope, c engine.ToolCall) (engine.ToolResult, error) {
	ctx, client, err := m.withPrincipal(ctx, f)
	if err != nil {
		return engine.ToolResult{}, fmt.Errorf("%w: %w", driver.ErrNotCalled, err)
	}
	text, failed, err := m.builtin.Call(ctx, c.Name, json.RawMessage(c.Arguments))
	switch {
	case err == nil:
		return engine.ToolResult{Content: text, Error: failed}, nil
	case guideway.ErrorCode(err) != guideway.CodeNotFound:
		return engine.ToolResult{}, err
	case m.gateway == nil:
		return engine.ToolResult{}, fmt.Errorf("%w: %w", driver.ErrNotCalled, err)
	}
	name := c.Name
	for _, t := range m.gateway.CallableTools(ctx, client) {
		if info, ok := toolInfo(t); ok && info.Name == c.Name {
			name = t.Name
			break
		}
	}
	scopes, err := m.callScopes(ctx, f)
	if err != nil {
		return engine.ToolResult{}, fmt.Errorf("%w: %w", driver.ErrNotCalled, err)
	}
	meta, err := json.Marshal(map[string]string{idempotencyMetaKey: c.Key})
	if err != nil {
		return engine.ToolResult{}, fmt.Errorf("%w: %w", driver.ErrNotCalled, err)
	}
	result, fate, err := m.gateway.Do(ctx, client, gateway.Request{Name: name, Arguments: json.RawMessage(c.Arguments), Meta: meta, Scopes: scopes})
	switch {
	case err == nil:
		return toolResult(result), nil
	case fate == gateway.NotSent:
		return engine.ToolResult{}, fmt.Errorf("%w: %w", driver.ErrNotCalled, err)
	case fate == gateway.Answered:
		return engine.ToolResult{Content: err.Error(), Error: true}, nil
	}
	return engine.ToolResult{}, err
}

// callScopes returns the policies for the tool calls of a machine run: those of its state and
// of the current steps of its guided runs. The other guided runs of the user do not apply.
func (m *MachineTools) callScopes(ctx context.Context, f driver.RunScope) ([]toolpolicy.Scope, error) {
	scopes := []toolpolicy.Scope{{Run: f.Run, Workflow: f.Machine, Step: f.State, Policy: f.Policy}}
	if len(f.Guided) == 0 {
		return scopes, nil
	}
	guided, err := m.runs.ToolScopes(ctx, run.Caller{Principal: guideway.Principal{User: f.User}}, f.Guided...)
	return append(scopes, guided...), err
}

// toolResult converts the result of a tool to the text for a model.
func toolResult(raw json.RawMessage) engine.ToolResult {
	var r struct {
		Content []struct {
			Type     string          `json:"type"`
			Text     string          `json:"text"`
			MimeType string          `json:"mimeType"`
			URI      string          `json:"uri"`
			Resource json.RawMessage `json:"resource"`
		} `json:"content"`
		Structured json.RawMessage `json:"structuredContent"`
		IsError    bool            `json:"isError"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return engine.ToolResult{Content: "cannot read the result of the tool: " + err.Error(), Error: true}
	}
	var said []string
	for _, c := range r.Content {
		switch c.Type {
		case "text":
			said = append(said, c.Text)
		case "resource":
			said = append(said, string(c.Resource))
		case "resource_link":
			said = append(said, c.URI)
		default:
			said = append(said, fmt.Sprintf("[%s %s, not shown]", c.Type, c.MimeType))
		}
	}
	if len(said) == 0 && len(r.Structured) > 0 {
		said = append(said, string(r.Structured))
	}
	return engine.ToolResult{Content: strings.Join(said, "\n"), Error: r.IsError}
}

// AvailableTools returns the tools that are available to the agents of machines. The tools
// of upstreams come from their last listing.
func AvailableTools(ctx context.Context, a *app.App, cfg *config.Config) (machinedef.AvailableTools, error) {
	// Only the names of the built-in tools are needed, so empty services are enough.
	own, err := mcpserver.NewAgentTools(mcpserver.Options{Runs: &run.Service{}, Sessions: &session.Service{}, Memory: &contexts.Service{}})
	if err != nil {
		return machinedef.AvailableTools{}, err
	}
	g, err := gateway.New(gateway.Options{
		Upstreams: gatewaySettings(cfg).Upstreams, Upstream: UpstreamOptions(a, cfg), Project: cfg.Gateway.Project, Key: make([]byte, 32), Logger: a.Logger(cfg),
	})
	if err != nil {
		return machinedef.AvailableTools{}, err
	}
	defer g.Close(ctx)
	known := g.Names()
	var o machinedef.AvailableTools
	for _, t := range own.Offered(ctx) {
		o.Tools = append(o.Tools, t.Name)
	}
	for _, name := range known.Tools {
		o.Tools = append(o.Tools, ModelToolName(name))
	}
	for _, s := range known.Upstreams {
		o.Servers = append(o.Servers, ModelToolName(s.Prefix))
		if !s.Known {
			o.Unasked = append(o.Unasked, ModelToolName(s.Prefix))
		}
	}
	return o, nil
}

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
