package server

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
)

// Managed looks after the upstreams of the configuration, without a gateway that
// uses them.
func Managed(a *app.App, cfg *config.Config) *gatewayadmin.Service {
	return manageUpstreams(a, cfg, nil, nil)
}

// manageUpstreams looks after the upstreams of the configuration; the gateway that
// uses them, and what has it take changes over, may be nil.
func manageUpstreams(a *app.App, cfg *config.Config, g *gateway.Gateway, apply func() error) *gatewayadmin.Service {
	return gatewayadmin.New(gatewayadmin.Options{
		Load: a.Load, Gateway: g, Apply: apply, Pins: UpstreamPins(a, cfg), CacheDir: UpstreamCache(cfg),
		Edit: func(ctx context.Context, edit func([]byte) ([]byte, error)) error {
			_, err := a.EditConfig(ctx, cfg, edit)
			return err
		},
		Logs: func(name string, lines int) ([]string, error) {
			return app.ReadUpstreamLog(app.UpstreamLogDir(cfg), name, lines)
		},
		Machine: a.Host.InstallEnv(""),
	})
}

// managed looks after the upstreams of this process, whether they are used or not.
func (u *Upstreams) managed(a *app.App, cfg *config.Config) *gatewayadmin.Service {
	if u == nil {
		return Managed(a, cfg)
	}
	return manageUpstreams(a, cfg, u.Gateway, u.reload)
}
