package cli

import (
	"context"
	"io"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/mcpserver/transport"
	"github.com/spf13/cobra"
)

func newMCPCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "mcp",
		Short: "Serve MCP on standard input and output, for a client that starts us",
		Long: `Serve MCP on standard input and output. This is what a client starts; "guideway
install" puts it into a client's configuration. Without arguments, and where the
input is no terminal, guideway does the same.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runMCP(cmd.Context()) },
	}
}

func (a *app) runMCP(ctx context.Context) error {
	cfg, err := a.load()
	if err != nil {
		return err
	}
	s, err := a.openSurface(ctx, cfg, a.host.projectOf)
	if err != nil {
		return err
	}
	defer s.Close()
	user, err := authn.SystemUser()
	if err != nil {
		return err
	}
	ctx = authn.WithPrincipal(ctx, guideway.Principal{User: user})
	return transport.ServeStdio(ctx, s.server.MCP(), s.upstreams.fastPath(), io.NopCloser(a.host.In), nopCloser{afterWrite{a.host.Out, s.answered}})
}

// nopCloser leaves the process's output open.
type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
