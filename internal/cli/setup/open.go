package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"fmt"
	"net/http"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
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
		Use:   "open",
		Short: "Print a login link for the dashboard",
		Long: `Print a link that logs a browser in to the running server of your data directory. The link
is valid once, for five minutes. The login ends after 30 days without use, or after 180
days. The dashboard shows runs and session documents live and lets you answer gates that
require human approval.

If you have set a passphrase with "guideway runs approve --set-passphrase", the command
asks for it, because a logged-in browser can answer the same gates.`,
		Example: `  guideway serve &
  guideway open
  guideway open --browser`,
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
	address, ok := server.FindLiveServer(ctx, cfg)
	if !ok {
		return guideway.Errorf(guideway.CodeUnavailable, "no server is running on the data directory %s", cfg.DataDir).WithFix("guideway serve")
	}
	person := app.NewApprover(o.app.Host, cfg)
	if err := person.CheckPassphraseIfSet(ctx); err != nil {
		return err
	}
	link, err := newLoginLink(cfg, address)
	if err != nil {
		return err
	}
	accepted, err := isAccepted(ctx, link)
	if err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s did not answer: %w", address, err).WithFix("guideway doctor")
	}
	if !accepted {
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s does not accept a login link made with the secrets in %s: the server was probably started with another key file", address, app.UserSecretsDir(cfg)).
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
func newLoginLink(cfg *config.Config, address string) (string, error) {
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
	return "http://" + address + "/login/" + code, nil
}

// isAccepted reports whether the server accepts a link. The link stays valid.
func isAccepted(ctx context.Context, link string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, app.ServerProbeTimeout)
	defer cancel()
	status, _, err := server.FetchPage(ctx, link)
	return status == http.StatusOK, err
}
