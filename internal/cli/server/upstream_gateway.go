package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/pins"
	"github.com/guideway-dev/guideway/internal/gateway/results"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	mcpserver "github.com/guideway-dev/guideway/internal/mcp"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
	"github.com/spf13/cobra"
)

// Upstreams is the gateway of this process with the active hook graphs.
type Upstreams struct {
	*gateway.Gateway
	// isOffered reports whether clients get the toolset. The agents of machines always get
	// the tools.
	isOffered bool

	hooks  *ActiveHooks
	app    *app.App
	Logger *slog.Logger
	stop   context.CancelFunc
	wg     sync.WaitGroup
	logs   *app.UpstreamLogs
	// background runs a task until it ends or the gateway closes.
	background func(task func(context.Context))
	// reloadLock serializes reloads, so that an older configuration does not replace a
	// newer one.
	reloadLock sync.Mutex
	// InitialValues are the settings at the start of the process, and pendingSettings the
	// names of the settings that have changed since and need a restart.
	InitialValues   []config.Value
	pendingSettings string
	// health receives the current interval of the health checks.
	health chan time.Duration
}

func gatewaySettings(cfg *config.Config) gateway.Settings {
	s := gateway.Settings{
		Upstreams: make([]gateway.Entry, len(cfg.Upstreams)),
		Lazy:      cfg.Gateway.Exposure == config.ExposureSearch, Project: cfg.Gateway.Project,
		ClientPerMinute: cfg.Gateway.CallsPerMinute,
	}
	for i, u := range cfg.Upstreams {
		s.Upstreams[i] = gatewayadmin.EntryOf(u)
	}
	s.HoldTimes = gateway.HoldTimes{Wait: cfg.Gateway.QuestionTime, Use: cfg.Gateway.ApprovalTime}
	if p := cfg.Gateway.Tools; p != nil {
		s.Tools = &toolpolicy.Policy{Allow: toolRules(p.Allow), Deny: toolRules(p.Deny), Hold: toolRules(p.Hold)}
	}
	return s
}

// toolRules converts rules of the configuration. It keeps the difference between nil and an
// empty list.
func toolRules(rules []config.ToolRule) []toolpolicy.Rule {
	if rules == nil {
		return nil
	}
	return lists.Map(rules, func(rule config.ToolRule) toolpolicy.Rule { return toolpolicy.Rule(rule) })
}

// UpstreamOptions returns the options for connections to upstreams.
func UpstreamOptions(a *app.App, cfg *config.Config) upstream.Options {
	logins := app.OpenLogins(cfg)
	logins.Changed = func(name string) error { return RequestRestart(cfg, name) }
	return upstream.Options{
		Client:  upstream.Implementation{Name: "guideway", Title: "Guideway", Version: app.Version()},
		Secrets: upstream.Secrets{Getenv: a.Host.Getenv, Keychain: upstream.Keychain},
		Logins:  logins, CacheDir: UpstreamCacheDir(cfg), Logger: a.Logger(cfg),
	}
}

// UpstreamCacheDir returns the directory of the cached upstream catalogs.
func UpstreamCacheDir(cfg *config.Config) string {
	if cfg.Dirs.Cache == "" {
		return ""
	}
	return filepath.Join(cfg.Dirs.Cache, "upstreams")
}

// NewPinStore returns the pin store.
func NewPinStore(a *app.App, cfg *config.Config) pins.Store {
	return pins.Store{Approvals: &approvals{cfg: cfg, now: a.Host.CurrentTime}, Dir: filepath.Join(cfg.DataDir, "upstreams"), Shared: cfg.Shared}
}

// sharedApprovalsTime is how long an instance uses the approvals that it has read from the
// shared state. Other instances see a change after that time.
const sharedApprovalsTime = time.Second

// approvals implements pins.Approvals. It reads the file again only if it has changed.
type approvals struct {
	cfg *config.Config
	now func() time.Time

	mu sync.Mutex
	// records are those of the stamp seen, which was read at a time.
	seen    string
	read    time.Time
	records approval.Records
}

