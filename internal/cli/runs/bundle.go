package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"

	"github.com/guideway-dev/guideway/internal/run"
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
		Use:   "export {RUN|--salvage DIR}",
		Short: "Export a run, or the data of a damaged store",
		Long: `Export a run as one JSON document with all its events and its definition.
"guideway runs import" imports the run on this or another computer.

With --salvage, recover all readable data of a damaged store into a directory: a bundle
for each run, up to the first event that is lost or altered, and the session documents.
The store is not changed.`,
		Example: `  guideway runs export r_06bmyb2ad4ft47c6abwmtxs --output run.json
  guideway runs export r_06bmyb2ad4ft47c6abwmtxs | ssh other guideway runs import -
  guideway runs export --salvage rescued`,
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
		Use:   "import FILE",
		Short: "Import a run or a state document",
		Long: `Import a run that was exported by "guideway runs export". You become the owner of the run,
and it gets a new id. Its events must be valid for its definition, and human approvals must
be given again. FILE is the bundle, or - for standard input.

FILE may also be a state document of a phase workflow, in JSON or YAML, as described by
"guideway schema phases --kind state". A new run of the served workflow starts at the
position in the document; completed work is taken from the document unchecked. If the
workflow has gates that require human approval, the command asks for your passphrase.`,
		Example: `  guideway runs import run.json
  guideway runs show r_06bmyb2ad4ft47c6abwmtxs --state | ssh other guideway runs import -`,
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
