package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointDiffOptions is the command line of guideway checkpoint diff.
type checkpointDiffOptions struct {
	app      *app.App
	From, To string
	JSON     bool
}

func newCheckpointDiffCmd(a *app.App, run func(context.Context, *checkpointDiffOptions) error) *cobra.Command {
	o := &checkpointDiffOptions{app: a}
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two checkpoints",
		Long: `Show the changes from checkpoint A to checkpoint B: each changed value with its JSON
pointer. The checkpoints may be of different sessions.`,
		Example:           "  guideway checkpoint diff c_0dx3k2v9q8f7m5n4p1r6t0w c_0dx3k9a2b4c6d8e0f1g3h5j",
		Args:              app.ExactArgs(2, "two checkpoints, by their ids", "guideway checkpoint diff A B; guideway checkpoint list prints the ids"),
		ValidArgsFunction: completeCheckpoints(a, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.From, o.To = args[0], args[1]
			return run(cmd.Context(), o)
		},
	}
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runCheckpointDiff(ctx context.Context, o *checkpointDiffOptions) error {
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		difference, err := d.Checkpoints.Diff(ctx, d.User, o.From, o.To)
		if err != nil {
			return userError(err)
		}
		o.app.Host.WriteCheckpointWarnings(difference.Store, nil)
		return o.app.Host.WriteJSONOr(o.JSON, difference, func() { o.writeText(difference) })
	})
}

func (o *checkpointDiffOptions) writeText(d *checkpoint.Difference) {
	host := o.app.Host
	s := host.OutStyles()
	fmt.Fprintf(host.Out, "%s %s, %s, %s\n", s.Red("---"), d.From.ID, app.FormatTime(d.From.Created), checkpointTitle(d.From))
	fmt.Fprintf(host.Out, "%s %s, %s, %s\n", s.Green("+++"), d.To.ID, app.FormatTime(d.To.Created), checkpointTitle(d.To))
	if len(d.Changes) == 0 {
		fmt.Fprintln(host.Out, "No differences.")
		return
	}
	for _, c := range d.Changes {
		fmt.Fprintf(host.Out, "\n%s\n", s.Bold(app.OneLine(c.Path)))
		if c.Op != "added" {
			fmt.Fprintln(host.Out, s.Red("- "+valueText(c.Before)))
		}
		if c.Op != "removed" {
			fmt.Fprintln(host.Out, s.Green("+ "+valueText(c.After)))
		}
	}
	if d.More {
		fmt.Fprintf(host.Out, "\nMore than %d changes; to compare the rest, load both checkpoints.\n", len(d.Changes))
	}
}

// valueText returns a value on one line. Strings are kept in JSON form, so that line
// breaks and terminal control characters are visible.
func valueText(value json.RawMessage) string { return app.OneLine(string(value)) }
