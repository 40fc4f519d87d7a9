package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointDeleteOptions is the command line of guideway checkpoint delete.
type checkpointDeleteOptions struct {
	app     *app.App
	IDs     []string
	Session string
	JSON    bool
}

func newCheckpointDeleteCmd(a *app.App, run func(context.Context, *checkpointDeleteOptions) error) *cobra.Command {
	o := &checkpointDeleteOptions{app: a}
	cmd := &cobra.Command{
		Use:   "delete {CHECKPOINT...|--session SESSION}",
		Short: "Delete checkpoints",
		Long: `Delete checkpoints, or all checkpoints of a session or run. This cannot be undone. Other
checkpoints of the session are kept. If the last encrypted checkpoint of a session is
deleted, the key of the session is destroyed, so copies in backups that do not contain this
key are unreadable, too. Unencrypted files are removed; their blocks remain on the disk until
they are overwritten.`,
		Example: `  guideway checkpoint delete c_0dx3k2v9q8f7m5n4p1r6t0w
  guideway checkpoint delete --session login-work`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 && o.Session == "":
				return guideway.Errorf(guideway.CodeInvalid, "the id of a checkpoint, or --session, is required").
					WithFix("guideway checkpoint delete %s; guideway checkpoint list prints the ids", exampleCheckpoint)
			case len(args) > 0 && o.Session != "":
				return guideway.Errorf(guideway.CodeInvalid, "a checkpoint and --session cannot be combined").
					WithFix("omit the checkpoint, or omit --session")
			}
			return nil
		},
		ValidArgsFunction: completeCheckpoints(a, 100),
		RunE:              app.RunWithArgs(run, o, &o.IDs),
	}
	cmd.Flags().StringVar(&o.Session, "session", "", "delete all checkpoints of the session or run with this `id`")
	app.AddJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	return cmd
}

func runCheckpointDelete(ctx context.Context, o *checkpointDeleteOptions) error {
	host := o.app.Host
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		deleted, err := d.Checkpoints.Delete(ctx, d.User, checkpoint.DeleteRequest{IDs: o.IDs, Session: o.Session})
		if err != nil {
			return userError(err)
		}
		host.WriteCheckpointWarnings(deleted.Store, nil)
		how := "the files are removed"
		switch {
		case deleted.Erased:
			how = "the key of the session is destroyed, so copies are unreadable unless a backup has this key"
		case deleted.Store.Mode == checkpoint.ModePostgres || deleted.Store.Mode == checkpoint.ModeMemory:
			how = "the contents are removed"
		}
		what := app.Plural(len(deleted.Checkpoints), "checkpoint", "checkpoints")
		if n := len(deleted.Reduced); n > 0 {
			what += " and " + app.Plural(n, "reduced context", "reduced contexts")
		}
		return host.WriteResult(o.JSON, deleted, fmt.Sprintf("Deleted: %s, %s; %s", what, app.FormatBytes(deleted.Stored), how))
	})
}

// checkpointLogOptions is the command line of guideway checkpoint log.
type checkpointLogOptions struct {
	app   *app.App
	Limit int
	JSON  bool
}

func newCheckpointLogCmd(a *app.App, run func(context.Context, *checkpointLogOptions) error) *cobra.Command {
	o := &checkpointLogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show the audit log of checkpoints",
		Long: `Show the audit log of your checkpoints, latest first: each save, load, deletion, export,
import and addition to a rebuilt index, with its time and client. The log has no contents of
checkpoints.`,
		Example: "  guideway checkpoint log\n  guideway checkpoint log --limit 1000 --json",
		Args:    app.NoArgs,
		RunE:    app.RunWith(run, o),
	}
	app.AddLimitFlag(cmd, &o.Limit, "maximum number of entries")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// checkpointLogAnswer is the answer of guideway checkpoint log --json.
type checkpointLogAnswer struct {
	Entries []checkpoint.Entry `json:"entries"`
}

func runCheckpointLog(ctx context.Context, o *checkpointLogOptions) error {
	host := o.app.Host
	return o.app.ListCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		entries, err := d.Checkpoints.Audit(ctx, d.User, o.Limit)
		if err != nil {
			return err
		}
		host.WriteCheckpointWarnings(d.Checkpoints.Store(), nil)
		return app.WriteList(host, o.JSON, app.Listing[checkpoint.Entry]{
			Items: entries, Answer: checkpointLogAnswer{Entries: app.OrEmpty(entries)}, Empty: "The audit log is empty.",
			Table: app.NewTable(5, "WHEN", "WHAT", "CHECKPOINT", "SESSION", "CLIENT", "WHY"),
			Row: func(e checkpoint.Entry) []string {
				return []string{app.FormatTime(e.At), e.Action, app.OrDash(e.Checkpoint), e.Session, app.OrDash(app.OneLine(e.Client)), app.OneLine(e.Detail)}
			},
		})
	})
}
