package cli

import (
	"context"
	"fmt"
	"net/http"
	"os/exec"
	"runtime"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/authn"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/spf13/cobra"
)

// openOptions is the command line of guideway open.
type openOptions struct {
	app     *app
	Browser bool
}

func newOpenCmd(a *app, run func(context.Context, *openOptions) error) *cobra.Command {
	o := &openOptions{app: a}
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
		Args: noArgs,
		RunE: runWith(run, o, a.host.asksPeople),
	}
	cmd.Flags().BoolVar(&o.Browser, "browser", false, "start the browser with it; other users of this machine may see the link for a moment")
	return cmd
}

func runOpen(ctx context.Context, o *openOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	address, ok := liveServer(ctx, cfg)
	if !ok {
		return guideway.Errorf(guideway.CodeUnavailable, "no server is alive on %s", cfg.DataDir).WithFix("guideway serve")
	}
	person := newApprover(o.app.host, cfg)
	if err := person.proveIfSet(ctx); err != nil {
		return err
	}
	link, err := newLoginLink(cfg, address)
	if err != nil {
		return err
	}
	if !isTaken(ctx, link) {
		return guideway.Errorf(guideway.CodeUnavailable, "the server at %s takes no login of %s: it was started with another key file", address, personDir(cfg)).
			WithFix("name the server's key file, with --journal-key-file or as journal.keyFile in guideway.json, which holds for both")
	}
	fmt.Fprintf(o.app.host.Out, "%s\n", link)
	fmt.Fprintln(o.app.host.Err, "It is good once, for five minutes.")
	if o.Browser {
		return startBrowser(ctx, link)
	}
	return nil
}

// newLoginLink makes a link that logs a browser in.
func newLoginLink(cfg *config.Config, address string) (string, error) {
	user, err := authn.SystemUser()
	if err != nil {
		return "", err
	}
	browsers, err := newBrowsers(cfg)
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
	ctx, cancel := context.WithTimeout(ctx, serverTime)
	defer cancel()
	status, _, err := visit(ctx, link)
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
