package hooks

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
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
		Use:  "list",
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

// hooksStateOptions is the command line of guideway hooks state list and clear.
type hooksStateOptions struct {
	app     *app.App
	ID, For string
	JSON    bool
}

func newHooksStateCmd(a *app.App) *cobra.Command {
	list, remove := &hooksStateOptions{app: a}, &hooksStateOptions{app: a}
	listCmd := &cobra.Command{
		Use:  "list [ID]",
		Args: app.RangeArgs(0, 1, "at most the id of a hook graph", "guideway hooks state list quota"),
		RunE: app.RunWithArg(runHooksStateList, list, &list.ID),
	}
	app.AddJSONFlag(listCmd, &list.JSON)
	clearCmd := &cobra.Command{
		Use:  "clear ID",
		Args: app.ExactArgs(1, "the id of a hook graph", "guideway hooks state clear quota"),
		RunE: app.RunWithArg(runHooksStateClear, remove, &remove.ID),
	}
	app.AddChangeFlag(clearCmd, &remove.JSON)
	for cmd, o := range map[*cobra.Command]*hooksStateOptions{listCmd: list, clearCmd: remove} {
		cmd.ValidArgsFunction = completeHooks(a)
		cmd.Flags().StringVar(&o.For, "for", "", "select only the values of the user, client or upstream `NAME`")
	}
	return app.NewGroupCmd(&cobra.Command{Use: "state"}, listCmd, clearCmd)
}

// hookValue is a value of a hook graph.
type hookValue struct {
	ref   hookstate.Ref
	Graph string `json:"graph"`
	Scope string `json:"scope"`
	// For are the user with the token and the client, or the upstream, to which the value
	// belongs.
	For     []string        `json:"for"`
	Key     string          `json:"key"`
	Value   json.RawMessage `json:"value"`
	Expires time.Time       `json:"expires,omitzero"`
}

// withValues opens the store and passes the selected values to do.
func (o *hooksStateOptions) withValues(ctx context.Context, do func(*app.Opened, []hookValue) error) error {
	return o.app.WithStore(ctx, func(ctx context.Context, s *app.Opened, _ guideway.Principal) error {
		items, err := s.HookStates(ctx, o.ID, o.app.Host.CurrentTime())
		if err != nil {
			return err
		}
		values := []hookValue{}
		for _, i := range items {
			if scope := i.ScopeParts(); o.For == "" || slices.Contains(scope[1:], o.For) {
				values = append(values, hookValue{i.Ref, i.Graph, scope[0], scope[1:], i.Key, i.Value, i.Expires})
			}
		}
		return do(s, values)
	})
}

func runHooksStateList(ctx context.Context, o *hooksStateOptions) error {
	return o.withValues(ctx, func(_ *app.Opened, values []hookValue) error {
		return app.WriteList(o.app.Host, o.JSON, app.Listing[hookValue]{
			Items: values, Answer: values, Empty: "No values of hook graphs found.",
			Table: app.NewTable(3, "GRAPH", "SCOPE", "FOR", "KEY", "VALUE", "EXPIRES"),
			Row: func(v hookValue) []string {
				value, expires := string(v.Value), ""
				if len(value) > 40 { // such as a stored result
					value = fmt.Sprintf("%d bytes", len(value))
				}
				if !v.Expires.IsZero() {
					expires = v.Expires.Local().Format("2006-01-02 15:04")
				}
				return []string{v.Graph, v.Scope, app.OneLine(strings.Join(v.For, " ")), app.OneLine(v.Key), app.OneLine(value), expires}
			},
		})
	})
}

func runHooksStateClear(ctx context.Context, o *hooksStateOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	if err := (&HookDeps{app: o.app}).checkPassphrase(ctx, app.NewApprover(o.app.Host, cfg)); err != nil {
		return err
	}
	return o.withValues(ctx, func(s *app.Opened, values []hookValue) error {
		remove := func(hookstate.Entry) (hookstate.Entry, error) { return hookstate.Entry{}, nil }
		for _, v := range values {
			if err := s.ChangeHookState(ctx, v.ref, o.app.Host.CurrentTime(), remove); err != nil {
				return err
			}
		}
		return o.app.Host.WriteResult(o.JSON, app.ChangeResult{Action: "cleared", Changed: len(values) > 0, Kind: app.KindHookGraph, Name: o.ID},
			fmt.Sprintf("Cleared %s of %s.", app.Plural(len(values), "value", "values"), o.ID))
	})
}
