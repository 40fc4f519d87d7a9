package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox/worker"
	"github.com/guideway-dev/guideway/internal/httpapi"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/spf13/cobra"
)

func NewServeCmd(a *app.App) *cobra.Command {
	asRegistry := false
	cmd := &cobra.Command{
		Use:  "serve",
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runServe(cmd.Context(), a, asRegistry) },
	}
	cmd.Flags().BoolVar(&asRegistry, "registry", false, "also serve the definitions, except the bundled ones, at /registry to other servers")
	return cmd
}

func runServe(ctx context.Context, a *app.App, asRegistry bool) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	if _, err := app.LoadServerToken(cfg); err != nil { // it also opens the shared state
		return err
	}
	if cfg, err = pullSettings(ctx, a, cfg); err != nil {
		return err
	}
	s, err := OpenSurface(ctx, a, cfg, nil)
	if err != nil {
		return err
	}
	defer s.Close()
	s.registry = asRegistry
	s.Machines.startWorker()
	defer s.followHeads(ctx)()
	mcp := transport.NewHTTPHandler(s.Server.MCP(), transport.HTTPOptions{Logger: a.Logger(cfg), HostsChecked: true, FastPath: s.Upstreams.FastPath(), Peers: s.instances.peers()})
	defer CloseSessions(mcp)
	handler, err := s.newHandler(mcp)
	if err != nil {
		return err
	}
	listener, err := listenTCP(ctx, cfg.Listen)
	if err != nil {
		return err
	}
	withdraw, err := announceServer(cfg, listener.Addr())
	if err != nil {
		// The server works, but other processes do not find it automatically.
		a.Logger(cfg).Warn("other processes cannot find this server", "error", err)
		withdraw = func() {}
	}
	defer withdraw()
	leave, err := s.instances.announce(ctx, listener.Addr())
	if err != nil {
		a.Logger(cfg).Warn("other instances cannot forward requests to this one", "error", err)
		leave = func() {}
	}
	defer leave()
	writeConnectHelp(a, cfg, listener.Addr(), s.catalog, asRegistry)
	return httpapi.Serve(ctx, listener, notifyAfterAnswer(handler, s.maintenance.NotifyAnswered))
}

// followHeads records the heads of the runs of other instances, until stop is called.
func (s *Surface) followHeads(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var following sync.WaitGroup
	if s.cfg.UsesPostgres() {
		following.Go(func() { s.store.Runs.FollowHeads(ctx) })
	}
	return func() {
		cancel()
		following.Wait()
	}
}

// pullSettings returns the settings with those that the other instances share.
func pullSettings(ctx context.Context, a *app.App, cfg *config.Config) (*config.Config, error) {
	if cfg.Shared == nil {
		return cfg, nil
	}
	if _, err := a.SyncConfig(ctx, cfg, ""); err != nil {
		a.Logger(cfg).Warn("the settings of the other instances were not applied", "error", err)
	}
	return a.Load()
}

// CloseSessions ends the remaining legacy sessions. It must be fast, because the process
// ends within a second of its signal.
func CloseSessions(h *transport.HTTPHandler) {
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	_ = h.Close(ctx) // the remaining sessions end with the process
}

func listenTCP(ctx context.Context, address string) (net.Listener, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the address %s is in use by another program", address).
			WithFix("guideway serve --listen 127.0.0.1:0, to use any free port")
	}
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "start the HTTP server: %w", err).
			WithFix("guideway serve --listen 127.0.0.1:3000")
	}
	return listener, nil
}

// writeConnectHelp prints the addresses of the server and instructions to connect a client.
func writeConnectHelp(a *app.App, cfg *config.Config, addr net.Addr, cat *catalog.Catalog, asRegistry bool) {
	snap := cat.Snapshot()
	out := a.Host.Err
	fmt.Fprintf(out, "guideway %s is serving %s\n\n", app.Version(), app.Plural(len(snap.List(catalog.Filter{})), "workflow", "workflows"))
	fmt.Fprintf(out, "  MCP        http://%s/mcp\n", addr)
	fmt.Fprintf(out, "  dashboard  http://%s/\n", addr)
	fmt.Fprintf(out, "  API        http://%s/api/docs\n", addr)
	if asRegistry {
		fmt.Fprintf(out, "  registry   http://%s/registry\n", addr)
	}
	fmt.Fprintf(out, "  token in   %s\n\n", cfg.TokenFile)
	fmt.Fprintf(out, "Log your browser in to the dashboard, from another terminal: guideway open\n\n")
	fmt.Fprintf(out, "Connect Claude Code over HTTP:\n\n")
	fmt.Fprintf(out, "  claude mcp add --transport http guideway http://%s/mcp --header \"Authorization: Bearer $(cat '%s')\"\n\n", addr, cfg.TokenFile)
	fmt.Fprintf(out, "Or let your client start Guideway: guideway install\n")
	fmt.Fprintf(out, "Stop with Ctrl-C.\n")
	if found := snap.Diagnostics(); len(found) > 0 {
		fmt.Fprintf(out, "\n%s in definitions; to list them: guideway doctor\n", app.CountDiagnostics(found))
	}
	if tcp, ok := addr.(*net.TCPAddr); ok && !tcp.IP.IsLoopback() && len(cfg.AllowedHosts) == 0 {
		fmt.Fprintf(out, "\nwarning: %s can be reached from other computers, but only requests to loopback names are answered; allow other names with --allowed-host\n", addr)
	}
}

func NewMCPCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:  "mcp",
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return RunMCP(cmd.Context(), a) },
	}
}

func RunMCP(ctx context.Context, a *app.App) error {
	cfg, err := a.Load()
	if err != nil {
		return err
	}
	s, err := OpenSurface(ctx, a, cfg, a.Host.LookupProject)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.servesMachines() {
		s.Machines.startWorker()
	}
	user, err := app.LocalUser(cfg)
	if err != nil {
		return err
	}
	ctx = auth.WithPrincipal(ctx, guideway.Principal{User: user})
	return transport.ServeStdio(ctx, s.Server.MCP(), s.Upstreams.FastPath(), io.NopCloser(a.Host.In), nopCloser{NotifyWriter{Writer: a.Host.Out, OnWrite: s.maintenance.NotifyAnswered}})
}

// nopCloser is a writer whose Close does nothing.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// NewScriptWorkerCmd returns the hidden command that guideway starts to run scripts in a
// restricted process.
func NewScriptWorkerCmd(host *app.Host) *cobra.Command {
	return &cobra.Command{
		Use:    "script-worker",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return worker.Main(host.In, host.Out)
		},
	}
}
