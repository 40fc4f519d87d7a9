package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AgentTools are our tools for the agents of machines: the same as clients have, but
// for those that start machines or open something for a person.
type AgentTools struct {
	tools   map[string]*tool
	toolset map[string]string
	offers  []AgentTool
	logger  *slog.Logger
}

// AgentTool is a tool as a model is told of it.
type AgentTool struct {
	Name, Description string
	// Parameters is a JSON Schema.
	Parameters json.RawMessage
	// Repeatable says that the same call again adds nothing.
	Repeatable bool
}

// NewAgentTools makes them of the services of opts, whatever toolsets clients get.
func NewAgentTools(opts Options) (*AgentTools, error) {
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.Toolsets = []string{ToolsetSteps, ToolsetRuns, ToolsetSessions, ToolsetContext, ToolsetPhases}
	s := &Server{catalog: opts.Catalog, logger: opts.Logger, runs: opts.Runs, sessions: opts.Sessions}
	a := &AgentTools{tools: map[string]*tool{}, toolset: map[string]string{}, logger: opts.Logger}
	for toolset, tools := range s.tools(opts) {
		for _, t := range tools {
			if t.name == "workrail_open_dashboard" {
				continue
			}
			schema, err := json.Marshal(inputSchema(t.params))
			if err != nil {
				return nil, guideway.Errorf(guideway.CodeInternal, "write the schema of %s: %w", t.name, err)
			}
			a.tools[t.name], a.toolset[t.name] = t, toolset
			a.offers = append(a.offers, AgentTool{
				Name: t.name, Description: t.description, Parameters: schema, Repeatable: t.effect != effectAdds,
			})
		}
	}
	slices.SortFunc(a.offers, func(x, y AgentTool) int { return strings.Compare(x.Name, y.Name) })
	return a, nil
}

// may says whether who stands in ctx may use a tool.
func (a *AgentTools) may(ctx context.Context, name string) bool {
	h := authn.HolderFrom(ctx)
	return h == nil || h.Allow.All || may(h.Allow.Toolsets).any(a.toolset[name])
}

// Offered lists the tools for who stands in ctx, in order of their names.
func (a *AgentTools) Offered(ctx context.Context) []AgentTool {
	var out []AgentTool
	for _, t := range a.offers {
		if a.may(ctx, t.Name) {
			out = append(out, t)
		}
	}
	return out
}

// Call calls a tool as a client does that cannot ask a person. failed says that the
// tool refused; an error is CodeNotFound where there is no such tool.
func (a *AgentTools) Call(ctx context.Context, name string, args json.RawMessage) (text string, failed bool, err error) {
	t := a.tools[name]
	if t == nil || !a.may(ctx, name) {
		return "", false, guideway.Errorf(guideway.CodeNotFound, "there is no tool %q", name)
	}
	result, err := t.server(a.logger)(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: name, Arguments: args}})
	if err != nil {
		return "", false, err
	}
	var said []string
	for _, c := range result.Content {
		if c, ok := c.(*mcp.TextContent); ok {
			said = append(said, c.Text)
		}
	}
	return strings.Join(said, "\n"), result.IsError, nil
}
