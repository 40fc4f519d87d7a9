package cli

import (
	"context"

	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/manage"
)

// managed looks after the upstreams of the configuration, without a gateway that
// uses them.
func (a *app) managed(cfg *config.Config) *manage.Service { return a.manageUpstreams(cfg, nil, nil) }

// manageUpstreams looks after the upstreams of the configuration; the gateway that
// uses them, and what has it take changes over, may be nil.
func (a *app) manageUpstreams(cfg *config.Config, g *gateway.Gateway, apply func() error) *manage.Service {
	return manage.New(manage.Options{
		Load: a.load, Gateway: g, Apply: apply, Pins: a.upstreamPins(cfg), CacheDir: upstreamCache(cfg),
		Edit: func(ctx context.Context, edit func([]byte) ([]byte, error)) error {
			_, err := a.editConfig(ctx, cfg, edit)
			return err
		},
		Logs: func(name string, lines int) ([]string, error) {
			return lastUpstreamLines(upstreamLogDir(cfg), name, lines)
		},
		Machine: a.host.installEnv(""),
	})
}

// managed looks after the upstreams of this process, whether they are used or not.
func (u *upstreams) managed(a *app, cfg *config.Config) *manage.Service {
	if u == nil {
		return a.managed(cfg)
	}
	return a.manageUpstreams(cfg, u.Gateway, u.reload)
}
