package server

import (
	"context"
	"io"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/mcp/transport"
	"github.com/spf13/cobra"
)

func NewMCPCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve MCP on standard input and output, for a client that starts guideway",
		Long: `Serve MCP on standard input and output. Clients start this command; "guideway
install" adds it to a client's configuration. Without arguments, and if the
input is not a terminal, guideway does the same.`,
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
