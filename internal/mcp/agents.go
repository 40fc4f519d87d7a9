package mcp

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// AgentTools are the tools of this server for the agents of machines: the tools that
// clients have, except those for machines and the one that opens the dashboard.
type AgentTools struct {
	tools   map[string]*tool
	toolset map[string]string
	offers  []AgentTool
	answers *responder
}

// AgentTool describes a tool to a model.
type AgentTool struct {
	Name, Description string
	// Parameters is a JSON Schema.
	Parameters json.RawMessage
	// Repeatable reports whether repeating a call has no further effect.
	Repeatable bool
}

// NewAgentTools makes the tools from the services of opts. It ignores opts.Toolsets.
func NewAgentTools(opts Options) (*AgentTools, error) {
	opts.setDefaults()
	opts.Toolsets = []string{ToolsetSteps, ToolsetRuns, ToolsetSessions, ToolsetContext, ToolsetPhases}
	s := &Server{
		catalog: opts.Catalog, logger: opts.Logger, runs: opts.Runs, sessions: opts.Sessions,
		answers: &responder{logger: opts.Logger, answers: AnswersText, forms: newForms(opts.Shared, opts.Now)},
	}
	a := &AgentTools{tools: map[string]*tool{}, toolset: map[string]string{}, answers: s.answers}
	for toolset, tools := range s.toolsByToolset(opts) {
		for _, t := range tools {
			if t.Name == "workrail_open_dashboard" {
				continue
			}
			schema, err := json.Marshal(inputSchema(t.Params))
			if err != nil {
				return nil, guideway.Errorf(guideway.CodeInternal, "write the schema of %s: %w", t.Name, err)
			}
			a.tools[t.Name], a.toolset[t.Name] = t, toolset
			a.offers = append(a.offers, AgentTool{
				Name: t.Name, Description: t.Description, Parameters: schema, Repeatable: t.Effect != effectAdds,
			})
		}
	}
	slices.SortFunc(a.offers, func(x, y AgentTool) int { return strings.Compare(x.Name, y.Name) })
	return a, nil
}

// isAllowed reports whether the principal of ctx may use a tool.
func (a *AgentTools) isAllowed(ctx context.Context, name string) bool {
	h := auth.TokenLeaseFrom(ctx)
	return h == nil || h.Allow.All || allowedToolsets(h.Allow.Toolsets).hasAny(a.toolset[name])
}

// Offered lists the tools that the principal of ctx may use, sorted by name.
func (a *AgentTools) Offered(ctx context.Context) []AgentTool {
	return lists.Filter(a.offers, func(t AgentTool) bool { return a.isAllowed(ctx, t.Name) })
}

// Call calls a tool on behalf of an agent, which cannot show forms to a person. failed
// reports whether the tool refused the call; an unknown tool is an error with CodeNotFound.
func (a *AgentTools) Call(ctx context.Context, name string, args json.RawMessage) (text string, failed bool, err error) {
	t := a.tools[name]
	if t == nil || !a.isAllowed(ctx, name) {
		return "", false, guideway.Errorf(guideway.CodeNotFound, "there is no tool %q", name)
	}
	result, err := t.newHandler(a.answers)(ctx, &mcp.CallToolRequest{Params: &mcp.CallToolParamsRaw{Name: name, Arguments: args}})
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
