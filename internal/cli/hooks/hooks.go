// Package hooks implements the commands for hook graphs.
package hooks

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

func NewHooksCmd(a *app.App) *cobra.Command {
	return app.NewGroupCmd(&cobra.Command{Use: "hooks"},
		newHooksListCmd(a, runHooksList), newHooksShowCmd(a, runHooksShow), newHooksValidateCmd(a, runHooksValidate),
		newHooksTestCmd(a, runHooksTest), newHooksEnableCmd(a, runHooksEnable), newHooksDisableCmd(a), newHooksStateCmd(a),
		newHooksImportCmd(a, RunHooksImport), newHooksExportCmd(a), newHooksTypesCmd(a),
	)
}

// HookDeps are the dependencies of the commands of hooks.
type HookDeps struct {
	app *app.App
	cfg *config.Config
	*hookadmin.State
}

// OpenHooks loads all graphs and approvals.
func OpenHooks(ctx context.Context, a *app.App) (*HookDeps, error) {
	cfg, cat, err := a.LoadCatalog(ctx)
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	approvals, err := app.ReadApprovals(cfg, a.Host.CurrentTime)
	if err != nil {
		return nil, err
	}
	return &HookDeps{app: a, cfg: cfg, State: hookadmin.NewState(cat.Snapshot(), approvals)}, nil
}

// graphState returns the state of a graph.
func (d *HookDeps) graphState(e *catalog.HookEntry) hookengine.State {
	c := hookadmin.Candidate(e)
	return d.Active.States[c.Key()]
}

// Find returns a graph by its id or file, linked with the modules in the folder next to the
// file and the modules of the library. If the file does not load, Find prints its
// diagnostics and returns an error.
func (d *HookDeps) Find(ctx context.Context, name string) (*catalog.HookEntry, error) {
	if !app.IsPath(name) {
		return d.Snapshot.HookOf(name)
	}
	data, err := d.app.Host.ReadDefinition(ctx, name)
	if err != nil {
		return nil, err
	}
	file := app.DisplayName(name)
	e, found := d.readGraph(ctx, file, name, data)
	if e == nil {
		app.WriteDiagnostics(d.app.Host.Err, found, d.app.Host.ErrStyles())
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "%s is invalid (%s)", file, app.Plural(len(found), "error", "errors")).
			WithFix("guideway hooks validate %s", name)
	}
	return e, nil
}

// loadHook returns the dependencies and a graph that loads, or an error.
func loadHook(ctx context.Context, a *app.App, name string) (*HookDeps, *catalog.HookEntry, error) {
	d, err := OpenHooks(ctx, a)
	if err != nil {
		return nil, nil, err
	}
	e, err := d.Find(ctx, name)
	if err == nil && e.Linked == nil {
		err = guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s does not load: %s", e.ID, e.Problem).
			WithFix("guideway hooks validate %s", name)
	}
	return d, e, err
}

// readGraph parses the graph in a file; the entry is nil if it does not load or link.
func (d *HookDeps) readGraph(ctx context.Context, file, path string, data []byte) (*catalog.HookEntry, []guideway.Diagnostic) {
	document, found := workflow.ParseAs(file, data, workflow.As{Dialect: guideway.DialectHooks, Kind: phases.Kind(hookdef.KindGraph)})
	if document == nil {
		return nil, found
	}
	linked, found := hookdef.Link(document.Graph, d.loadLibrary(ctx, path))
	if linked == nil {
		return nil, found
	}
	return &catalog.HookEntry{ID: linked.ID, Graph: linked.Graph, Linked: linked, Path: file, Source: catalog.SourceInfo{Name: "file", Trust: catalog.TrustUser}}, nil
}

// loadLibrary returns the modules for a graph in a file: those in the folder "modules" next
// to it, then those of trusted sources.
func (d *HookDeps) loadLibrary(ctx context.Context, path string) hookdef.Library {
	var modules []hookdef.Module
	if path != "-" {
		dir := filepath.Join(filepath.Dir(d.app.Host.Abs(path)), "modules")
		entries, _ := os.ReadDir(dir) // without the folder there are no modules
		for _, entry := range entries {
			place := hookdef.PlaceOf("hooks/modules/" + entry.Name())
			if place.Kind == "" || !entry.Type().IsRegular() {
				continue
			}
			file := filepath.Join(dir, entry.Name())
			data, err := d.app.Host.ReadDefinition(ctx, file)
			if err != nil {
				continue
			}
			if place.Plain {
				modules = append(modules, *hookdef.PlainModule(place, file, data))
			} else if m, _ := workflow.ParseAs(file, data, workflow.As{Dialect: guideway.DialectHooks, Kind: phases.Kind(hookdef.KindModule)}); m != nil {
				modules = append(modules, *m.Module)
			}
		}
	}
	for _, m := range slices.Backward(d.Snapshot.HookModules()) {
		if m.Source.Own() {
			modules = append(modules, m.Module)
		}
	}
	return hookdef.NewLibrary(modules)
}

// WithPool calls do with a pool of script workers and closes the pool afterwards.
func WithPool(ctx context.Context, do func(*sandbox.Pool) error) error {
	pool, err := sandbox.NewPool(sandbox.Options{Workers: 1})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), app.ServerProbeTimeout)
		defer cancel()
		_ = pool.Close(ctx) // the remaining workers end with this process
	}()
	return do(pool)
}

// completeHooks completes graph ids, and files.
func completeHooks(a *app.App) cobra.CompletionFunc {
	return app.CompleteNames(1, app.NamesOrFiles, func(ctx context.Context) (ids []string, err error) {
		d, err := OpenHooks(ctx, a)
		if err != nil {
			return nil, err
		}
		for _, e := range d.Snapshot.Hooks() {
			about := ""
			if e.Graph != nil {
				about = "\t" + app.OneLine(e.Graph.Name)
			}
			ids = append(ids, e.ID+about)
		}
		return ids, nil
	})
}

// typesText returns the request types that a graph wraps as text.
func typesText(g *hookdef.Graph) string {
	words := []string{string(g.Type)}
	for _, t := range g.Also {
		words = append(words, string(t))
	}
	return strings.Join(words, ", ")
}

// bindingText returns bindings as text.
func bindingText(bindings []hookdef.Binding) string {
	var words []string
	for _, b := range bindings {
		switch {
		case b.Upstream == "" && b.Tool == "":
			words = append(words, allUpstreams)
		case b.Tool == "":
			words = append(words, b.Upstream)
		case b.Upstream == "":
			words = append(words, "*:"+b.Tool)
		default:
			words = append(words, b.Upstream+":"+b.Tool)
		}
	}
	return cmp.Or(strings.Join(words, ", "), allUpstreams)
}

// allUpstreams describes a binding without a pattern.
const allUpstreams = "all upstreams"

func newHooksTypesCmd(a *app.App) *cobra.Command {
	return &cobra.Command{
		Use:  "types",
		Args: app.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Host.Out.Write([]byte(sandbox.Types()))
			return err
		},
	}
}
