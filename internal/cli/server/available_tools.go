package server

import (
	"context"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/gateway"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

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
