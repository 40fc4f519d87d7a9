package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
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
	Graphs  []hookRow         `json:"graphs"`
	Chains  []hookadmin.Chain `json:"chains"`
	Modules []hookModule      `json:"modules"`
	// Missing are enabled graphs that no source has.
	Missing     []hookMissing         `json:"missing,omitempty"`
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// hookRow is one graph.
type hookRow struct {
	ID          string               `json:"id"`
	Name        string               `json:"name,omitempty"`
	Description string               `json:"description,omitempty"`
	Version     string               `json:"version,omitempty"`
	Type        hookdef.Type         `json:"type,omitempty"`
	Also        []hookdef.Type       `json:"also,omitempty"`
	Order       int                  `json:"order"`
	Bindings    []hookdef.Binding    `json:"bindings,omitempty"`
	State       hookengine.State     `json:"state"`
	Problem     string               `json:"error,omitempty"`
	Source      string               `json:"source"`
	Path        string               `json:"path"`
	Revision    string               `json:"revision,omitempty"`
	Pin         string               `json:"pin,omitempty"`
	Stale       bool                 `json:"stale,omitempty"`
	Overrides   []catalog.Overridden `json:"overrides,omitempty"`
}

// hookModule is one module.
type hookModule struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Source string `json:"source"`
	Path   string `json:"path"`
}

// hookMissing is an enabled graph that no source has.
type hookMissing struct {
	ID     string `json:"id"`
	Source string `json:"source"`
}

func (d *HookDeps) newRow(e *catalog.HookEntry) hookRow {
	row := hookRow{
		ID: e.ID, State: d.graphState(e), Problem: e.Problem, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale, Overrides: e.Overrides,
	}
	if g := e.Graph; g != nil {
		row.Name, row.Description, row.Version, row.Type, row.Bindings = g.Name, g.Description, g.Version, g.Type, g.Bindings
		row.Also, row.Order = g.Also, hookadmin.OrderOf(d.active.Set, g)
	}
	if e.Linked != nil {
		row.Pin = e.Linked.Pin
	}
	return row
}

func runHooksList(ctx context.Context, o *hooksListOptions) error {
	d, err := OpenHooks(ctx, o.app)
	if err != nil {
		return err
	}
	answer := hooksListAnswer{Graphs: []hookRow{}, Chains: hookadmin.Chains(d.active.Set), Modules: []hookModule{}, Diagnostics: []guideway.Diagnostic{}}
	for _, e := range d.Snapshot.Hooks() {
		row := d.newRow(e)
		enabled := row.State == hookengine.StateActive || d.isEnabled(e)
		if o.Active && !enabled || o.Templates && row.State != hookengine.StateTemplate {
			continue
		}
		answer.Graphs = append(answer.Graphs, row)
	}
	for _, m := range d.Snapshot.HookModules() {
		answer.Modules = append(answer.Modules, hookModule{ID: m.ID, Name: m.Name, Source: m.Source.Name, Path: m.Path})
	}
	for _, r := range d.active.Missing {
		answer.Missing = append(answer.Missing, hookMissing{ID: r.Subject, Source: r.Source})
	}
	for _, finding := range d.Snapshot.Diagnostics() {
		if slices.ContainsFunc(d.Snapshot.Hooks(), func(e *catalog.HookEntry) bool { return e.Path == finding.File }) {
			answer.Diagnostics = append(answer.Diagnostics, finding)
		}
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

// isEnabled reports whether any version of a graph was approved.
func (d *HookDeps) isEnabled(e *catalog.HookEntry) bool {
	c := hookadmin.Candidate(e)
	return d.approvals.Find(c.Key()) != nil
}

func (o *hooksListOptions) writeText(d *HookDeps, answer hooksListAnswer) {
	host := o.app.Host
	s := host.OutStyles()
	switch {
	case o.Modules:
		app.WriteRows(host, app.NewTable(2, "MODULE", "SOURCE", "FILE"), answer.Modules, func(m hookModule) []string { return []string{m.ID, m.Source, m.Path} })
	case len(answer.Graphs) > 0:
		app.WriteRows(host, app.NewTable(5, "ID", "TYPE", "STATE", "SOURCE", "FOR", "NAME"), answer.Graphs, func(row hookRow) []string {
			e, err := d.Snapshot.Hook(row.ID)
			if err != nil || e.Graph == nil {
				return []string{row.ID, "", string(row.State), row.Source, "", app.OneLine(row.Problem)}
			}
			return []string{row.ID, string(row.Type), string(row.State), row.Source, app.OneLine(bindingText(e.Graph.Bindings)), app.OneLine(row.Name + ": " + row.Description)}
		})
	default:
		fmt.Fprintln(host.Err, "No hook graphs found.")
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
