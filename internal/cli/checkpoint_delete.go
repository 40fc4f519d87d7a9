package cli

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointDeleteOptions is the command line of guideway checkpoint delete.
type checkpointDeleteOptions struct {
	app     *app
	IDs     []string
	Session string
	JSON    bool
}

func newCheckpointDeleteCmd(a *app, run func(context.Context, *checkpointDeleteOptions) error) *cobra.Command {
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
				return guideway.Errorf(guideway.CodeInvalid, "either checkpoints or a session are to be named").
					WithFix("guideway checkpoint delete %s", exampleCheckpoint)
			}
			return nil
		},
		ValidArgsFunction: a.completeCheckpoints(100),
		RunE:              runWithArgs(run, o, &o.IDs),
	}
	cmd.Flags().StringVar(&o.Session, "session", "", "all of the session, or the run, with this `id`")
	addJSONFlag(cmd, &o.JSON)
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeCheckpointSessions)
	return cmd
}

func runCheckpointDelete(ctx context.Context, o *checkpointDeleteOptions) error {
	host := o.app.host
	return o.app.withCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		deleted, err := d.checkpoints.Delete(ctx, d.person, checkpoint.DeleteRequest{IDs: o.IDs, Session: o.Session})
		if err != nil {
			return atCommandLine(err)
		}
		host.checkpointNotes(deleted.Store, nil)
		if o.JSON {
			return writeJSON(host.Out, deleted)
		}
		how := "the files are removed"
		switch {
		case deleted.Erased:
			how = "the key is destroyed, so that copies are worth nothing"
		case deleted.Store.Mode == checkpoint.ModePostgres || deleted.Store.Mode == checkpoint.ModeMemory:
			how = "their contents are removed"
		}
		fmt.Fprintf(host.Out, "Deleted: %s, %s; %s\n", plural(len(deleted.Checkpoints), "checkpoint", "checkpoints"), bytesWords(deleted.Stored), how)
		return nil
	})
}

// checkpointLogOptions is the command line of guideway checkpoint log.
type checkpointLogOptions struct {
	app   *app
	Limit int
	JSON  bool
}

func newCheckpointLogCmd(a *app, run func(context.Context, *checkpointLogOptions) error) *cobra.Command {
	o := &checkpointLogOptions{app: a}
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show who has saved, loaded, deleted and exported checkpoints",
		Long: `Show the audit log of your checkpoints, the last entry first: what was saved, loaded,
deleted, exported and imported, when, and by which client. It has nothing of a content.`,
		Example: "  guideway checkpoint log\n  guideway checkpoint log --limit 1000 --json",
		Args:    noArgs,
		RunE:    runWith(run, o),
	}
	addLimitFlag(cmd, &o.Limit, "at most so many")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

// checkpointLogAnswer is the answer of guideway checkpoint log --json.
type checkpointLogAnswer struct {
	Entries []checkpoint.Entry `json:"entries"`
}

func runCheckpointLog(ctx context.Context, o *checkpointLogOptions) error {
	host := o.app.host
	return o.app.listCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		entries, err := d.checkpoints.Audit(ctx, d.person, o.Limit)
		if err != nil {
			return err
		}
		host.checkpointNotes(d.checkpoints.Store(), nil)
		return writeList(host, o.JSON, listing[checkpoint.Entry]{
			items: entries, answer: checkpointLogAnswer{Entries: orEmpty(entries)}, empty: "Nothing has happened yet.",
			table: newTable(5, "WHEN", "WHAT", "CHECKPOINT", "SESSION", "CLIENT", "WHY"),
			row: func(e checkpoint.Entry) []string {
				return []string{whenWords(e.At), e.Action, orDash(e.Checkpoint), e.Session, orDash(oneLine(e.Client)), oneLine(e.Detail)}
			},
		})
	})
}
