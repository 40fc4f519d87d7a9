package cli

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointVerifyOptions is the command line of guideway checkpoint verify.
type checkpointVerifyOptions struct {
	app     *app
	Rebuild bool
	JSON    bool
}

func newCheckpointVerifyCmd(a *app, run func(context.Context, *checkpointVerifyOptions) error) *cobra.Command {
	o := &checkpointVerifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Read every checkpoint and say which are damaged",
		Long: `Read every checkpoint and compare it with its checksums. What is damaged is named and
marked, what was marked and can be read again is not any more. The exit code is 1 if one
is damaged.

With --rebuild whatever the stored contents have and the index has not is taken up
first: after a database was lost, or put back from an older backup.`,
		Example: "  guideway checkpoint verify\n  guideway checkpoint verify --rebuild\n  guideway checkpoint verify --json",
		Args:    noArgs,
		RunE:    runWith(run, o),
	}
	cmd.Flags().BoolVar(&o.Rebuild, "rebuild", false, "take up first what the index does not know of")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

// checkpointVerifyAnswer is the answer of guideway checkpoint verify --json.
type checkpointVerifyAnswer struct {
	*checkpoint.Report
	Rebuilt *checkpoint.Rebuilt `json:"rebuilt,omitempty"`
}

func runCheckpointVerify(ctx context.Context, o *checkpointVerifyOptions) error {
	host := o.app.host
	return o.app.withCheckpoints(ctx, func(ctx context.Context, d *checkpointDesk) error {
		var answer checkpointVerifyAnswer
		if o.Rebuild {
			rebuilt, err := d.checkpoints.Rebuild(ctx)
			if err != nil {
				return err
			}
			answer.Rebuilt = &rebuilt
		}
		var err error
		if answer.Report, err = d.checkpoints.Verify(ctx); err != nil {
			return err
		}
		host.checkpointNotes(answer.Store, nil)
		return host.writeVerdict(o.JSON, answer, len(answer.Damaged) > 0, func() { answer.write(host) })
	})
}

func (a *checkpointVerifyAnswer) write(host *Host) {
	s := host.outStyles()
	if r := a.Rebuilt; r != nil {
		fmt.Fprintf(host.Out, "rebuilt: %d taken up, %d mended", r.Adopted, r.Mended)
		if r.Damaged > 0 {
			fmt.Fprintf(host.Out, "; %s of what they are", plural(r.Damaged, "blob says nothing", "blobs say nothing"))
		}
		fmt.Fprintln(host.Out)
	}
	for _, f := range a.Damaged {
		fmt.Fprintf(host.Out, "%s  session %s: %s\n", f.Checkpoint, f.Session, s.red(oneLine(f.Problem)))
	}
	for _, id := range a.Healed {
		fmt.Fprintf(host.Out, "%s  can be read again\n", id)
	}
	checked := fmt.Sprintf("%s, %s of contexts", verifiedWords(a.Report), bytesWords(a.Bytes))
	if len(a.Damaged) > 0 {
		fmt.Fprintf(host.Out, "%s: %d damaged of %s\n", s.red("damaged"), len(a.Damaged), checked)
		fmt.Fprintln(host.Out, "Put the directory of the contents back from a backup and verify again; until then the ones before them load: guideway checkpoint load --older")
	} else {
		fmt.Fprintf(host.Out, "%s: %s; all can be read\n", s.green("ok"), checked)
	}
	if a.Unknown > 0 {
		fmt.Fprintf(host.Out, "The index does not know of %s: guideway checkpoint verify --rebuild\n", plural(a.Unknown, "stored checkpoint", "stored checkpoints"))
	}
}

// verifiedWords says how much was looked through.
func verifiedWords(r *checkpoint.Report) string {
	said := plural(r.Checkpoints, "checkpoint", "checkpoints")
	if r.Pieces > 0 {
		said += " and " + plural(r.Pieces, "reduced context", "reduced contexts")
	}
	return said
}
