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
		Short: "Delete checkpoints, or all of a session",
		Long: `Delete checkpoints, or all of a session. It cannot be taken back. Those before and
behind them stay. Where they are encrypted and none of their session is left, the key
is destroyed: then they are gone from backups, too. Elsewhere files are removed, and
their blocks last on the disk until they are used again.`,
		Example: `  guideway checkpoint delete c_0dx3k2v9q8f7m5n4p1r6t0w
  guideway checkpoint delete --session login-work`,
		Args: func(_ *cobra.Command, args []string) error {
			if (len(args) == 0) == (o.Session == "") {
				return guideway.Errorf(guideway.CodeInvalid, "either checkpoint ids or a session is required").
					WithFix("guideway checkpoint delete %s", exampleCheckpoint)
			}
			return nil
		},
		ValidArgsFunction: completeCheckpoints(a, 100),
		RunE:              app.RunWithArgs(run, o, &o.IDs),
	}
	cmd.Flags().StringVar(&o.Session, "session", "", "all of the session, or the run, with this `id`")
	app.AddJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", completeCheckpointSessions(a))
	return cmd
}

func runCheckpointDelete(ctx context.Context, o *checkpointDeleteOptions) error {
	host := o.app.Host
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		deleted, err := d.Checkpoints.Delete(ctx, d.User, checkpoint.DeleteRequest{IDs: o.IDs, Session: o.Session})
		if err != nil {
			return atCommandLine(err)
		}
		host.WriteCheckpointWarnings(deleted.Store, nil)
		if o.JSON {
			return app.WriteJSON(host.Out, deleted)
		}
		how := "the files are removed"
		switch {
		case deleted.Erased:
			how = "the key is destroyed, so that copies are worth nothing"
		case deleted.Store.Mode == checkpoint.ModePostgres || deleted.Store.Mode == checkpoint.ModeMemory:
			how = "their contents are removed"
		}
		fmt.Fprintf(host.Out, "Deleted: %s, %s; %s\n", app.Plural(len(deleted.Checkpoints), "checkpoint", "checkpoints"), app.FormatBytes(deleted.Stored), how)
		return nil
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
		Short: "Show who has saved, loaded, deleted and exported checkpoints",
		Long: `Show the audit log of your checkpoints, the last entry first: what was saved, loaded,
deleted, exported and imported, when, and by which client. It has nothing of a content.`,
		Example: "  guideway checkpoint log\n  guideway checkpoint log --limit 1000 --json",
		Args:    app.NoArgs,
		RunE:    app.RunWith(run, o),
	}
	app.AddLimitFlag(cmd, &o.Limit, "at most so many")
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
			Items: entries, Answer: checkpointLogAnswer{Entries: app.OrEmpty(entries)}, Empty: "Nothing has happened yet.",
			Table: app.NewTable(5, "WHEN", "WHAT", "CHECKPOINT", "SESSION", "CLIENT", "WHY"),
			Row: func(e checkpoint.Entry) []string {
				return []string{app.FormatTime(e.At), e.Action, app.OrDash(e.Checkpoint), e.Session, app.OrDash(app.OneLine(e.Client)), app.OneLine(e.Detail)}
			},
		})
	})
}
