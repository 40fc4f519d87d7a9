package hooks

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	hookdef "github.com/guideway-dev/guideway/internal/hooks/definition"
	"github.com/guideway-dev/guideway/internal/hooks/runner"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

// hooksValidateOptions is the command line of guideway hooks validate.
type hooksValidateOptions struct {
	app    *app.App
	Names  []string
	Strict bool
	JSON   bool
}

func newHooksValidateCmd(a *app.App, run func(context.Context, *hooksValidateOptions) error) *cobra.Command {
	o := &hooksValidateOptions{app: a}
	cmd := &cobra.Command{
		Use:               "validate [ID|FILE]...",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeHooks(a),
		RunE:              app.RunWithArgs(run, o, &o.Names),
	}
	cmd.Flags().BoolVar(&o.Strict, "strict", false, "treat warnings as errors")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runHooksValidate(ctx context.Context, o *hooksValidateOptions) error {
	d, err := OpenHooks(ctx, o.app)
	if err != nil {
		return err
	}
	if len(o.Names) == 0 {
		for _, e := range d.Snapshot.Hooks() {
			o.Names = append(o.Names, e.ID)
		}
	}
	answer := app.ValidateAnswer{Files: []app.ValidateFile{}}
	err = WithPool(ctx, func(pool *sandbox.Pool) error {
		for _, name := range o.Names {
			file, err := d.validateGraph(ctx, pool, name)
			if err != nil {
				return err
			}
			answer.Add(file)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return answer.Finish(o.app.Host, o.Strict, o.JSON)
}

// validateGraph checks a graph by its id or file. If the graph is not found or cannot be
// read, the result has the reason in Error.
func (d *HookDeps) validateGraph(ctx context.Context, pool *sandbox.Pool, name string) (app.ValidateFile, error) {
	if app.IsPath(name) {
		return d.validateFile(ctx, pool, name)
	}
	file := app.ValidateFile{File: name, Diagnostics: []guideway.Diagnostic{}, Dialect: guideway.DialectHooks, Kind: phases.Kind(hookdef.KindGraph)}
	e, err := d.Snapshot.HookOf(name)
	if err != nil {
		file.Error = err.Error()
		return file, nil
	}
	file.File, file.ID = e.Path, e.ID
	for _, finding := range d.Snapshot.Diagnostics() {
		if finding.File == e.Path {
			file.Diagnostics = append(file.Diagnostics, finding)
		}
	}
	file.Diagnostics = append(file.Diagnostics, e.Lint()...)
	return d.validateScripts(ctx, pool, file, e)
}

func (d *HookDeps) validateFile(ctx context.Context, pool *sandbox.Pool, name string) (app.ValidateFile, error) {
	file := app.ValidateFile{File: name, Diagnostics: []guideway.Diagnostic{}}
	data, err := d.app.Host.ReadDefinition(ctx, name)
	if err != nil {
		file.Error = err.Error()
		return file, nil
	}
	shown := app.DisplayName(name)
	document, found := workflow.CheckAs(shown, data, workflow.As{Dialect: guideway.DialectHooks})
	file.Diagnostics = app.OrEmpty(found)
	if document == nil {
		return file, nil
	}
	file.ID, file.Dialect, file.Kind, file.Hash = document.ID, document.Dialect, document.Kind, document.Hash
	if document.Graph == nil {
		file.Valid = true
		return file, nil
	}
	e, found := d.readGraph(ctx, shown, name, data)
	if e == nil {
		file.Diagnostics = append(file.Diagnostics, found...)
		return file, nil
	}
	return d.validateScripts(ctx, pool, file, e)
}

// validateScripts checks the scripts of a graph that links.
func (d *HookDeps) validateScripts(ctx context.Context, pool *sandbox.Pool, file app.ValidateFile, e *catalog.HookEntry) (app.ValidateFile, error) {
	if e.Linked != nil {
		file.Hash = e.Linked.Pin
		found, err := runner.Check(ctx, pool, e.Linked)
		if err != nil {
			return file, err
		}
		file.Diagnostics = append(file.Diagnostics, found...)
	}
	file.Valid = e.Linked != nil && len(app.FilterErrors(file.Diagnostics)) == 0
	return file, nil
}
