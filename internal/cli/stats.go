package cli

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/spf13/cobra"
)

func newStatsCmd(a *app) *cobra.Command {
	return newPlainCmd(a, runStats, &cobra.Command{
		Use:   "stats",
		Short: "Show how much checkpoints take, and how that grows",
		Long: `Show how many checkpoints you have, how large their contexts are and how much they take
on the disk, the largest sessions, and what each of the last 30 days has added of what
is still there.`,
		Example: "  guideway stats\n  guideway stats --json",
	})
}

func runStats(ctx context.Context, o *plainOptions) error {
	return o.app.listCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		stats, err := d.checkpoints.Stats(ctx, d.person.User)
		if err != nil {
			return err
		}
		o.app.host.checkpointNotes(stats.Store, nil)
		return o.app.host.writeJSONOr(o.JSON, stats, func() { writeStats(o.app.host, stats) })
	})
}

func writeStats(host *Host, stats *checkpoint.Stats) {
	s := host.outStyles()
	fmt.Fprintf(host.Out, "Kept in     %s\n", stats.Store.Mode)
	fmt.Fprintf(host.Out, "Kept        %s of %s\n", plural(stats.Count, "checkpoint", "checkpoints"), plural(stats.Lines, "session", "sessions"))
	fmt.Fprintf(host.Out, "Contexts    %s\n", bytesWords(stats.Bytes))
	stored := bytesWords(stats.Stored)
	if stats.Ratio > 0 {
		stored += fmt.Sprintf(", ratio %.1f", stats.Ratio)
	}
	if stats.Limit > 0 {
		stored += fmt.Sprintf(", %.1f %% of %s", 100*float64(stats.Stored)/float64(stats.Limit), bytesWords(stats.Limit))
	}
	fmt.Fprintf(host.Out, "On disk     %s\n", stored)
	if stats.Count == 0 {
		return
	}
	fmt.Fprintf(host.Out, "Last used   %s\n\n%s\n", host.ago(stats.Newest), s.bold("The largest sessions"))
	writeRows(host, newTable(0, "SESSION", "WORKFLOW", "CHECKPOINTS", "CONTEXTS", "ON DISK", "RATIO", "LAST USED").alignRight(2, 3, 4, 5), stats.Sessions,
		func(line checkpoint.Line) []string {
			return []string{
				line.Session, orDash(oneLine(line.Workflow)), fmt.Sprint(line.Count), bytesWords(line.Bytes), bytesWords(line.Stored),
				ratioWords(line.Bytes, line.Stored), host.ago(line.Touched),
			}
		})
	fmt.Fprintf(host.Out, "\n%s\n", s.bold("Growth"))
	writeRows(host, newTable(0, "DAY", "CHECKPOINTS", "CONTEXTS", "ON DISK", "RATIO").alignRight(1, 2, 3, 4), stats.Growth, func(day checkpoint.Day) []string {
		return []string{day.Date, fmt.Sprint(day.Checkpoints), bytesWords(day.Bytes), bytesWords(day.Stored), ratioWords(day.Bytes, day.Stored)}
	})
}

// ratioWords says how many times smaller something is stored.
func ratioWords(bytes, stored int64) string {
	if stored == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(bytes)/float64(stored))
}
