package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/server"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/spf13/cobra"
)

type upstreamLoginOptions struct {
	app       *app.App
	Name      string
	Scopes    []string
	NoBrowser bool
	JSON      bool
}

// upstreamLoggedIn is the answer of guideway upstream login --json.
type upstreamLoggedIn struct {
	app.ChangeResult
	Login *upstream.LoginInfo `json:"login"`
}

func newUpstreamLoginCmd(a *app.App, run func(context.Context, *upstreamLoginOptions) error) *cobra.Command {
	o := &upstreamLoginOptions{app: a}
	cmd := &cobra.Command{
		Use:               "login NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream login docs"),
		ValidArgsFunction: server.CompleteUpstreams(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	cmd.Flags().StringSliceVar(&o.Scopes, "scope", nil, "scope to request in addition to those that the upstream requests; can be repeated")
	cmd.Flags().BoolVar(&o.NoBrowser, "no-browser", false, "print the address of the login page without opening a browser")
	app.AddChangeFlag(cmd, &o.JSON)
	return cmd
}

// loginTimeout is the time in which a person must log in.
const loginTimeout = 10 * time.Minute

func runUpstreamLogin(ctx context.Context, o *upstreamLoginOptions) error {
	cfg, u, err := loadUpstream(o.app, o.Name)
	if err != nil {
		return err
	}
	var scopes []string
	for _, each := range o.Scopes {
		scopes = append(scopes, strings.Fields(each)...)
	}
	login, err := upstream.StartLoopbackLogin(ctx, gatewayadmin.EntryOf(u).Spec, server.UpstreamOptions(o.app, cfg),
		upstream.LoginOptions{Scopes: scopes, ClientMetadata: cfg.Gateway.ClientMetadata})
	if err != nil {
		return err
	}
	defer login.Close()
	out := o.app.Host.Err
	fmt.Fprintf(out, "Log in to %s at %s:\n\n  %s\n\n", u.Name, app.OneLine(login.Issuer), app.OneLine(login.URL))
	if !o.NoBrowser {
		if err := app.StartBrowser(ctx, login.URL); err != nil {
			fmt.Fprintf(out, "warning: %v; open the page in a browser of this computer\n", err)
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, loginTimeout, guideway.Errorf(guideway.CodeUnavailable, "there was no login to %s within %s", u.Name, loginTimeout).
		WithFix("guideway upstream login %s", u.Name))
	defer cancel()
	info, err := login.Wait(ctx)
	if err != nil {
		return err
	}
	return o.app.Host.WriteChange(o.JSON, upstreamLoggedIn{app.ChangeResult{Action: "logged in", Changed: true, Kind: app.KindUpstream, Name: u.Name}, info},
		fmt.Sprintf("Logged in to %s. To test it: guideway upstream show %s --check", u.Name, u.Name))
}

func newUpstreamLogoutCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runUpstreamLogout, &cobra.Command{
		Use:               "logout NAME",
		Args:              app.ExactArgs(1, "one name", "guideway upstream logout docs"),
		ValidArgsFunction: server.CompleteUpstreams(a),
	})
}

func runUpstreamLogout(ctx context.Context, o *app.NameOptions) error {
	cfg, u, err := loadUpstream(o.App, o.Name)
	if err != nil {
		return err
	}
	had, revoked, err := upstream.Logout(ctx, gatewayadmin.EntryOf(u).Spec, server.UpstreamOptions(o.App, cfg))
	if err != nil {
		return err
	}
	d := app.ChangeResult{Action: "logged out", Changed: had, Kind: app.KindUpstream, Name: u.Name}
	said := fmt.Sprintf("Logged out of %s.", u.Name)
	switch {
	case !had:
		said = fmt.Sprintf("There was no login to %s.", u.Name)
	case !revoked:
		d.Notes = append(d.Notes, "The tokens were deleted, but the authorization server did not revoke them: they are valid until they expire.")
		said += " " + d.Notes[0]
	}
	return o.App.Host.WriteChange(o.JSON, d, said)
}

