package server

import (
	"context"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
)

// NewOfflineUpstreamAdmin returns the service that manages the configured upstreams without
// a running gateway.
func NewOfflineUpstreamAdmin(a *app.App, cfg *config.Config) *gatewayadmin.Service {
	return newUpstreamAdmin(a, cfg, nil, nil, nil)
}

// newUpstreamAdmin returns the service that manages the configured upstreams. The gateway
// and its functions may be nil.
func newUpstreamAdmin(a *app.App, cfg *config.Config, g *gateway.Gateway, apply func() error, background func(func(context.Context))) *gatewayadmin.Service {
	return gatewayadmin.New(gatewayadmin.Options{
		Load: a.Load, Gateway: g, Apply: apply, Background: background, Pins: NewPinStore(a, cfg), CacheDir: UpstreamCacheDir(cfg),
		Edit: func(ctx context.Context, edit func([]byte) ([]byte, error)) error {
			_, err := a.EditConfig(ctx, cfg, edit)
			return err
		},
		Upstream: UpstreamOptions(a, cfg),
		Logs: func(name string, lines int) ([]string, error) {
			return app.ReadUpstreamLog(app.UpstreamLogDir(cfg), name, lines)
		},
		Machine: a.Host.InstallEnv(""),
	})
}

// newAdmin returns the service that manages the upstreams of this process. u may be nil.
func (u *Upstreams) newAdmin(a *app.App, cfg *config.Config) *gatewayadmin.Service {
	if u == nil {
		return NewOfflineUpstreamAdmin(a, cfg)
	}
	return newUpstreamAdmin(a, cfg, u.Gateway, u.reloadConfig, u.background)
}
