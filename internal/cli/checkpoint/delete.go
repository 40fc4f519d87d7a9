package checkpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/config"
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
		Use: "delete {CHECKPOINT...|--session SESSION}",
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
		Use:  "log",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
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

// cleanupOptions is the command line of guideway cleanup.
type cleanupOptions struct {
	app       *app.App
	OlderThan time.Duration
	KeepLast  int
	DryRun    bool
	JSON      bool
}

func NewCleanupCmd(a *app.App, run func(context.Context, *cleanupOptions) error) *cobra.Command {
	o := &cleanupOptions{app: a}
	var olderThan string
	cmd := &cobra.Command{
		Use:  "cleanup {--older-than AGE|--keep-last N} [flags]",
		Args: app.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.checkOptions(cmd, olderThan); err != nil {
				return app.UsageError{Err: err}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&olderThan, "older-than", "", "delete checkpoints of sessions inactive for this `age`, such as 7d or 12h")
	f.IntVar(&o.KeepLast, "keep-last", 0, "number of latest checkpoints to keep in each session")
	f.BoolVar(&o.DryRun, "dry-run", false, "count the checkpoints without deleting them")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func (o *cleanupOptions) checkOptions(cmd *cobra.Command, olderThan string) error {
	const example = "guideway cleanup --older-than 7d --keep-last 5 --dry-run"
	if cmd.Flags().Changed("older-than") {
		age, err := config.ParseDuration(olderThan)
		if err != nil || age <= 0 {
			return guideway.Errorf(guideway.CodeInvalid, "--older-than %q is not an age above zero", olderThan).WithFix("%s", example)
		}
		o.OlderThan = age
	}
	if cmd.Flags().Changed("keep-last") && o.KeepLast < 1 {
		return guideway.Errorf(guideway.CodeInvalid, "--keep-last %d is less than 1", o.KeepLast).WithFix("%s", example)
	}
	if o.OlderThan == 0 && o.KeepLast == 0 {
		return guideway.Errorf(guideway.CodeInvalid, "--older-than or --keep-last is required").WithFix("%s", example)
	}
	return nil
}

func RunCleanup(ctx context.Context, o *cleanupOptions) error {
	host := o.app.Host
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		cleaned, err := d.Checkpoints.Cleanup(ctx, checkpoint.CleanupRequest{
			OlderThan: o.OlderThan, KeepLast: o.KeepLast, User: d.User.User, DryRun: o.DryRun,
		})
		if err != nil {
			return err
		}
		host.WriteCheckpointWarnings(d.Checkpoints.Store(), nil)
		done := "Deleted"
		if cleaned.DryRun {
			done = "Would be deleted"
		}
		text := fmt.Sprintf("%s: %s, %s", done, app.Plural(cleaned.Checkpoints, "checkpoint", "checkpoints"), app.FormatBytes(cleaned.Stored))
		if cleaned.Sessions > 0 {
			text += fmt.Sprintf(", including every checkpoint of %s", app.Plural(cleaned.Sessions, "session or run", "sessions or runs"))
		}
		if cleaned.Kept > 0 {
			text += "\nKept: the last checkpoint of " + app.Plural(cleaned.Kept, "active run", "active runs")
		}
		return host.WriteResult(o.JSON, cleaned, text)
	})
}
