package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookadmin "github.com/guideway-dev/guideway/internal/hooks/admin"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	hookengine "github.com/guideway-dev/guideway/internal/hooks/engine"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

// HooksImportOptions is the command line of guideway hooks import.
type HooksImportOptions struct {
	App *app.App
	// Name is a file, or the id of a graph if Template is set.
	Name     string
	Template bool
	ID       string
	Title    string
	// Upstream and Tool bind the copy; Variables are the initial values of its variables.
	Upstream, Tool string
	Variables      []string
	Force, JSON    bool
}

func newHooksImportCmd(a *app.App, run func(context.Context, *HooksImportOptions) error) *cobra.Command {
	o := &HooksImportOptions{App: a}
	cmd := &cobra.Command{
		Use: "import {FILE|--template ID}",
		Args: func(cmd *cobra.Command, args []string) error {
			if err := app.ExactArgs(1, "a file, or --template and the id of a graph", "guideway hooks import ./graph.json")(cmd, args); err != nil {
				return err
			}
			if o.Template && o.ID == "" {
				return guideway.Errorf(guideway.CodeInvalid, "--template requires --id, the id of the copy").WithFix("guideway hooks import --template %s --id my-%s", args[0], args[0])
			}
			return nil
		},
		ValidArgsFunction: completeHooks(a),
		RunE:              app.RunWithArg(run, o, &o.Name),
	}
	f := cmd.Flags()
	f.BoolVar(&o.Template, "template", false, "treat the argument as the id of an existing graph, and copy that graph")
	f.StringVar(&o.ID, "id", "", "set the `id` of the graph or module")
	f.StringVar(&o.Title, "name", "", "set the `name` of the graph")
	f.StringVar(&o.Upstream, "upstream", "", "bind the graph to upstreams whose names match this `pattern`")
	f.StringVar(&o.Tool, "tool", "", "bind the graph to tools whose names match this `pattern`")
	f.StringArrayVar(&o.Variables, "set", nil, "set the initial value of a variable as `name=value`, a JSON value or plain text; can be repeated")
	f.BoolVar(&o.Force, "force", false, "overwrite an existing file")
	app.AddChangeFlag(cmd, &o.JSON)
	return cmd
}

func RunHooksImport(ctx context.Context, o *HooksImportOptions) error {
	d, err := OpenHooks(ctx, o.App)
	if err != nil {
		return err
	}
	if d.cfg.Workflows.UserDir == "" {
		return guideway.Errorf(guideway.CodeInvalid, "the directory of your workflows is unknown, because the home directory is unknown").WithFix("set the environment variable HOME (USERPROFILE on Windows)")
	}
	if o.Template {
		e, err := d.Snapshot.Hook(o.Name)
		if err != nil {
			return err
		}
		if e.Linked == nil {
			return guideway.Errorf(guideway.CodeInvalidDefinition, "the hook graph %s does not load: %s", e.ID, e.Problem).
				WithFix("guideway hooks validate %s", e.ID)
		}
		return o.importGraph(ctx, d, e.Linked, true)
	}
	data, err := o.App.Host.ReadDefinition(ctx, o.Name)
	if err != nil {
		return err
	}
	file := app.DisplayName(o.Name)
	document, found := workflow.ParseAs(file, data, workflow.As{Dialect: guideway.DialectHooks})
	switch {
	case document != nil && document.Module != nil:
		return o.importModule(d, *document.Module)
	case document != nil:
		e, more := d.readGraph(ctx, file, o.Name, data)
		if e != nil {
			return o.importGraph(ctx, d, e.Linked, o.hasChanges())
		}
		found = more
	}
	app.WriteDiagnostics(o.App.Host.Err, found, o.App.Host.ErrStyles())
	return guideway.Errorf(guideway.CodeInvalidDefinition, "%s is invalid (%s); nothing was imported", file, app.Plural(len(found), "error", "errors")).
		WithFix("guideway hooks validate %s", o.Name)
}

// hasChanges reports whether the options change the graph of the file.
func (o *HooksImportOptions) hasChanges() bool {
	return o.ID != "" || o.Title != "" || o.Upstream != "" || o.Tool != "" || len(o.Variables) > 0
}

// importGraph writes a graph into the directory of the user, unchanged or as a copy with
// different settings.
func (o *HooksImportOptions) importGraph(ctx context.Context, d *HookDeps, linked *hookdef.Linked, asCopy bool) error {
	text, err := linked.Export(false)
	if asCopy {
		text, err = o.copyText(linked)
	}
	if err != nil {
		return err
	}
	// Parse the result: with the new settings the graph may be invalid.
	e, found := d.readGraph(ctx, "the copy", "-", text)
	if e == nil {
		app.WriteDiagnostics(o.App.Host.Err, found, o.App.Host.ErrStyles())
		return guideway.Errorf(guideway.CodeInvalid, "the imported hook graph %q would be invalid; nothing was imported", cmp.Or(o.ID, linked.ID)).
			WithFix("correct the diagnostics above with other values of --id, --name, --upstream, --tool or --set of guideway hooks import")
	}
	if err := d.checkScripts(ctx, e); err != nil {
		return err
	}
	path := filepath.Join(d.cfg.Workflows.UserDir, "hooks", e.ID+".json")
	if err := o.keepVersions(ctx, d, e.ID, path, text); err != nil {
		return err
	}
	if err := o.writeFile(path, text); err != nil {
		return err
	}
	said := fmt.Sprintf("Imported %s to %s.", e.ID, path)
	if d.graphState(e) != hookengine.StateTemplate && !e.Graph.Template {
		said += "\nIt is disabled; to enable it: guideway hooks enable " + e.ID
	}
	return o.App.Host.WriteResult(o.JSON, app.ChangeResult{Action: "imported", Changed: true, Kind: app.KindHookGraph, Name: e.ID, File: path}, said)
}