var _ pins.Approvals = (*approvals)(nil)

// List implements pins.Approvals.
func (s *approvals) List() (approval.Records, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cfg.Shared != nil && time.Since(s.read) < sharedApprovalsTime {
		return s.records, nil
	}
	began, stamp := time.Now(), app.ApprovalsStamp(s.cfg)
	if stamp != "" && stamp == s.seen {
		s.read = began
		return s.records, nil
	}
	s.seen, s.read = "", time.Time{}
	records, err := app.ReadApprovals(s.cfg, s.now)
	if err != nil {
		return nil, err
	}
	s.seen, s.records, s.read = stamp, records, began
	return records, nil
}

// Change implements pins.Approvals.
func (s *approvals) Change(ctx context.Context, edit func(approval.Records) (approval.Records, error)) error {
	store, err := app.OpenApprovals(s.cfg, s.now)
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.read = time.Time{}
	s.mu.Unlock()
	return store.Change(ctx, edit)
}

// openUpstreams returns the gateway, or nil if neither clients nor machine agents can use
// it. It follows changes of the configuration, the approvals and the catalog.
func openUpstreams(a *app.App, cfg *config.Config, cat *catalog.Catalog, pool *sandbox.Pool, state hookstate.Store, rec *RequestObserver, policies gateway.Policies, dashboard func(context.Context) string, instance string) (*Upstreams, error) {
	offered := cfg.OffersUpstreams()
	if !offered && len(cfg.Upstreams) == 0 && !slices.Contains(cfg.Toolsets, mcpserver.ToolsetMachines) {
		return nil, nil
	}
	u := &Upstreams{
		app: a, isOffered: offered, Logger: a.Logger(cfg), logs: &app.UpstreamLogs{Dir: app.UpstreamLogDir(cfg)},
		InitialValues: cfg.Values(), health: make(chan time.Duration, 1),
	}
	u.health <- cfg.Gateway.Health
	seen := readApplied(cfg, u.Logger) // before the gateway reads anything
	opts := UpstreamOptions(a, cfg)
	opts.Log = u.logs.AddLine
	key, err := app.StateKey(cfg, "gateway state")
	if err != nil {
		return nil, err
	}
	u.hooks = NewActiveHooks(cfg, cat, pool, state, u.Logger, a.Host.CurrentTime)
	s := gatewaySettings(cfg)
	u.Gateway, err = gateway.New(gateway.Options{
		Upstreams: s.Upstreams, Upstream: opts, Lazy: s.Lazy, Project: s.Project,
		Pins: NewPinStore(a, cfg), ClientPerMinute: s.ClientPerMinute,
		Results: openResults(cfg, instance, a.Host.CurrentTime, u.Logger), LargeResult: cfg.Gateway.LargeResult,
		Holds: a.OpenHolds(cfg), HoldTimes: s.HoldTimes, Dashboard: dashboard, Now: a.Host.CurrentTime,
		Tools: s.Tools, Policies: policies, Hooks: u.hooks, Observer: rec, Key: key, Instance: instance, Shared: cfg.Shared, Logger: u.Logger,
	})
	if err != nil {
		u.closeHooks()
		return nil, err
	}
	rec.Counts.setGateway(u.Gateway)
	relist := u.Relist
	u.hooks.onToolsListChange.Store(&relist)
	ctx, stop := context.WithCancel(context.Background())
	u.stop = stop
	u.background = func(task func(context.Context)) { u.wg.Go(func() { task(ctx) }) }
	u.wg.Go(func() { u.followChanges(ctx, cfg, seen) })
	u.wg.Go(func() { u.Watch(ctx, u.health) })
	return u, nil
}

