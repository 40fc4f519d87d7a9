package cli

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointDiffOptions is the command line of guideway checkpoint diff.
type checkpointDiffOptions struct {
	app      *app
	From, To string
	JSON     bool
}

func newCheckpointDiffCmd(a *app, run func(context.Context, *checkpointDiffOptions) error) *cobra.Command {
	o := &checkpointDiffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Show what changed from one checkpoint to another",
		Long: `Show what changed from checkpoint A to checkpoint B, of whatever sessions: one value
after the other, each by its JSON pointer.`,
		Example:           "  guideway checkpoint diff c_0dx3k2v9q8f7m5n4p1r6t0w c_0dx3k9a2b4c6d8e0f1g3h5j",
		Args:              exactly(2, "two checkpoints, by their ids", "guideway checkpoint diff A B; guideway checkpoint list shows the ids"),
		ValidArgsFunction: a.completeCheckpoints(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.From, o.To = args[0], args[1]
			return run(cmd.Context(), o)
		},
	}
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

func runCheckpointDiff(ctx context.Context, o *checkpointDiffOptions) error {
	return o.app.withCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		difference, err := d.checkpoints.Diff(ctx, d.person, o.From, o.To)
		if err != nil {
			return atCommandLine(err)
		}
		o.app.host.checkpointNotes(difference.Store, nil)
		return o.app.host.writeJSONOr(o.JSON, difference, func() { o.write(difference) })
	})
}

func (o *checkpointDiffOptions) write(d *checkpoint.Difference) {
	host := o.app.host
	s := host.outStyles()
	fmt.Fprintf(host.Out, "%s %s, %s, %s\n", s.red("---"), d.From.ID, whenWords(d.From.Created), checkpointTitle(d.From))
	fmt.Fprintf(host.Out, "%s %s, %s, %s\n", s.green("+++"), d.To.ID, whenWords(d.To.Created), checkpointTitle(d.To))
	if len(d.Changes) == 0 {
		fmt.Fprintln(host.Out, "The contexts are the same.")
		return
	}
	for _, c := range d.Changes {
		fmt.Fprintf(host.Out, "\n%s\n", s.bold(oneLine(c.Path)))
		if c.Op != "added" {
			fmt.Fprintln(host.Out, s.red("- "+changedWords(c.Before)))
		}
		if c.Op != "removed" {
			fmt.Fprintln(host.Out, s.green("+ "+changedWords(c.After)))
		}
	}
	if d.More {
		fmt.Fprintf(host.Out, "\nThere are more than these %d changes; load both and compare them.\n", len(d.Changes))
	}
}

// changedWords writes a value on one line. Texts stand as JSON has them, so that line
// breaks and what would steer a terminal show.
func changedWords(value json.RawMessage) string { return oneLine(string(value)) }