// describeLogin returns a line about the login to an upstream, or "" if it needs none.
func describeLogin(name string, info *upstream.LoginInfo) string {
	if info == nil {
		return ""
	}
	line := "at " + app.OneLine(info.Issuer) + " since " + info.Since.Local().Format(time.DateTime)
	switch {
	case info.Renews:
		line += ", renewed automatically"
	case info.Expires != nil:
		line += ", until " + info.Expires.Local().Format(time.DateTime) + "; then: guideway upstream login " + name
	}
	if len(info.Scopes) > 0 {
		line += ", scopes " + app.OneLine(strings.Join(info.Scopes, " "))
	}
	return line
}

func newUpstreamProjectCmd(a *app.App) *cobra.Command {
	list := app.NewPlainCmd(a, runProjectList, &cobra.Command{Use: "list"})
	return app.NewGroupCmd(&cobra.Command{Use: "project"}, list, newProjectSetCmd(a, runProjectSet), newProjectClearCmd(a, runProjectSet))
}

func runProjectList(_ context.Context, o *app.PlainOptions) error {
	cfg, err := o.App.Load()
	if err != nil {
		return err
	}
	projects, err := server.NewOfflineUpstreamAdmin(o.App, cfg).Projects()
	if err != nil {
		return err
	}
	return app.WriteList(o.App.Host, o.JSON, app.Listing[gatewayadmin.Project]{
		Items: projects, Answer: projects, Empty: "No upstream is in a project. To add an upstream to a project: guideway upstream project set UPSTREAM PROJECT",
		Table: app.NewTable(1, "PROJECT", "UPSTREAMS"),
		Row: func(p gatewayadmin.Project) []string {
			return []string{app.OneLine(p.Name), strings.Join(p.Upstreams, ", ")}
		},
	})
}

// projectSetOptions is the command line of guideway upstream project set and clear.
type projectSetOptions struct {
	app           *app.App
	Name, Project string
	JSON          bool
}

func newProjectSetCmd(a *app.App, run func(context.Context, *projectSetOptions) error) *cobra.Command {
	o := &projectSetOptions{app: a}
	cmd := &cobra.Command{
		Use:               "set UPSTREAM PROJECT",
		Args:              app.ExactArgs(2, "an upstream and a project", "guideway upstream project set docs site"),
		ValidArgsFunction: server.CompleteUpstreams(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Name, o.Project = args[0], args[1]
			if o.Project == "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "the name of the project is empty").WithFix("guideway upstream project clear %s", o.Name)}
			}
			return run(cmd.Context(), o)
		},
	}
	app.AddChangeFlag(cmd, &o.JSON)
	return cmd
}

func newProjectClearCmd(a *app.App, run func(context.Context, *projectSetOptions) error) *cobra.Command {
	o := &projectSetOptions{app: a}
	cmd := &cobra.Command{
		Use:               "clear UPSTREAM",
		Args:              app.ExactArgs(1, "one upstream", "guideway upstream project clear docs"),
		ValidArgsFunction: server.CompleteUpstreams(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	app.AddChangeFlag(cmd, &o.JSON)
	return cmd
}

func runProjectSet(ctx context.Context, o *projectSetOptions) error {
	cfg, u, err := loadUpstream(o.app, o.Name)
	if err != nil {
		return err
	}
	if err := gatewayadmin.CheckProject(o.Project); err != nil {
		return err
	}
	file, err := o.app.EditConfig(ctx, cfg, func(src []byte) ([]byte, error) {
		if o.Project == "" {
			return clearUpstreamMember(src, u.Name, "project")
		}
		name, err := json.Marshal(o.Project)
		if err != nil {
			return nil, err
		}
		return install.SetMember(src, []string{"upstreams", u.Name, "project"}, name)
	})
	if err != nil {
		return err
	}
	said := fmt.Sprintf("The upstream %s is in the project %s.", u.Name, app.OneLine(o.Project))
	if o.Project == "" {
		said = "The upstream " + u.Name + " is not in a project."
	}
	return o.app.Host.WriteChange(o.JSON, app.ChangeResult{
		Action: "grouped", Changed: u.Project != o.Project, Kind: app.KindUpstream, Name: u.Name, Project: o.Project, File: file,
	}, said)
}
