package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointExportOptions is the command line of guideway checkpoint export.
type checkpointExportOptions struct {
	app     *app.App
	ID      string
	Session string
	// Output is a file; "" is the standard output.
	Output string
	Force  bool
}

func newCheckpointExportCmd(a *app.App, run func(context.Context, *checkpointExportOptions) error) *cobra.Command {
	o := &checkpointExportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "export {CHECKPOINT|--session SESSION}",
		Short: "Write checkpoints as a bundle that can be read and imported elsewhere",
		Long: `Write a checkpoint, or all of a session, as one JSON document, for people and other
programs too. It is not encrypted, also where the checkpoints are. "guideway checkpoint
import" takes it in on this or another machine.`,
		Example: `  guideway checkpoint export --session login-work --output login-work.json
  guideway checkpoint export c_0dx3k2v9q8f7m5n4p1r6t0w | ssh other guideway checkpoint import -`,
		Args:              byIDOrSession("export", &o.Session),
		ValidArgsFunction: completeCheckpoints(a, 1),
		RunE:              app.RunWithArg(run, o, &o.ID),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "all of the session, or the run, with this `id`")
	f.StringVarP(&o.Output, "output", "o", "", "write to this `file` instead of the standard output")
	f.BoolVar(&o.Force, "force", false, "replace the file if it is there")
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	return cmd
}

func runCheckpointExport(ctx context.Context, o *checkpointExportOptions) error {
	host := o.app.Host
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		bundle, err := d.Checkpoints.Export(ctx, d.User, checkpoint.ExportRequest{ID: o.ID, Session: o.Session})
		if err != nil {
			return notThere(ctx, d, "export", o.ID, err)
		}
		host.WriteCheckpointWarnings(d.Checkpoints.Store(), nil)
		return host.WriteBundle(o.Output, bundle, o.Force, "guideway checkpoint import")
	})
}

// checkpointImportOptions is the command line of guideway checkpoint import.
type checkpointImportOptions struct {
	app     *app.App
	File    string
	Session string
	JSON    bool
}

func newCheckpointImportCmd(a *app.App, run func(context.Context, *checkpointImportOptions) error) *cobra.Command {
	o := &checkpointImportOptions{app: a}
	cmd := &cobra.Command{
		Use:   "import FILE",
		Short: "Take in checkpoints that were exported",
		Long: `Take in the checkpoints of a bundle, as yours. Those that are there already are passed
over. They go to the sessions that they came from, which must have no others, or with
--session to another one. FILE is the bundle, or - for the standard input.`,
		Example: `  guideway checkpoint import login-work.json
  guideway checkpoint import login-work.json --session login-work-copy`,
		Args: app.ExactArgs(1, "one bundle", "guideway checkpoint import login-work.json"),
		RunE: app.RunWithArg(run, o, &o.File),
	}
	cmd.Flags().StringVar(&o.Session, "session", "", "the `id` of the session that they go to")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// maxCheckpointBundle bounds a bundle: it is read whole.
const maxCheckpointBundle = 1 << 30

func runCheckpointImport(ctx context.Context, o *checkpointImportOptions) error {
	host := o.app.Host
	bundle, err := host.ReadInput(ctx, o.File, maxCheckpointBundle)
	if err != nil {
		return err
	}
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		if err := d.RequirePersistence(); err != nil {
			return err
		}
		imported, err := d.Checkpoints.Import(ctx, d.User, checkpoint.ImportRequest{Data: bundle, Session: o.Session})
		if err != nil {
			return atCommandLine(err)
		}
		host.WriteCheckpointWarnings(imported.Store, nil)
		if o.JSON {
			return app.WriteJSON(host.Out, imported)
		}
		text := "Imported: " + app.Plural(len(imported.Checkpoints), "checkpoint", "checkpoints")
		if imported.Skipped > 0 {
			text += fmt.Sprintf("; %d were there already", imported.Skipped)
		}
		fmt.Fprintln(host.Out, text)
		for _, session := range imported.Sessions {
			fmt.Fprintf(host.Out, "Session: %s\n", session)
		}
		return nil
	})
}
