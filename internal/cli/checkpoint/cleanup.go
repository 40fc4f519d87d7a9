package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

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
		Use:   "cleanup {--older-than AGE|--keep-last N} [flags]",
		Short: "Delete old checkpoints",
		Long: `With --older-than, delete your checkpoints of inactive sessions; with --keep-last N, all but
the latest N of each session; with both, all but the latest N of inactive sessions. A session is
inactive if nothing was saved to it or loaded from it during AGE. The last checkpoint of
an active run is always kept. Deletion is permanent; --dry-run only counts the checkpoints.

Servers automatically delete the checkpoints of sessions that are inactive for longer than
the setting checkpoints.retention.`,
		Example: `  guideway cleanup --older-than 7d --dry-run
  guideway cleanup --older-than 7d --keep-last 5`,
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
