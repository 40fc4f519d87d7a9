package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

func NewStatsCmd(a *app.App) *cobra.Command {
	return app.NewPlainCmd(a, runStats, &cobra.Command{
		Use:   "stats",
		Short: "Show the size and growth of checkpoints",
		Long: `Show the number of your checkpoints, the size of their contexts and of their storage, the
ratio of the two, the largest sessions, and the storage added on each of the last 30 days.`,
		Example: "  guideway stats\n  guideway stats --json",
	})
}

func runStats(ctx context.Context, o *app.PlainOptions) error {
	return o.App.ListCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		stats, err := d.Checkpoints.Stats(ctx, d.User.User)
		if err != nil {
			return err
		}
		o.App.Host.WriteCheckpointWarnings(stats.Store, nil)
		return o.App.Host.WriteJSONOr(o.JSON, stats, func() { writeStats(o.App.Host, stats) })
	})
}

func writeStats(host *app.Host, stats *checkpoint.Stats) {
	s := host.OutStyles()
	fmt.Fprintf(host.Out, "Location    %s\n", stats.Store.Mode)
	fmt.Fprintf(host.Out, "Kept        %s of %s\n", app.Plural(stats.Count, "checkpoint", "checkpoints"), app.Plural(stats.Series, "session", "sessions"))
	fmt.Fprintf(host.Out, "Contexts    %s\n", app.FormatBytes(stats.Bytes))
	stored := app.FormatBytes(stats.Stored)
	if stats.Ratio > 0 {
		stored += fmt.Sprintf(", ratio %.1f", stats.Ratio)
	}
	if stats.Limit > 0 {
		stored += fmt.Sprintf(", %.1f %% of the limit of %s", 100*float64(stats.Stored)/float64(stats.Limit), app.FormatBytes(stats.Limit))
	}
	fmt.Fprintf(host.Out, "Stored      %s\n", stored)
	if stats.Count == 0 {
		return
	}
	fmt.Fprintf(host.Out, "Last used   %s\n\n%s\n", host.FormatAge(stats.Newest), s.Bold("Largest sessions"))
	app.WriteRows(host, app.NewTable(0, "SESSION", "WORKFLOW", "CHECKPOINTS", "CONTEXTS", "STORED", "RATIO", "LAST USED").AlignRight(2, 3, 4, 5), stats.Sessions,
		func(line checkpoint.Series) []string {
			return []string{
				line.Session, app.OrDash(app.OneLine(line.Workflow)), fmt.Sprint(line.Count), app.FormatBytes(line.Bytes), app.FormatBytes(line.Stored),
				ratioText(line.Bytes, line.Stored), host.FormatAge(line.Touched),
			}
		})
	fmt.Fprintf(host.Out, "\n%s\n", s.Bold("Growth"))
	app.WriteRows(host, app.NewTable(0, "DAY", "CHECKPOINTS", "CONTEXTS", "STORED", "RATIO").AlignRight(1, 2, 3, 4), stats.Growth, func(day checkpoint.Day) []string {
		return []string{day.Date, fmt.Sprint(day.Checkpoints), app.FormatBytes(day.Bytes), app.FormatBytes(day.Stored), ratioText(day.Bytes, day.Stored)}
	})
}

// ratioText returns the compression ratio as text.
func ratioText(bytes, stored int64) string {
	if stored == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(bytes)/float64(stored))
}
