package setup

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
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
		Short: "Print a link that logs your browser in",
		Long: `Print a link to the server that is alive on your data directory. It logs a browser in,
once and within five minutes; the login lasts. In the browser you see runs and session
documents as they change, and open the gates that want a person.

Where you have set a passphrase with "guideway runs approve --set-passphrase" it is
asked for: the link opens what the passphrase opens.`,
		Example: `  guideway serve &
  guideway open
  guideway open --browser`,
		Args: app.NoArgs,
		RunE: app.RunWith(run, o, a.Host.RequireTerminal),
	}
	cmd.Flags().BoolVar(&o.Browser, "browser", false, "start the browser with it; other users of this machine may see the link for a moment")
	return cmd
}

func RunOpen(ctx context.Context, o *OpenOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	address, ok := server.FindLiveServer(ctx, cfg)
	if !ok {
		return guideway.Errorf(guideway.CodeUnavailable, "no server is alive on %s", cfg.DataDir).WithFix("guideway serve")
	}
	person := app.NewApprover(o.app.Host, cfg)
	if err := person.CheckPassphraseIfSet(ctx); err != nil {
		return err
	}
	link, err := newLoginLink(cfg, address)
	if err != nil {
		return err
	}
	if !isTaken(ctx, link) {
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s takes no login of %s: it was started with another key file", address, app.UserSecretsDir(cfg)).
			WithFix("name the server's key file, with --journal-key-file or as journal.keyFile in guideway.json, which holds for both")
	}
	fmt.Fprintf(o.app.Host.Out, "%s\n", link)
	fmt.Fprintln(o.app.Host.Err, "It is good once, for five minutes.")
	if o.Browser {
		return startBrowser(ctx, link)
	}
	return nil
}

// newLoginLink makes a link that logs a browser in.
func newLoginLink(cfg *config.Config, address string) (string, error) {
	user, err := auth.SystemUser()
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

// isTaken asks the server whether a link is good. It does not use it up.
func isTaken(ctx context.Context, link string) bool {
	ctx, cancel := context.WithTimeout(ctx, app.ServerProbeTimeout)
	defer cancel()
	status, _, err := server.FetchPage(ctx, link)
	return err == nil && status == http.StatusOK
}

// startBrowser has the system open a link.
func startBrowser(ctx context.Context, link string) error {
	opener := []string{"xdg-open"}
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	}
	cmd := exec.CommandContext(ctx, opener[0], append(opener[1:], link)...) //nolint:gosec // G204: the link is of our own making
	if err := cmd.Run(); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "start the browser: %w", err).WithFix("copy the link into it")
	}
	return nil
}
