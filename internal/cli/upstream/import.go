package upstream

import "github.com/guideway-dev/guideway/internal/cli/app"

import installcmd "github.com/guideway-dev/guideway/internal/cli/install"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/install"
	"github.com/spf13/cobra"
)

// upstreamImportOptions is the command line of guideway upstream import.
type upstreamImportOptions struct {
	app     *app.App
	Clients []string
	Scope   string
	DryRun  bool
	JSON    bool
	machine install.Env
}

func newUpstreamImportCmd(a *app.App, run func(context.Context, *upstreamImportOptions) error) *cobra.Command {
	o := &upstreamImportOptions{app: a}
	cmd := &cobra.Command{
		Use:               "import [CLIENT...]",
		ValidArgsFunction: installcmd.CompleteInstallClients(),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Clients = args
			o.machine = a.Host.InstallEnv("")
			return run(cmd.Context(), o)
		},
	}
	app.AddChoiceFlag(cmd, &o.Scope, "scope", string(install.ScopeUser), app.ToStrings(install.ScopeUser, install.ScopeProject), "configuration to read: user, or project for the file in the working directory")
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show the servers without importing them")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// importedServer is one server in the answer of guideway upstream import --json. File is
// the client's configuration file.
type importedServer struct {
	app.ChangeResult
	Client string `json:"client"`
	Taken  bool   `json:"taken"`
}

func runUpstreamImport(ctx context.Context, o *upstreamImportOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	clients := install.Clients()
	if len(o.Clients) > 0 {
		clients = nil
		for _, name := range o.Clients {
			client, err := install.Find(name)
			if err != nil {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "%w", err).WithFix("guideway upstream import --dry-run")}
			}
			clients = append(clients, client)
		}
	}
	taken := map[string]bool{}
	for _, u := range cfg.Upstreams {
		taken[u.Name] = true
	}
	list := []importedServer{}
	for _, client := range clients {
		more, err := o.importFrom(ctx, cfg, client, taken)
		if err != nil {
			return err
		}
		list = append(list, more...)
	}
	if o.JSON {
		return app.WriteJSON(o.app.Host.Out, list)
	}
	o.writeText(list)
	if why := toolsetNote(cfg); why != "" && !o.DryRun && len(list) > 0 {
		fmt.Fprintf(o.app.Host.Err, "\n%s\n", why)
	}
	return nil
}

// importFrom imports the servers of one client.
func (o *upstreamImportOptions) importFrom(ctx context.Context, cfg *config.Config, client install.Client, taken map[string]bool) ([]importedServer, error) {
	scope := install.Scope(o.Scope)
	if scope == install.ScopeProject && client.Project == "" {
		return nil, nil
	}
	location, err := install.Locate(o.machine, client, scope)
	if err != nil {
		return nil, err
	}
	file, err := install.Read(ctx, location.Path)
	if err != nil || !file.Exists {
		return nil, err
	}
	servers, err := install.Servers(o.machine, client, file.Content)
	if err != nil {
		return nil, err
	}
	var list []importedServer
	for _, s := range servers {
		u, notes := gatewayadmin.UpstreamOf(s)
		row := importedServer{
			ChangeResult: app.ChangeResult{Action: "skipped", Kind: app.KindUpstream, Name: u.Name, File: location.Path, Notes: notes}, Client: client.ID,
		}
		e := gatewayadmin.EntryOf(u)
		switch err := e.Check(); {
		case taken[u.Name]:
			row.Notes = append(row.Notes, "skipped: an upstream already has this name")
		case err != nil:
			row.Notes = append(row.Notes, "skipped: "+err.Error())
		default:
			row.Taken, taken[u.Name] = true, true
			row.Action, row.Changed = "imported", !o.DryRun
			if !o.DryRun {
				if _, err := saveUpstream(ctx, o.app, cfg, u); err != nil {
					return list, err
				}
			}
		}
		list = append(list, row)
	}
	return list, nil
}

func (o *upstreamImportOptions) writeText(list []importedServer) {
	host := o.app.Host
	if len(list) == 0 {
		fmt.Fprintln(host.Err, "No servers found to import.")
		return
	}
	word := "imported"
	if o.DryRun {
		word = "to be imported"
	}
	for _, s := range list {
		state := word
		if !s.Taken {
			state = "skipped"
		}
		fmt.Fprintf(host.Out, "%s  (%s)  %s\n", app.OneLine(s.Name), s.Client, state)
		for _, note := range s.Notes {
			fmt.Fprintf(host.Out, "  %s\n", app.OneLine(note))
		}
	}
}
