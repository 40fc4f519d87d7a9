// Package server wires the services into the surfaces that agents and browsers call, and
// implements the commands that serve them.
package server

import (
	"context"
	"net/http"
	"path/filepath"
	"slices"
	"sync"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/registry"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	contextspkg "github.com/guideway-dev/guideway/internal/contexts"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/notice"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/ui"
)

// Surface is the server for agents and browsers: the catalog, the stores that open at the
// first call, and the MCP server.
type Surface struct {
	app         *app.App
	cfg         *config.Config
	catalog     *catalog.Catalog
	store       *app.Store
	checkpoints *app.CheckpointStore
	autoSaver   *contextspkg.AutoSaver
	contexts    *contextspkg.Service
	maintenance *Maintenance
	scripts     *sandbox.Pool
	Upstreams   *Upstreams
	recording   *RequestObserver
	Machines    *lazyMachines
	// Tools are the tools of the agents of machines.
	Tools     *LazyTools
	Server    *mcpserver.Server
	dashboard *dashboard
	// instances is nil for a single instance.
	instances *instances
	notices   *notice.Sender
	// registry adds /registry to the handler.
	registry bool
}

// OpenSurface loads the catalog and creates the services. project returns the project of a
// client; it is nil if only the client knows its project.
func OpenSurface(ctx context.Context, a *app.App, cfg *config.Config, project func(context.Context) run.Project) (_ *Surface, err error) {
	cat, err := a.OpenCatalog(ctx, cfg, true)
	if err != nil {
		return nil, err
	}
	s := &Surface{app: a, cfg: cfg, catalog: cat, store: a.NewStore(cfg, app.StartableDefinitions{Catalog: cat}), instances: newInstances(cfg.Shared)}
	s.store.Checker = a.NewChecker(cfg, &checkTools{surface: s})
	s.checkpoints = a.NewCheckpointStore(s.store, app.MasterKey{Host: a.Host})
	s.maintenance = &Maintenance{Log: s.store.Log, Run: func(ctx context.Context) error { return MaintainCheckpoints(ctx, s.checkpoints) }, Delay: maintenanceDelay, Idle: maintenanceIdle}
	s.dashboard = newDashboard(s)
	defer func() {
		if err != nil {
			s.closeServices()
		}
	}()
	if s.autoSaver, err = app.NewAutoSaver(s.store, s.checkpoints); err != nil {
		return nil, err
	}
	if s.contexts, err = newContexts(a.Host, s.store, s.checkpoints, s.autoSaver); err != nil {
		return nil, err
	}
	if s.scripts, err = sandbox.NewPool(sandbox.Options{Log: a.Logger(cfg)}); err != nil {
		return nil, err
	}
	s.recording = NewRequestObserver(a, cfg)
	open := mcpserver.NewOpenRuns(s.store.Runs, a.Host.CurrentTime)
	if s.Upstreams, err = openUpstreams(a, cfg, cat, s.scripts, app.LazyStore{Store: s.store}, s.recording, open, func(ctx context.Context) string { return s.dashboard.livePageURL(ctx, "") }, s.instances.ID()); err != nil {
		return nil, err
	}
	opts := mcpserver.Options{
		Catalog: cat, Version: app.Version(), Toolsets: cfg.Toolsets, Answers: cfg.Answers, Logger: a.Logger(cfg),
		Runs: s.store.Runs, OpenRuns: open, Project: project, Definitions: a.NewProjectDefinitions(cfg, cat), Memory: s.contexts,
		Sessions: session.New(session.Options{Store: app.LazyStore{Store: s.store}}), Dashboard: s.dashboard.pageURL, LiveDashboard: s.dashboard.livePageURL,
		Upstreams: s.Upstreams.asToolset(), Now: a.Host.CurrentTime, Shared: cfg.Shared, NewSessionID: s.instances.sessionIDs(),
		ConnectChecks: len(allowedHosts(cfg)) > 0,
	}
	s.Tools = &LazyTools{Open: sync.OnceValues(func() (*MachineTools, error) { return newMachineTools(cfg, opts, s.Upstreams) })}
	s.Machines = newLazyMachines(a, cfg, cat, s.scripts, s.Tools)
	s.Machines.tracer, s.Machines.owner = NewMachineTracer(a, cfg, s.recording.tracer), s.instances.ID()
	opts.Machines = s.Machines
	s.Server, err = mcpserver.New(opts)
	if err != nil {
		return nil, err
	}
	s.maintenance.Start()
	s.notices = startNotices(s, project != nil)
	return s, nil
}

