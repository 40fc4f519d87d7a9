package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
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
		Long: `Forward the MCP messages on standard input to a server over HTTP, and its messages to
standard output, for clients that can only start programs.

Without --url, connect to the running server of this data directory, or else to the address
of the setting listen. The token of that server is read from its token file, and sent after
the server has proven that it has the same token. For another server use --url with the
variable GUIDEWAY_TOKEN, or with --token, whose value other users of this computer can see.`,
		Example: `  guideway connect
  GUIDEWAY_TOKEN=... guideway connect --url https://example.com/mcp`,
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	cmd.Flags().StringVar(&o.URL, "url", "", "`URL` of the server, such as http://127.0.0.1:3000/mcp (default: the local server)")
	cmd.Flags().StringVar(&o.Token, "token", "", "bearer `token` for the server (default: $GUIDEWAY_TOKEN, or else the token of the local server)")
	return cmd
}

func RunConnect(ctx context.Context, o *connectOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	opts, err := o.findServer(ctx, cfg)
	if err != nil {
		return err
	}
	host := o.app.Host
	b := upstream.NewBridge(opts, host.Out)
	if err := b.Reach(ctx); err != nil {
		if !host.InTerminal {
			b.Refuse(host.In, err)
		}
		return err
	}
	if host.InTerminal {
		fmt.Fprintf(host.Err, "Connected to %s. This command is for MCP clients, which write to standard input; to stop it, press Ctrl-D.\n", opts.URL)
	}
	return b.Run(ctx, host.In)
}

// findServer returns the options of the bridge. A token that the user passed together with
// a URL is sent without a proof. Any other token is sent only after the server has proven
// that it is the server of this data directory, because any program may listen on its port.
func (o *connectOptions) findServer(ctx context.Context, cfg *config.Config) (upstream.BridgeOptions, error) {
	opts := upstream.BridgeOptions{
		URL: o.URL, Token: cmp.Or(o.Token, o.app.Host.Getenv("GUIDEWAY_TOKEN")), ParamHeaders: gateway.ParamHeaders,
		Start: "start the server in another terminal: guideway serve; or let the client start its own: guideway mcp",
	}
	if opts.URL == "" {
		at, ok := server.FindLiveServer(ctx, cfg)
		if !ok {
			at = cfg.Listen
		}
		opts.URL = "http://" + at + "/mcp"
	}
	to, err := url.Parse(opts.URL)
	if err != nil || to.Host == "" || to.Scheme != "http" && to.Scheme != "https" || to.User != nil {
		return opts, app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--url must be an http or https URL with a host and without a user name").WithFix("--url http://127.0.0.1:3000/mcp")}
	}
	if o.URL != "" && !ssrf.IsLoopback(to.Hostname()) {
		opts.Start = "check the URL, and that the server and the network are up"
	}
	if o.URL != "" && (opts.Token != "" || to.Scheme != "http" || !ssrf.IsLoopback(to.Hostname())) {
		return opts, nil
	}
	if _, err := os.Stat(cfg.TokenFile); err != nil { // a running server has created the token file
		if opts.Token != "" {
			return opts, guideway.Errorf(guideway.CodeUnavailable, "the server for the token is unknown: there is no readable token file %s of a local server", cfg.TokenFile).
				WithFix("name the server for the token: guideway connect --url %s; or %s", opts.URL, opts.Start)
		}
		return opts, nil
	}
	known, _, err := auth.LoadOrCreateToken(cfg.TokenFile)
	opts.Token, opts.Dial = cmp.Or(opts.Token, known), auth.DialProven(known)
	return opts, err
}