// keepVersions keeps the file that the import replaces, and the imported text, as versions of
// the graph. Without --force, an import replaces no file.
func (o *HooksImportOptions) keepVersions(ctx context.Context, d *HookDeps, id, path string, text []byte) error {
	if !o.Force {
		return nil
	}
	file, err := safeopen.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var was []byte
	if err == nil {
		was, err = safeopen.Read(ctx, file, maxReplaced)
		if err = errors.Join(err, file.Close()); len(was) > maxReplaced {
			err = fmt.Errorf("the file has more than %d bytes", maxReplaced)
		}
	}
	who, userErr := app.LocalUser(d.cfg)
	if err = errors.Join(err, userErr); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "keep the replaced version of %s: %w; nothing was imported", id, err).WithFix("move the file %s to another directory, and run the command again", path)
	}
	i := slices.IndexFunc(d.Snapshot.Sources(), func(s catalog.SourceStatus) bool { return s.Location == d.cfg.Workflows.UserDir })
	if i < 0 {
		return nil // the source is off, so no version of it can be listed
	}
	return hookadmin.AddImport(app.HookVersionsDir(d.cfg), d.Snapshot.Sources()[i].Key(), id, was, text, who, o.App.Host.CurrentTime)
}

// maxReplaced is the maximum size of a replaced file that is kept.
const maxReplaced = 1 << 20

// copyText returns the text of a copy.
func (o *HooksImportOptions) copyText(linked *hookdef.Linked) ([]byte, error) {
	values, err := parseSet(o.Variables)
	if err != nil {
		return nil, app.UsageError{Err: err}
	}
	c := hookdef.Copy{ID: cmp.Or(o.ID, linked.ID), Name: o.Title, Variables: values}
	if o.Upstream != "" || o.Tool != "" {
		c.Bindings = []hookdef.Binding{{Upstream: o.Upstream, Tool: o.Tool}}
	}
	return linked.Copied(c)
}

// importModule writes a module into the directory of the user.
func (o *HooksImportOptions) importModule(d *HookDeps, m hookdef.Module) error {
	if o.ID != "" {
		m.ID = o.ID
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return guideway.Errorf(guideway.CodeInternal, "write the module %s: %w", m.ID, err)
	}
	if again, found := workflow.ParseAs("the module", text, workflow.As{Dialect: guideway.DialectHooks, Kind: phases.Kind(hookdef.KindModule)}); again == nil {
		app.WriteDiagnostics(o.App.Host.Err, found, o.App.Host.ErrStyles())
		return guideway.Errorf(guideway.CodeInvalid, "the module would be invalid with the id %q; nothing was imported", m.ID).
			WithFix("guideway hooks import %s --id another-id", o.Name)
	}
	path := filepath.Join(d.cfg.Workflows.UserDir, "hooks", "modules", m.ID+".json")
	if err := o.writeFile(path, append(text, '\n')); err != nil {
		return err
	}
	return o.App.Host.WriteResult(o.JSON, app.ChangeResult{Action: "imported", Changed: true, Kind: app.KindHookModule, Name: m.ID, File: path},
		fmt.Sprintf("Imported the module %s to %s.", m.ID, path))
}

// writeFile writes a file. It overwrites an existing one only with --force.
func (o *HooksImportOptions) writeFile(path string, text []byte) error {
	if err := atomicfile.MakeDirMode(filepath.Dir(path), 0o755); err != nil {
		return guideway.Errorf(guideway.CodeUnavailable, "create the hook directory: %w", err).
			WithFix("create the directory %s, and make it writable for this user", filepath.Dir(path))
	}
	err := app.WriteNewFile(path, text, 0o644, o.Force)
	if guideway.ErrorCode(err) == guideway.CodeConflict {
		from := o.Name
		if o.Template {
			from = "--template " + from
		}
		return guideway.Errorf(guideway.CodeConflict, "%w; nothing was imported", err).
			WithFix("guideway hooks import %s --id another-id; or, to replace the file, add --force to guideway hooks import", from)
	}
	return err
}

func newHooksExportCmd(a *app.App) *cobra.Command {
	o := &app.NameOptions{App: a}
	return &cobra.Command{
		Use:               "export {ID|FILE}",
		Args:              app.ExactArgs(1, "a hook graph, by id or file", "guideway hooks export redact-secrets"),
		ValidArgsFunction: completeHooks(a),
		RunE:              app.RunWithArg(runHooksExport, o, &o.Name),
	}
}

func runHooksExport(ctx context.Context, o *app.NameOptions) error {
	d, e, err := loadHook(ctx, o.App, o.Name)
	if err != nil {
		return err
	}
	text, err := e.Linked.Export(d.graphState(e) == hookengine.StateActive)
	if err != nil {
		return err
	}
	_, err = o.App.Host.Out.Write(visible.EscapeJSON(text))
	return err
}