// servesMachines reports whether the server offers the toolset of machines.
func (s *Surface) servesMachines() bool {
	return slices.Contains(s.cfg.Toolsets, mcpserver.ToolsetMachines) || slices.Contains(s.cfg.Toolsets, config.ToolsetAuto) && mcpserver.NeedsMachines(s.catalog.Snapshot())
}

// Close stops the services.
func (s *Surface) Close() {
	s.dashboard.closeServer()
	s.Server.Close()
	s.closeServices()
}

// closeServices closes the services that are open.
func (s *Surface) closeServices() {
	s.notices.Close()
	if s.Machines != nil {
		s.Machines.closeService()
	}
	if s.Upstreams != nil {
		s.Upstreams.closeAll()
	}
	if s.recording != nil {
		s.recording.Close()
	}
	if s.scripts != nil {
		ClosePool(s.scripts, s.store.Log)
	}
	if s.autoSaver != nil {
		app.CloseAutoSaver(s.store, s.autoSaver)
	}
	s.maintenance.Close()
	s.checkpoints.Close()
	s.store.Close()
	s.catalog.Close()
}

// newHandler returns the HTTP handler. mcp is nil if agents do not connect over HTTP.
func (s *Surface) newHandler(mcp *transport.HTTPHandler) (http.Handler, error) {
	bearer, err := NewBearer(s.cfg)
	if err != nil {
		return nil, err
	}
	guard, err := auth.NewGuard(auth.GuardOptions{AllowedHosts: allowedHosts(s.cfg), AllowOrigins: s.cfg.AllowOrigins})
	if err != nil {
		return nil, err
	}
	browsers, err := app.OpenBrowserSessions(s.cfg)
	if err != nil {
		return nil, err
	}
	tokens, err := app.OpenTokens(s.cfg)
	if err != nil {
		return nil, err
	}
	people, err := newIdentities(s.cfg)
	if err != nil {
		return nil, err
	}
	documents := app.LazyStore{Store: s.store}
	var shelf http.Handler
	if s.registry {
		shelf = registry.Handler(s.catalog)
	}
	opts := httpapi.Options{
		UI:    ui.Files(),
		Guard: guard, Bearer: bearer, Browsers: browsers, Tokens: tokens, Audit: s.store.Audit,
		Catalog: s.catalog, Registry: shelf, Runs: s.store.Runs, Sessions: documents, Feed: documents, Machines: s.Machines, Hooks: s.newHookAdmin(),
		Upstreams:  s.Upstreams.newAdmin(s.app, s.cfg),
		CheckReady: s.store.CheckReady, PublicURL: s.cfg.PublicURL, CurrentProject: s.app.Host.LookupProject, Memory: s.contexts, Requests: s.recording, Calls: s.app.OpenHolds(s.cfg), Metrics: s.recording.Counts, Logger: s.app.Logger(s.cfg),
	}
	if mcp != nil {
		opts.MCP, opts.ForwardTo, opts.Instance = mcp, mcp.ForwardTo, s.instances.ID()
	}
	if people != nil {
		opts.Identities, opts.AccessTokens = people, people
	}
	return httpapi.NewHandler(opts)
}

// newHookAdmin returns the service that manages hook graphs for the dashboard.
func (s *Surface) newHookAdmin() *hookadmin.Service {
	return hookadmin.New(hookadmin.Options{
		Catalog: s.catalog, Approvals: &approvals{cfg: s.cfg, now: s.app.Host.CurrentTime}, Scripts: s.scripts,
		Versions: app.HookVersionsDir(s.cfg), Now: s.app.Host.CurrentTime,
		OnApproval: func() {
			if s.Upstreams != nil {
				s.Upstreams.hooks.refreshSet()
			}
		},
	})
}

// serversDir returns the directory in which live servers announce themselves.
func serversDir(cfg *config.Config) string { return filepath.Join(cfg.DataDir, "servers") }

// NewBearer returns the authenticator for the token in the token file, which identifies the
// operating system user.
func NewBearer(cfg *config.Config) (*auth.Bearer, error) {
	token, err := app.LoadServerToken(cfg)
	if err != nil {
		return nil, err
	}
	user, err := app.LocalUser(cfg)
	if err != nil {
		return nil, err
	}
	return auth.NewBearer(auth.BearerOptions{Token: token, User: user})
}
