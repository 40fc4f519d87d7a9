package cli

import (
	"context"
	"net/http"
	"path/filepath"
	"sync"

	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/registry"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/footprint"
	"github.com/guideway-dev/guideway/internal/hookdesk"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/mcpserver"
	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/script"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/ui"
)

// surface is what agents and browsers reach: the catalog, the stores that open
// when they are needed, and the MCP server on them.
type surface struct {
	app         *app
	cfg         *config.Config
	catalog     *catalog.Catalog
	store       *store
	checkpoints *checkpointStore
	keeper      *memory.Keeper
	contexts    *memory.Service
	upkeep      *upkeep
	footprint   *footprint.Trimmer
	scripts     *script.Pool
	upstreams   *upstreams
	recording   *recording
	machines    *lazyMachines
	// tools are those of the agents of machines.
	tools     *lazyTools
	server    *mcpserver.Server
	dashboard *dashboard
	// registry has the handler serve the catalog as a registry.
	registry bool
}

// openSurface loads the catalog and wires the rest. project says where a client
// works; nil where only the client knows. Close releases it.
func (a *app) openSurface(ctx context.Context, cfg *config.Config, project func(context.Context) run.Project) (_ *surface, err error) {
	footprint.Hurry()
	cat, err := a.openCatalog(ctx, cfg, true)
	if err != nil {
		return nil, err
	}
	s := &surface{app: a, cfg: cfg, catalog: cat, store: a.newStore(cfg, startable{catalog: cat})}
	s.checkpoints = a.newCheckpointStore(s.store, masterKey{host: a.host})
	s.upkeep = &upkeep{log: s.store.log, keep: s.checkpoints.keepCheckpoints, delay: upkeepDelay, idle: upkeepIdle}
	s.dashboard = newDashboard(s)
	defer func() {
		if err != nil {
			s.closeServices()
		}
	}()
	if s.keeper, err = newKeeper(s.store, s.checkpoints); err != nil {
		return nil, err
	}
	if s.contexts, err = newMemory(a.host, s.store, s.checkpoints, s.keeper); err != nil {
		return nil, err
	}
	if s.scripts, err = script.NewPool(script.Options{Log: a.logger(cfg)}); err != nil {
		return nil, err
	}
	s.recording = a.newRecording(cfg)
	if s.upstreams, err = a.openUpstreams(cfg, cat, s.scripts, s.recording); err != nil {
		return nil, err
	}
	opts := mcpserver.Options{
		Catalog: cat, Version: version(), Toolsets: cfg.Toolsets, Logger: a.logger(cfg),
		Runs: s.store.runs, Project: project, Memory: s.contexts,
		Sessions: session.New(session.Options{Store: lazyStore{store: s.store}}), Dashboard: s.dashboard.url, LiveDashboard: s.dashboard.live,
		Upstreams: s.upstreams.attached(),
	}
	s.tools = &lazyTools{open: sync.OnceValues(func() (*machineTools, error) { return newMachineTools(cfg, opts, s.upstreams) })}
	s.machines = a.newLazyMachines(cfg, cat, s.scripts, s.tools)
	s.machines.tracer = a.newMachineTracer(cfg, s.recording.tracer)
	opts.Machines = s.machines
	s.server, err = mcpserver.New(opts)
	if err != nil {
		return nil, err
	}
	s.upkeep.start()
	s.footprint = footprint.Start(footprint.Options{Pack: cat.Pack})
	return s, nil
}

// answered tells those who work beside the answers that one was given.
func (s *surface) answered() {
	s.upkeep.answered()
	s.footprint.Answered()
}

// Close ends what the surface has opened, the store last.
func (s *surface) Close() {
	s.footprint.Close()
	s.dashboard.close()
	s.server.Close()
	s.closeServices()
}

// closeServices ends what the server stands on, as far as it was opened.
func (s *surface) closeServices() {
	if s.machines != nil {
		s.machines.close()
	}
	if s.upstreams != nil {
		s.upstreams.close()
	}
	if s.recording != nil {
		s.recording.close()
	}
	if s.scripts != nil {
		closePool(s.scripts, s.store.log)
	}
	if s.keeper != nil {
		closeKeeper(s.store, s.keeper)
	}
	s.upkeep.close()
	s.checkpoints.close()
	s.store.close()
	s.catalog.Close()
}

// handler is the HTTP side of the surface; mcp is nil where agents do not come
// in by HTTP.
func (s *surface) handler(mcp http.Handler) (http.Handler, error) {
	bearer, err := newBearer(s.cfg)
	if err != nil {
		return nil, err
	}
	guard, err := authn.NewGuard(authn.GuardOptions{AllowedHosts: s.cfg.AllowedHosts, AllowOrigins: s.cfg.AllowOrigins})
	if err != nil {
		return nil, err
	}
	browsers, err := newBrowsers(s.cfg)
	if err != nil {
		return nil, err
	}
	tokens, err := newTokens(s.cfg)
	if err != nil {
		return nil, err
	}
	documents := lazyStore{store: s.store}
	var shelf http.Handler
	if s.registry {
		shelf = registry.Handler(s.catalog)
	}
	return httpapi.NewHandler(httpapi.Options{
		UI:  ui.Files(),
		MCP: mcp, Guard: guard, Bearer: bearer, Browsers: browsers, Tokens: tokens,
		Catalog: s.catalog, Registry: shelf, Runs: s.store.runs, Sessions: documents, Feed: documents, Machines: s.machines, Hooks: s.hookDesk(),
		Upstreams:      s.upstreams.managed(s.app, s.cfg),
		CurrentProject: s.app.host.projectOf, Memory: s.contexts, Requests: s.recording, Metrics: s.recording.counted, Logger: s.app.logger(s.cfg),
	})
}

// hookDesk is where a person works on hook graphs, in a browser.
func (s *surface) hookDesk() *hookdesk.Desk {
	return hookdesk.New(hookdesk.Options{
		Catalog: s.catalog, Approvals: &approvals{cfg: s.cfg, now: s.app.host.currentTime}, Scripts: s.scripts,
		Versions: filepath.Join(s.cfg.DataDir, "hook-versions"), Now: s.app.host.currentTime,
		OnApproval: func() {
			if s.upstreams != nil {
				s.upstreams.hooks.refresh()
			}
		},
	})
}

// serversDir is where servers say that they are alive.
func serversDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "servers") }

// newBearer makes the check of the token in the token file. The token names the
// system's user.
func newBearer(cfg *config.Config) (*authn.Bearer, error) {
	token, _, err := authn.LoadOrCreateToken(cfg.TokenFile)
	if err != nil {
		return nil, err
	}
	user, err := authn.SystemUser()
	if err != nil {
		return nil, err
	}
	return authn.NewBearer(authn.BearerOptions{Token: token, User: user})
}
