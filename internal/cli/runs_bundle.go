package cli

import (
	"context"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// runsExportOptions is the command line of guideway runs export.
type runsExportOptions struct {
	app *app
	Run string
	// Output is a file; "" is the standard output.
	Output string
	Force  bool
	// Salvage is the directory for what can be read of a damaged store.
	Salvage string
}

func newRunsExportCmd(a *app, run func(context.Context, *runsExportOptions) error) *cobra.Command {
	o := &runsExportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "export {RUN|--salvage DIR}",
		Short: "Write a run as a bundle that can be imported elsewhere",
		Long: `Write a run as one JSON document with all its events and its definition.
"guideway runs import" takes it in on this or another machine.

With --salvage whatever can be read of a damaged store is written into a directory:
a bundle for each run, up to the first event that is lost or not as it was written,
and the session documents. The store is not changed.`,
		Example: `  guideway runs export r_06bmyb2ad4ft47c6abwmtxs --output run.json
  guideway runs export r_06bmyb2ad4ft47c6abwmtxs | ssh other guideway runs import -
  guideway runs export --salvage rescued`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.Salvage != "" {
				return noArgs(cmd, args)
			}
			return oneRun("export")(cmd, args)
		},
		ValidArgsFunction: a.completeRuns(anyRun),
		RunE:              runWithArg(run, o, &o.Run),
	}
	cmd.Flags().StringVarP(&o.Output, "output", "o", "", "write to this `file` instead of the standard output")
	cmd.Flags().BoolVar(&o.Force, "force", false, "replace the file if it is there")
	cmd.Flags().StringVar(&o.Salvage, "salvage", "", "write what can be read of a damaged store into this `directory`")
	return cmd
}

func runRunsExport(ctx context.Context, o *runsExportOptions) error {
	if o.Salvage != "" {
		return o.salvage(ctx)
	}
	return o.app.withRuns(ctx, func(ctx context.Context, d *runDesk) error {
		bundle, err := d.runs.Export(ctx, d.caller, refOf(o.Run))
		if err != nil {
			return forPerson(err)
		}
		return o.app.host.writeBundle(o.Output, bundle, o.Force, "guideway runs import")
	})
}

// runsImportOptions is the command line of guideway runs import.
type runsImportOptions struct {
	app  *app
	File string
	JSON bool
}

func newRunsImportCmd(a *app, run func(context.Context, *runsImportOptions) error) *cobra.Command {
	o := &runsImportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take in a run that was exported, or go on where a state says",
		Long: `Take in a run that "guideway runs export" has written. It becomes a run of yours
with an id of its own; its events are checked as if they happened now. FILE is the
bundle, or - for the standard input.

FILE may also be a state document of a phase workflow, in JSON or YAML, of this or
another program: what "guideway schema phases --kind state" describes. A run of the
workflow that is served now begins where the document says; what it says was done is
believed. Where the workflow has gates that only a person opens, it asks for your passphrase.`,
		Example: `  guideway runs import run.json
  guideway runs show r_06bmyb2ad4ft47c6abwmtxs --state | ssh other guideway runs import -`,
		Args: exactly(1, "one bundle or state document", "guideway runs import run.json"),
		RunE: runWithArg(run, o, &o.File),
	}
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsImport(ctx context.Context, o *runsImportOptions) error {
	bundle, err := o.app.host.readInput(ctx, o.File, run.MaxBundle)
	if err != nil {
		return err
	}
	state, err := o.app.host.readState(o.File, bundle)
	if err != nil {
		return err
	}
	if state != nil {
		return o.importState(ctx, state)
	}
	return o.app.changeRun(ctx, "Imported", o.JSON, func(ctx context.Context, d *runDesk) (*run.Answer, error) {
		return d.runs.Import(ctx, d.caller, bundle)
	})
}