// openResults returns the store of large results, or nil if results of any size are passed
// on. Its limits are those of the request log.
func openResults(cfg *config.Config, instance string, now func() time.Time, logger *slog.Logger) gateway.Results {
	if cfg.Gateway.LargeResult == 0 {
		return nil
	}
	return results.NewStore(results.Options{
		Dir: filepath.Join(cfg.DataDir, "results"), Instance: instance, Retention: cfg.Requests.Retention, MaxSize: cfg.Requests.MaxSize, Texts: app.SealFiles(cfg), Now: now, Logger: logger,
	})
}

// asToolset returns the gateway for the MCP server, or nil if clients do not get the
// toolset.
func (u *Upstreams) asToolset() mcpserver.Upstreams {
	if u == nil || !u.isOffered {
		return nil
	}
	return u.Gateway
}

// FastPath returns the gateway for calls that bypass the SDK, or nil.
func (u *Upstreams) FastPath() transport.FastPath {
	if u == nil || !u.isOffered {
		return nil
	}
	return u.Gateway
}

// configPollInterval is the interval at which the configuration and the approvals are
// checked.
const configPollInterval = 500 * time.Millisecond

// appliedChanges identifies what the gateway has applied.
type appliedChanges struct {
	path, file, pins string
	// shared are the shared settings, and failed is the last error about them.
	shared, failed string
	restarts       restartRequests
}

// readApplied returns what a gateway that starts now applies.
func readApplied(cfg *config.Config, logger *slog.Logger) *appliedChanges {
	path, _ := app.ConfigFile(cfg) // without a file there are no changes
	s := &appliedChanges{path: path, file: app.FileStamp(path), pins: app.ApprovalsStamp(cfg), failed: fmt.Sprint(error(nil)), restarts: restartRequests{contents: map[string]string{}}}
	s.restarts.readNew(restartsDir(cfg), logger) // Earlier requests concern earlier processes.
	return s
}

// followChanges applies changes of the configuration file and of the approvals, and requests
// for restarts of upstreams, without a restart of the server. If the file is invalid, it logs
// a warning and changes nothing.
func (u *Upstreams) followChanges(ctx context.Context, cfg *config.Config, seen *appliedChanges) {
	tick := time.NewTicker(configPollInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for _, name := range seen.restarts.readNew(restartsDir(cfg), u.Logger) {
			_ = u.Restart(name) // An upstream that is not in use needs no restart.
		}
		u.syncConfig(ctx, cfg, seen)
		if now := app.FileStamp(seen.path); now != seen.file {
			seen.file = now
			if err := u.reloadConfig(); err != nil {
				u.Logger.Warn("the changed upstream configuration was not applied", "error", err)
			}
		}
		if now := app.ApprovalsStamp(cfg); now != seen.pins {
			seen.pins = now
			u.Reload()
		}
	}
}

// syncConfig exchanges the settings with the other instances.
func (u *Upstreams) syncConfig(ctx context.Context, cfg *config.Config, seen *appliedChanges) {
	if cfg.Shared == nil {
		return
	}
	now, err := u.app.SyncConfig(ctx, cfg, seen.shared)
	if err == nil {
		seen.shared = now
	}
	if text := fmt.Sprint(err); text != seen.failed && ctx.Err() == nil {
		seen.failed = text
		if err != nil {
			u.Logger.Warn("the settings of the gateway are not those of the other instances", "error", err)
		}
	}
}

// reloadConfig applies the current configuration to the gateway.
func (u *Upstreams) reloadConfig() error {
	u.reloadLock.Lock()
	defer u.reloadLock.Unlock()
	next, err := u.app.Load()
	if err != nil {
		return err
	}
	if err := u.Configure(gatewaySettings(next)); err != nil {
		return err
	}
	select { // discard an unread interval
	case <-u.health:
	default:
	}
	u.health <- next.Gateway.Health
	u.LogPendingSettings(next)
	return nil
}

