package upstream

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/server"

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/spf13/cobra"
)

func newUpstreamProjectCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{
		Use: "project", Short: "Group upstreams into projects",
		Long: `A project is a group of upstreams. A token can give access to a project (guideway token
create NAME --project PROJECT), and a server can be limited to one (--gateway-project
PROJECT). An upstream is in at most one project. A project exists while an upstream is in
it.`,
		Example: "  guideway upstream project set docs site\n  guideway upstream project clear docs\n  guideway upstream project list",
	}, newProjectListCmd(a), newProjectSetCmd(a, runProjectSet), newProjectClearCmd(a, runProjectSet))
}

func newProjectListCmd(a *app.App) *cobra.Command {
	return app.NewPlainCmd(a, runProjectList, &cobra.Command{
		Use: "list", Short: "List projects and their upstreams",
		Example: "  guideway upstream project list --json",
	})
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
		Use: "set UPSTREAM PROJECT", Short: "Set the project of an upstream",
		Example:           "  guideway upstream project set docs site",
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
		Use: "clear UPSTREAM", Short: "Remove an upstream from its project",
		Example:           "  guideway upstream project clear docs",
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
