package checkpoint

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"context"
	"fmt"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/spf13/cobra"
)

// checkpointVerifyOptions is the command line of guideway checkpoint verify.
type checkpointVerifyOptions struct {
	app     *app.App
	Rebuild bool
	JSON    bool
}

func newCheckpointVerifyCmd(a *app.App, run func(context.Context, *checkpointVerifyOptions) error) *cobra.Command {
	o := &checkpointVerifyOptions{app: a}
	cmd := &cobra.Command{
		Use:  "verify",
		Args: app.NoArgs,
		RunE: app.RunWith(run, o),
	}
	cmd.Flags().BoolVar(&o.Rebuild, "rebuild", false, "first add stored checkpoints that are missing from the index")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

// checkpointVerifyAnswer is the answer of guideway checkpoint verify --json.
type checkpointVerifyAnswer struct {
	*checkpoint.Report
	Rebuilt *checkpoint.Rebuilt `json:"rebuilt,omitempty"`
}

func runCheckpointVerify(ctx context.Context, o *checkpointVerifyOptions) error {
	host := o.app.Host
	return o.app.WithCheckpoints(ctx, func(ctx context.Context, d *app.CheckpointDeps) error {
		var answer checkpointVerifyAnswer
		if o.Rebuild {
			rebuilt, err := d.Checkpoints.Rebuild(ctx)
			if err != nil {
				return err
			}
			answer.Rebuilt = &rebuilt
		}
		var err error
		if answer.Report, err = d.Checkpoints.Verify(ctx); err != nil {
			return err
		}
		host.WriteCheckpointWarnings(answer.Store, nil)
		return host.WriteCheckResult(o.JSON, answer, len(answer.Damaged) > 0, func() { answer.writeText(host) })
	})
}

func (a *checkpointVerifyAnswer) writeText(host *app.Host) {
	s := host.OutStyles()
	if r := a.Rebuilt; r != nil {
		fmt.Fprintf(host.Out, "rebuilt the index: %s added, %d repaired", app.Plural(r.Adopted, "checkpoint", "checkpoints"), r.Mended)
		if r.Damaged > 0 {
			fmt.Fprintf(host.Out, "; %s", app.Plural(r.Damaged, "unreadable blob", "unreadable blobs"))
		}
		fmt.Fprintln(host.Out)
	}
	for _, f := range a.Damaged {
		fmt.Fprintf(host.Out, "%s  session %s: %s\n", f.Checkpoint, f.Session, s.Red(app.OneLine(f.Problem)))
	}
	for _, id := range a.Healed {
		fmt.Fprintf(host.Out, "%s is readable again\n", id)
	}
	checked := fmt.Sprintf("%s, %s of contexts", VerifiedWords(a.Report), app.FormatBytes(a.Bytes))
	if len(a.Damaged) > 0 {
		fmt.Fprintf(host.Out, "%s: %d of %s\n", s.Red("damaged"), len(a.Damaged), checked)
		fmt.Fprintln(host.Out, "Restore the directory of checkpoints, or the database, from a backup, and verify again. Until then, to load the latest undamaged checkpoint before a damaged one: guideway checkpoint load ID --older")
	} else {
		fmt.Fprintf(host.Out, "%s: %s verified\n", s.Green("ok"), checked)
	}
	if a.Unknown > 0 {
		fmt.Fprintf(host.Out, "Missing from the index: %s. To add what is missing to the index: guideway checkpoint verify --rebuild\n", app.Plural(a.Unknown, "stored checkpoint", "stored checkpoints"))
	}
}

// VerifiedWords returns the number of checkpoints and of reduced contexts in a report as
// text.
func VerifiedWords(r *checkpoint.Report) string {
	said := app.Plural(r.Checkpoints, "checkpoint", "checkpoints")
	if r.Fragments > 0 {
		said += " and " + app.Plural(r.Fragments, "reduced context", "reduced contexts")
	}
	return said
}