// LogPendingSettings logs the changed settings that need a restart, once for each set of
// names.
func (u *Upstreams) LogPendingSettings(next *config.Config) {
	var names []string
	for i, v := range next.Values() {
		if !strings.HasPrefix(v.Name, "gateway.") && v.Text != u.InitialValues[i].Text {
			names = append(names, v.Name)
		}
	}
	waiting := strings.Join(names, ", ")
	if waiting != u.pendingSettings && waiting != "" {
		u.Logger.Warn("changed settings take effect at the next start", "settings", waiting)
	}
	u.pendingSettings = waiting
}

// upstreamCloseTimeout limits the time for calls in progress when the process ends, which
// it must do within a second.
const upstreamCloseTimeout = 100 * time.Millisecond

// hooksCloseTimeout limits the time for fire-and-forget hooks when the process ends.
const hooksCloseTimeout = 150 * time.Millisecond

func (u *Upstreams) closeHooks() {
	ctx, cancel := context.WithTimeout(context.Background(), hooksCloseTimeout)
	defer cancel()
	u.hooks.Close(ctx)
}

func (u *Upstreams) closeAll() {
	if u == nil {
		return
	}
	u.stop()
	u.wg.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), upstreamCloseTimeout)
	defer cancel()
	u.Close(ctx)
	u.closeHooks()
	u.logs.Close()
}

// CompleteUpstreams completes upstream names.
func CompleteUpstreams(a *app.App) cobra.CompletionFunc { return completeUpstreams(a, 1) }

// CompleteUpstreamFlag completes the value of a flag with upstream names.
func CompleteUpstreamFlag(a *app.App) cobra.CompletionFunc { return completeUpstreams(a, math.MaxInt) }

func completeUpstreams(a *app.App, most int) cobra.CompletionFunc {
	return app.CompleteNames(most, cobra.ShellCompDirectiveNoFileComp, func(context.Context) (names []string, err error) {
		cfg, err := a.Load()
		if err != nil {
			return nil, err
		}
		for _, u := range cfg.Upstreams {
			names = append(names, u.Name)
		}
		return names, nil
	})
}

// FormatUpstreamState returns a readable state of an upstream.
func FormatUpstreamState(r *gatewayadmin.Summary) string {
	switch {
	case r.Problem != "":
		return "invalid: " + app.OneLine(r.Problem)
	case r.Disabled:
		return "disabled"
	case r.Waiting > 0:
		return app.Plural(r.Waiting, "change waits", "changes wait") + " for approval"
	case r.Tools < 0:
		return "not queried yet"
	}
	return "ready"
}

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

// restartsDir returns the directory with one file for each upstream that commands have asked
// the running servers to restart. A changed file is a new request.
func restartsDir(cfg *config.Config) string {
	return filepath.Join(cfg.DataDir, "upstreams", "restarts")
}

// RequestRestart asks the running servers of a data directory to restart an upstream.
func RequestRestart(cfg *config.Config, name string) error {
	if err := upstream.CheckName(name); err != nil {
		return err
	}
	dir := restartsDir(cfg)
	if err := atomicfile.MakeDir(dir); err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, name), rand.Text()+"\n")
}

// restartRequests are the requests that a server has seen.
type restartRequests struct {
	contents map[string]string // by the name of the upstream
	reported string            // the last error in the log
}

// readNew returns the upstreams with new requests, and records the requests. It logs an
// error once.
func (r *restartRequests) readNew(dir string, logger *slog.Logger) []string {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // The first request creates the directory.
	}
	if err != nil {
		if text := err.Error(); text != r.reported {
			logger.Warn("the requests to restart upstreams cannot be read; make the directory readable, or restart the server instead", "error", err)
			r.reported = text
		}
		return nil
	}
	var names []string
	for _, e := range entries {
		if upstream.CheckName(e.Name()) != nil {
			continue // a temporary file
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil || string(text) == r.contents[e.Name()] {
			continue // A file that cannot be read is read again at the next call.
		}
		r.contents[e.Name()] = string(text)
		names = append(names, e.Name())
	}
	return names
}
