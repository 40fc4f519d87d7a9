package cli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/spf13/cobra"
)

// statsOptions is the command line of guideway stats.
type statsOptions struct {
	app  *app
	JSON bool
}

func newStatsCmd(a *app, run func(context.Context, *statsOptions) error) *cobra.Command {
	o := &statsOptions{app: a}
	cmd := &cobra.Command{
		Use:   "stats",
		Short: "Show how much checkpoints take, and how that grows",
		Long: `Show how many checkpoints you have, how large their contexts are and how much they take
on the disk, the largest sessions, and what each of the last 30 days has added of what
is still there.`,
		Example: "  guideway stats\n  guideway stats --json",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "answer in JSON")
	return cmd
}

func runStats(ctx context.Context, o *statsOptions) error {
	return o.app.listCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		stats, err := d.checkpoints.Stats(ctx, d.person.User)
		if err != nil {
			return err
		}
		o.app.host.checkpointNotes(stats.Store, nil)
		if o.JSON {
			return writeJSON(o.app.host.Out, stats)
		}
		o.write(stats)
		return nil
	})
}

func (o *statsOptions) write(stats *checkpoint.Stats) {
	host := o.app.host
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
	right := map[int]bool{2: true, 3: true, 4: true, 5: true}
	t := table{flexible: 0, right: right}
	t.add("SESSION", "WORKFLOW", "CHECKPOINTS", "CONTEXTS", "ON DISK", "RATIO", "LAST USED")
	for _, line := range stats.Sessions {
		t.add(line.Session, cmp.Or(oneLine(line.Workflow), "-"), fmt.Sprint(line.Count), bytesWords(line.Bytes), bytesWords(line.Stored),
			ratioWords(line.Bytes, line.Stored), host.ago(line.Touched))
	}
	t.write(host.Out, host.terminalWidth(), s)
	fmt.Fprintf(host.Out, "\n%s\n", s.bold("Growth"))
	t = table{flexible: 0, right: map[int]bool{1: true, 2: true, 3: true, 4: true}}
	t.add("DAY", "CHECKPOINTS", "CONTEXTS", "ON DISK", "RATIO")
	for _, day := range stats.Growth {
		t.add(day.Date, fmt.Sprint(day.Checkpoints), bytesWords(day.Bytes), bytesWords(day.Stored), ratioWords(day.Bytes, day.Stored))
	}
	t.write(host.Out, host.terminalWidth(), s)
}

// ratioWords says how many times smaller something is stored.
func ratioWords(bytes, stored int64) string {
	if stored == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", float64(bytes)/float64(stored))
}
