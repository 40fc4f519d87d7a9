package hooks

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/spf13/cobra"
)

// hooksListOptions is the command line of guideway hooks list.
type hooksListOptions struct {
	app *app.App
	// Templates, Active and Modules filter the list.
	Templates, Active, Modules bool
	JSON                       bool
}

func newHooksListCmd(a *app.App, run func(context.Context, *hooksListOptions) error) *cobra.Command {
	o := &hooksListOptions{app: a}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List hook graphs from all sources",
		Long: `List the hook graphs from all sources and their states: active, off, changed (differs
from the approved version), broken or template. A graph that is enabled but cannot run
blocks the requests that it wraps. The chains of the enabled graphs follow: a request
passes them from the client to the upstream, and its response in reverse. Diagnostics of
graphs that did not load come last.`,
		Example: `  guideway hooks list
  guideway hooks list --active
  guideway hooks list --modules`,
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Active, "active", false, "show only enabled graphs")
	f.BoolVar(&o.Templates, "templates", false, "show only templates")
	f.BoolVar(&o.Modules, "modules", false, "list the modules of the library instead of the graphs")
	app.AddJSONFlag(cmd, &o.JSON)
	cmd.MarkFlagsMutuallyExclusive("active", "templates", "modules")
	return cmd
}

// hooksListAnswer is the answer of guideway hooks list --json.
type hooksListAnswer struct {
	Graphs  []hookRow          `json:"graphs"`
	Chains  []hookadmin.Chain  `json:"chains"`
	Modules []hookadmin.Module `json:"modules"`
	// Missing are enabled graphs that no source has.
	Missing     []hookadmin.Missing   `json:"missing,omitempty"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// hookRow is a graph; Problem is the error of a graph that does not load.
type hookRow struct {
	hookadmin.Row
	Problem string `json:"error,omitempty"`
}

func (d *HookDeps) newRow(e *catalog.HookEntry) hookRow {
	return hookRow{Row: d.Row(e), Problem: e.Problem}
}

func runHooksList(ctx context.Context, o *hooksListOptions) error {
	d, err := OpenHooks(ctx, o.app)
	if err != nil {
		return err
	}
	list := d.List()
	answer := hooksListAnswer{Graphs: []hookRow{}, Chains: list.Chains, Modules: list.Modules, Missing: list.Missing, Diagnostics: list.Diagnostics}
	for _, e := range d.Snapshot.Hooks() {
		row := d.newRow(e)
		if o.Active && !row.Enabled && row.State != hookengine.StateActive || o.Templates && row.State != hookengine.StateTemplate {
			continue
		}
		answer.Graphs = append(answer.Graphs, row)
	}
	return o.app.Host.WriteJSONOr(o.JSON, answer, func() { o.writeText(d, answer) })
}

// chainText draws a chain: "tools/call: client → redact-secrets (30) → upstream".
func chainText(c hookadmin.Chain) string {
	text := string(c.Method) + ": client"
	for _, g := range c.Graphs {
		text += fmt.Sprintf(" → %s (%d", g.ID, g.Order)
		if len(g.Bindings) > 0 {
			text += ", for " + bindingText(g.Bindings)
		}
		text += ")"
	}
	return app.OneLine(text + " → upstream")
}

func (o *hooksListOptions) writeText(d *HookDeps, answer hooksListAnswer) {
	host := o.app.Host
	s := host.OutStyles()
	switch {
	case o.Modules:
		app.WriteRows(host, app.NewTable(2, "MODULE", "SOURCE", "FILE"), answer.Modules, func(m hookadmin.Module) []string { return []string{m.ID, m.Source, m.Path} })
	case len(answer.Graphs) > 0:
		app.WriteRows(host, app.NewTable(5, "ID", "TYPE", "STATE", "SOURCE", "FOR", "NAME"), answer.Graphs, func(row hookRow) []string {
			e, err := d.Snapshot.Hook(row.ID)
			if err != nil || e.Graph == nil {
				return []string{row.ID, "", string(row.State), row.Source, "", app.OneLine(row.Problem)}
			}
			return []string{row.ID, string(row.Type), string(row.State), row.Source, app.OneLine(bindingText(e.Graph.Bindings)), app.OneLine(row.Name + ": " + row.Description)}
		})
	case o.Active, o.Templates:
		fmt.Fprintln(host.Err, "No hook graph matches. To list all: guideway hooks list")
	default:
		fmt.Fprintln(host.Err, "No hook graphs found. To list the sources: guideway sources")
	}
	if !o.Modules && !o.Templates && len(answer.Chains) > 0 {
		fmt.Fprintf(host.Out, "\n%s\n", s.Bold("Chains"))
		for _, c := range answer.Chains {
			fmt.Fprintf(host.Out, "  %s\n", chainText(c))
		}
	}
	for _, m := range answer.Missing {
		fmt.Fprintf(host.Err, "%s the hook graph %s is enabled but missing from the source %s; the requests that it wrapped are refused: restore its file, or run guideway hooks disable %s\n",
			s.Yellow("warning:"), m.ID, app.OneLine(m.Source), m.ID)
	}
	if len(answer.Diagnostics) > 0 {
		fmt.Fprintf(host.Err, "\n%s in hook graphs:\n", app.CountDiagnostics(answer.Diagnostics))
		app.WriteDiagnostics(host.Err, answer.Diagnostics, host.ErrStyles())
	}
}
