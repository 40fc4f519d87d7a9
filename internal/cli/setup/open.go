package setup

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
	"github.com/spf13/cobra"
)

// OpenOptions is the command line of guideway open.
type OpenOptions struct {
	app     *app.App
	Browser bool
}

func NewOpenCmd(a *app.App, run func(context.Context, *OpenOptions) error) *cobra.Command {
	o := &OpenOptions{app: a}
	cmd := &cobra.Command{
		Use:  "open",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o, a.Host.RequireTerminal),
	}
	cmd.Flags().BoolVar(&o.Browser, "browser", false, "also open the link in a browser; other users of this computer may see the link briefly")
	return cmd
}

func RunOpen(ctx context.Context, o *OpenOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	at := server.FindServerURL(ctx, cfg)
	if at == "" {
		return guideway.Errorf(guideway.CodeUnavailable, "no server is running on the data directory %s", cfg.DataDir).WithFix("guideway serve")
	}
	person := app.NewApprover(o.app.Host, cfg)
	if err := person.CheckPassphraseIfSet(ctx); err != nil {
		return err
	}
	link, err := newLoginLink(cfg, at)
	if err != nil {
		return err
	}
	accepted, err := isAccepted(ctx, link)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s did not answer: %w", at, err).WithFix("guideway doctor")
	}
	if !accepted {
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s does not accept a login link made with the secrets in %s: the server was probably started with another key file", at, app.UserSecretsDir(cfg)).
			WithFix("use the same key file for the server and for this command: --journal-key-file, or journal.keyFile in guideway.json")
	}
	fmt.Fprintf(o.app.Host.Out, "%s\n", link)
	fmt.Fprintln(o.app.Host.Err, "The link is valid once, for five minutes.")
	if o.Browser {
		return app.StartBrowser(ctx, link)
	}
	return nil
}

// newLoginLink returns a link that logs a browser in.
func newLoginLink(cfg *config.Config, at string) (string, error) {
	user, err := app.LocalUser(cfg)
	if err != nil {
		return "", err
	}
	browsers, err := app.OpenBrowserSessions(cfg)
	if err != nil {
		return "", err
	}
	code, _, err := browsers.NewLink(user)
	if err != nil {
		return "", err
	}
	return at + "/login/" + code, nil
}

// isAccepted reports whether the server accepts a link. The link stays valid.
func isAccepted(ctx context.Context, link string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, app.ServerProbeTimeout)
	defer cancel()
	status, _, err := server.FetchPage(ctx, link)
	return status == http.StatusOK, err
}

func NewVersionCmd(a *app.App, run app.RunFunc[app.PlainOptions]) *cobra.Command {
	return app.NewPlainCmd(a, run, &cobra.Command{Use: "version"})
}

// build is the answer of guideway version --json.
type build struct {
	Version string `json:"version"`
	// Commit is the revision, Time its time, and Modified reports uncommitted changes; they
	// are empty if the build has no such information.
	Commit   string `json:"commit,omitempty"`
	Time     string `json:"time,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func thisBuild() build {
	b := build{Version: app.Version(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.Time = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}

// String returns the build on one line.
func (b build) String() string {
	text := "guideway " + b.Version
	if b.Commit != "" {
		text += " commit " + b.Commit[:min(12, len(b.Commit))]
		if b.Modified {
			text += " (modified)"
		}
	}
	return fmt.Sprintf("%s (%s %s/%s)", text, b.Go, b.OS, b.Arch)
}

func RunVersion(_ context.Context, o *app.PlainOptions) error {
	b := thisBuild()
	return o.App.Host.WriteResult(o.JSON, b, b.String())
}

// connectOptions is the command line of guideway connect.
type connectOptions struct {
	app        *app.App
	URL, Token string
}

func NewConnectCmd(a *app.App, run func(context.Context, *connectOptions) error) *cobra.Command {
	o := &connectOptions{app: a}
	cmd := &cobra.Command{
		Use:  "connect",
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
		URL: o.URL, Token: cmp.Or(o.Token, o.app.Host.Getenv("GUIDEWAY_TOKEN")), ParamHeaders: upstream.ParamHeaders,
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
