package setup

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
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
