package runs

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/spf13/cobra"
)

// RunsExportOptions is the command line of guideway runs export.
type RunsExportOptions struct {
	app *app.App
	Run string
	// Output is a file; "" is standard output.
	Output string
	Force  bool
	// Salvage is the directory for the recovered data of a damaged store.
	Salvage string
}

func NewRunsExportCmd(a *app.App, run func(context.Context, *RunsExportOptions) error) *cobra.Command {
	o := &RunsExportOptions{app: a}
	cmd := &cobra.Command{
		Use: "export {RUN|--salvage DIR}",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.Salvage != "" {
				return app.NoArgs(cmd, args)
			}
			return exactlyOneRun("export")(cmd, args)
		},
		ValidArgsFunction: completeRuns(a, anyRun),
		RunE:              app.RunWithArg(run, o, &o.Run),
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "write to this `file` instead of standard output")
	cmd.Flags().BoolVar(&o.Force, "force", false, "overwrite an existing file")
	cmd.Flags().StringVar(&o.Salvage, "salvage", "", "recover the readable data of a damaged store into this `directory`")
	return cmd
}

func runRunsExport(ctx context.Context, o *RunsExportOptions) error {
	if o.Salvage != "" {
		return o.salvageStore(ctx)
	}
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		bundle, err := d.Runs.Export(ctx, d.Caller, parseRunRef(o.Run))
		if err != nil {
			return userError(err)
		}
		return o.app.Host.WriteBundle(o.Output, bundle, o.Force, "guideway runs import")
	})
}

// RunsImportOptions is the command line of guideway runs import.
type RunsImportOptions struct {
	app  *app.App
	File string
	JSON bool
}

func NewRunsImportCmd(a *app.App, run func(context.Context, *RunsImportOptions) error) *cobra.Command {
	o := &RunsImportOptions{app: a}
	cmd := &cobra.Command{
		Use:  "import FILE",
		Args: app.ExactArgs(1, "one bundle or state document", "guideway runs import run.json"),
		RunE: app.RunWithArg(run, o, &o.File),
	}
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsImport(ctx context.Context, o *RunsImportOptions) error {
	bundle, err := o.app.Host.ReadInput(ctx, o.File, run.MaxBundle)
	if err != nil {
		return err
	}
	state, err := readState(o.app.Host, o.File, bundle)
	if err != nil {
		return err
	}
	if state != nil {
		return o.importState(ctx, state)
	}
	return changeRun(ctx, o.app, "Imported", o.JSON, func(ctx context.Context, d *app.RunDeps) (*run.Answer, error) {
		return d.Runs.Import(ctx, d.Caller, bundle)
	})
}

// readState returns a state document as JSON, or nil if the data does not have the members
// of a state document. Errors of the document are printed on standard error.
func readState(h *app.Host, name string, data []byte) ([]byte, error) {
	var bundle struct {
		Format string `json:"format"`
	}
	if json.Unmarshal(data, &bundle) == nil && bundle.Format != "" {
		return nil, nil
	}
	file := app.DisplayName(name)
	root, found := doc.Parse(file, data, doc.Limits{MaxBytes: run.MaxBundle})
	if root == nil || root.Kind != doc.Object || phases.Guess(root) != phases.KindState {
		return nil, nil // reported by the bundle reader
	}
	state, more := phases.ParseState(file, root)
	if found = append(found, more...); len(found) > 0 {
		app.WriteDiagnostics(h.Err, found, h.ErrStyles())
		return nil, guideway.Errorf(guideway.CodeInvalid, "the state document %s is invalid (%s)", file, app.Plural(len(found), "error", "errors")).
			WithFix("guideway validate --dialect phases --kind state %s", name)
	}
	return []byte(state.Canonical), nil
}

// importState starts a run at the position in a state document.
func (o *RunsImportOptions) importState(ctx context.Context, state []byte) error {
	_, cat, err := o.app.LoadCatalog(ctx)
	if err != nil {
		return err
	}
	defer cat.Close()
	return o.app.WithRunsAndDefinitions(ctx, app.StartableDefinitions{Catalog: cat}, func(ctx context.Context, d *app.RunDeps) error {
		answer, err := d.Runs.ImportState(ctx, d.Caller, state, d.Project)
		if refusal, ok := run.AsRefusal(err); ok && refusal.Rule == engine.RulePerson {
			// The document may contain answers to gates that require human approval.
			var person run.Caller
			if person, err = confirmPerson(ctx, o.app, d.Caller, err); err == nil {
				answer, err = d.Runs.ImportState(ctx, person, state, d.Project)
			}
		}
		if err != nil {
			return userError(err)
		}
		if err := o.warnOfVersion(ctx, d, state, answer.RunID); err != nil {
			return err
		}
		return writeAnswer(o.app, answer, "Imported", o.JSON)
	})
}

// warnOfVersion prints a warning if the document is for a different version of the workflow
// than the run.
func (o *RunsImportOptions) warnOfVersion(ctx context.Context, d *app.RunDeps, state []byte, id string) error {
	var of struct {
		Version string `json:"workflowVersion"`
	}
	if err := json.Unmarshal(state, &of); err != nil {
		return fmt.Errorf("read the version in the state document: %w", err)
	}
	begun, err := d.Runs.Get(ctx, d.Caller, run.Ref{RunID: id})
	if err != nil {
		return userError(err)
	}
	if begun.Version != of.Version {
		fmt.Fprintf(o.app.Host.Err, "warning: the state document is for version %s of %q, but the run uses version %s, which is served now; check the position of the run\n",
			of.Version, begun.Workflow, begun.Version)
	}
	return nil
}

// confirmPerson asks for the passphrase and returns the caller as a person. Without a
// terminal, it returns refused.
func confirmPerson(ctx context.Context, a *app.App, c run.Caller, refused error) (run.Caller, error) {
	if a.Host.RequireTerminal() != nil {
		return c, refused
	}
	cfg, err := a.Load()
	if err != nil {
		return c, err
	}
	person := app.NewApprover(a.Host, cfg)
	if err := person.Passphrase.CheckUsable(); err != nil {
		return c, err
	}
	c.Via = run.ViaTerminal
	return c, person.CheckPassphrase(ctx)
}
