package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"os"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/spf13/cobra"
)

// connectOptions is the command line of guideway connect.
type connectOptions struct {
	app        *app.App
	URL, Token string
}

func NewConnectCmd(a *app.App, run func(context.Context, *connectOptions) error) *cobra.Command {
	o := &connectOptions{app: a}
	cmd := &cobra.Command{
		Use:   "connect",
		Short: "Connect a stdio client to a running server",
		Long: `Forward MCP messages between standard input and output and a server over HTTP, for clients
that can only start programs. All messages are forwarded in both directions.

Without --url, connect to the server of this data directory, or to the default address of
"guideway serve". The token of that server is found automatically; for another server use
--token, or the variable GUIDEWAY_TOKEN, which other users of this machine cannot see.`,
		Example: `  guideway connect
  GUIDEWAY_TOKEN=... guideway connect --url https://example.com/mcp`,
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	cmd.Flags().StringVar(&o.URL, "url", "", "`URL` of the server, such as http://127.0.0.1:3000/mcp")
	cmd.Flags().StringVar(&o.Token, "token", "", "bearer `token` for the server")
	return cmd
}

func RunConnect(ctx context.Context, o *connectOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	address, token, err := o.findServer(ctx, cfg)
	if err != nil {
		return err
	}
	host := o.app.Host
	b := upstream.NewBridge(upstream.BridgeOptions{
		URL: address, Token: token, ParamHeaders: gateway.ParamHeaders,
		Start: "start it in another terminal: guideway serve; or let the client start its own: guideway mcp",
	}, host.Out)
	if err := b.Reach(ctx); err != nil {
		if !host.InTerminal {
			b.Refuse(host.In, err)
		}
		return err
	}
	if host.InTerminal {
		fmt.Fprintf(host.Err, "Connected to %s. This command is for MCP clients, which write to standard input; to stop it, press Ctrl-D.\n", address)
	}
	return b.Run(ctx, host.In)
}

// findServer returns the address of the server and its token. The token of the local server
// is sent only to that server.
func (o *connectOptions) findServer(ctx context.Context, cfg *config.Config) (address, token string, err error) {
	token = cmp.Or(o.Token, o.app.Host.Getenv("GUIDEWAY_TOKEN"))
	address = o.URL
	if address == "" {
		at, ok := server.FindLiveServer(ctx, cfg)
		if !ok {
			at = cfg.Listen
		}
		address = "http://" + at + "/mcp"
	}
	to, err := url.Parse(address)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return "", "", app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--url is not an HTTP URL").WithFix("--url http://127.0.0.1:3000/mcp")}
	}
	if token != "" || o.URL != "" && !isLoopback(to.Hostname()) {
		return address, token, nil
	}
	if _, err := os.Stat(cfg.TokenFile); err != nil {
		return address, "", nil // a running server has created it
	}
	token, _, err = auth.LoadOrCreateToken(cfg.TokenFile)
	return address, token, err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
