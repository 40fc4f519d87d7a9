package checkpoint

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/contexts"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// checkpointExportOptions is the command line of guideway checkpoint export.
type checkpointExportOptions struct {
	app     *app.App
	ID      string
	Session string
	// Output is a file; "" is standard output.
	Output string
	Force  bool
}

func newCheckpointExportCmd(a *app.App, run func(context.Context, *checkpointExportOptions) error) *cobra.Command {
	o := &checkpointExportOptions{app: a}
	cmd := &cobra.Command{
		Use:               "export {CHECKPOINT|--session SESSION}",
		Args:              byIDOrSession("export", &o.Session),
		ValidArgsFunction: completeCheckpoints(a, 1),
		RunE:              app.RunWithArg(run, o, &o.ID),
	}
	f := cmd.Flags()
	f.StringVar(&o.Session, "session", "", "export all checkpoints of the session or run with this `id`")
	f.StringVarP(&o.Output, "output", "o", "", "write to this `file` instead of standard output")
	f.BoolVar(&o.Force, "force", false, "overwrite an existing file")
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	return cmd
}

func runCheckpointExport(ctx context.Context, o *checkpointExportOptions) error {
	host := o.app.Host
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		bundle, err := d.Checkpoints.Export(ctx, d.User, checkpoint.ExportRequest{
			ID: o.ID, Session: o.Session,
			Outputs: func(ctx context.Context, id string, seq int64) json.RawMessage {
				list, err := contexts.ListOutputs(ctx, d.Runs, run.Caller{Principal: d.User, Via: run.ViaAgent}, id, 1, seq)
				if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
					host.WriteCheckpointWarnings(checkpoint.Store{}, []checkpoint.Warning{{Message: "the outputs of the run " + id + " are not exported: " + err.Error()}})
				}
				return list
			},
		})
		if err != nil {
			return notFoundError(ctx, d, "export", o.ID, err)
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
		Use:  "import FILE",
		Args: app.ExactArgs(1, "one bundle", "guideway checkpoint import login-work.json"),
		RunE: app.RunWithArg(run, o, &o.File),
	}
	cmd.Flags().StringVar(&o.Session, "session", "", "`id` of the session for all checkpoints (default: the original sessions)")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// maxCheckpointBundle limits the size of a bundle, which is read into memory.
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
			return userError(err)
		}
		host.WriteCheckpointWarnings(imported.Store, nil)
		text := "Imported: " + app.Plural(len(imported.Checkpoints), "checkpoint", "checkpoints")
		if imported.Skipped > 0 {
			text += fmt.Sprintf("; skipped because they already exist: %d", imported.Skipped)
		}
		for _, session := range imported.Sessions {
			text += "\nSession: " + session
		}
		return host.WriteResult(o.JSON, imported, text)
	})
}
