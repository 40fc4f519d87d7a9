package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/audit"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/spf13/cobra"
)

// hooksEnableOptions is the command line of guideway hooks enable.
type hooksEnableOptions struct {
	app *app.App
	ID  string
	// Order is the order of the graph in its chains; nil keeps the graph's own.
	Order *int
	JSON  bool
}

func newHooksEnableCmd(a *app.App, run func(context.Context, *hooksEnableOptions) error) *cobra.Command {
	o, order := &hooksEnableOptions{app: a}, 0
	cmd := &cobra.Command{
		Use:               "enable ID",
		Args:              app.ExactArgs(1, "the id of a hook graph", "guideway hooks enable redact-secrets"),
		ValidArgsFunction: completeHooks(a),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.ID = args[0]
			if cmd.Flags().Changed("order") {
				o.Order = &order
			}
			return run(cmd.Context(), o)
		},
	}
	app.AddChangeFlag(cmd, &o.JSON)
	cmd.Flags().IntVar(&order, "order", 0, "set the order of the graph in its chain, `0..100` (default: the graph's own)")
	return cmd
}

func runHooksEnable(ctx context.Context, o *hooksEnableOptions) error {
	d, err := OpenHooks(ctx, o.app)
	if err != nil {
		return err
	}
	e, err := d.Snapshot.Hook(o.ID)
	if err != nil {
		return err
	}
	who, err := app.LocalUser(d.cfg)
	if err != nil {
		return err
	}
	candidate := hookadmin.Candidate(e)
	record, err := candidate.Approval(who, o.Order)
	if err != nil {
		return err
	}
	if err := d.checkScripts(ctx, e); err != nil {
		return err
	}
	if err := d.confirmApproval(ctx, e, o.JSON); err != nil {
		return err
	}
	if err := o.app.PutApproval(ctx, d.cfg, record); err != nil {
		return err
	}
	order := e.Graph.Order
	if o.Order != nil {
		order = *o.Order
	}
	return o.app.Host.WriteResult(o.JSON, app.ChangeResult{
		Action: "enabled", Changed: d.graphState(e) != hookengine.StateActive || order != hookadmin.OrderOf(d.Active.Set, e.Graph), Kind: app.KindHookGraph, Name: e.ID,
	}, fmt.Sprintf("Enabled %s: it wraps %s, for %s, with the order %d.", e.ID, typesText(e.Graph), app.OneLine(bindingText(e.Graph.Bindings)), order))
}

// checkScripts refuses a graph with a script that does not compile.
func (d *HookDeps) checkScripts(ctx context.Context, e *catalog.HookEntry) error {
	return WithPool(ctx, func(pool *sandbox.Pool) error {
		found, err := runner.Check(ctx, pool, e.Linked)
		if err != nil {
			return err
		}
		if len(found) > 0 {
			app.WriteDiagnostics(d.app.Host.Err, found, d.app.Host.ErrStyles())
			return guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s has an invalid script (%s)", e.ID, app.Plural(len(found), "error", "errors")).
				WithFix("guideway hooks validate %s", e.ID)
		}
		return nil
	})
}

// confirmApproval asks for the passphrase if one is set. For a graph of a source that is
// not trusted, it first requires a terminal and shows the graph, and then also asks for its
// id. If onErr is set, standard output is reserved for the answer and the graph is shown on
// standard error.
func (d *HookDeps) confirmApproval(ctx context.Context, e *catalog.HookEntry, onErr bool) error {
	person := app.NewApprover(d.app.Host, d.cfg)
	if e.Own() {
		return d.checkPassphrase(ctx, person)
	}
	if err := d.app.Host.RequireTerminal(); err != nil {
		return app.UsageError{Err: err}
	}
	show := &HooksShowOptions{App: d.app, Scripts: true}
	if onErr {
		host := *d.app.Host
		host.Out, host.OutTerminal = host.Err, host.ErrTerminal
		beside := *d.app
		beside.Host = &host
		show.App = &beside
	}
	if err := show.Show(d, e); err != nil {
		return err
	}
	fmt.Fprintf(person.Out, "\nThis graph is from %s. Its scripts see the content of the requests that it wraps.\n", app.OneLine(e.Source.Key()))
	return person.ConfirmName(ctx, "graph", "id", e.ID)
}

// checkPassphrase asks for the passphrase if one is set: an agent must not disable or
// replace a guard of the user.
func (d *HookDeps) checkPassphrase(ctx context.Context, person *app.Approver) error {
	isSet, err := person.Passphrase.IsSet()
	if err != nil || !isSet {
		return err
	}
	if err := d.app.Host.RequireTerminal(); err != nil {
		return app.UsageError{Err: err}
	}
	return person.CheckPassphrase(ctx)
}

// disableGraph removes the approvals of a graph for the sources of the catalog; ok reports
// whether there was one.
func (d *HookDeps) disableGraph(ctx context.Context, store *approval.Store, id string) (ok bool, err error) {
	present := func(r approval.Record) bool {
		return slices.ContainsFunc(d.Snapshot.Sources(), func(s catalog.SourceStatus) bool { return s.Key() == r.Source })
	}
	for _, r := range d.Records.Of(approval.KindHookGraph) {
		if r.Subject != id || !present(r) {
			continue
		}
		removed, err := store.Remove(ctx, r.Key())
		if err != nil {
			return ok, err
		}
		ok = ok || removed
	}
	return ok, nil
}

func newHooksDisableCmd(a *app.App) *cobra.Command {
	return app.NewChangeCmd(a, runHooksDisable, &cobra.Command{
		Use:               "disable ID",
		Args:              app.ExactArgs(1, "the id of a hook graph", "guideway hooks disable redact-secrets"),
		ValidArgsFunction: completeHooks(a),
	})
}

func runHooksDisable(ctx context.Context, o *app.NameOptions) error {
	d, err := OpenHooks(ctx, o.App)
	if err != nil {
		return err
	}
	notEnabled := guideway.Errorf(guideway.CodeNotFound, "the hook graph %s is not enabled", o.Name).WithFix("guideway hooks list --active")
	if len(d.Records) == 0 {
		return notEnabled
	}
	person := app.NewApprover(o.App.Host, d.cfg)
	if err := d.checkPassphrase(ctx, person); err != nil {
		return err
	}
	store, err := app.OpenApprovals(d.cfg, o.App.Host.CurrentTime)
	if err != nil {
		return err
	}
	ok, err := d.disableGraph(ctx, store, o.Name)
	if err != nil {
		return err
	}
	if !ok {
		return notEnabled
	}
	o.App.RecordCommand(ctx, d.cfg, audit.Configuration, "hook graph "+o.Name, "disabled")
	return o.App.Host.WriteResult(o.JSON, app.ChangeResult{Action: "disabled", Changed: true, Kind: app.KindHookGraph, Name: o.Name}, "Disabled "+o.Name+".")
}
