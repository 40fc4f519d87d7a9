package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import machinecmd "github.com/guideway-dev/guideway/internal/cli/machine"

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// RunsVerifyOptions is the command line of guideway runs verify.
type RunsVerifyOptions struct {
	app           *app.App
	Run           string
	AcceptRestore bool
	JSON          bool
}

func NewRunsVerifyCmd(a *app.App, run func(context.Context, *RunsVerifyOptions) error) *cobra.Command {
	o := &RunsVerifyOptions{app: a}
	cmd := &cobra.Command{
		Use:   "verify [RUN]",
		Short: "Check that nobody has altered what happened",
		Long: `Check the chain of every run, those of agent machines included, or of one: each event is authenticated together with
the one before it, by a key that is not in the database, and the last events are
remembered apart from it. An event that was edited, taken out or added, a tail that was
removed and a database that was put back from an old copy are found, and the first
broken link of each run is named. The exit code is 1 if there is one.

After a deliberate restore from a backup, --accept-restore takes what is there now for
what has happened. What is broken in itself stays broken.`,
		Example: `  guideway runs verify
  guideway runs verify r_06bmyb2ad4ft47c6abwmtxs --json
  guideway runs verify --accept-restore`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return oneRun("verify")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: completeRuns(a, anyRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Run = args[0]
			}
			if o.AcceptRestore && o.Run != "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "a restore concerns all runs, not one").
					WithFix("guideway runs verify --accept-restore")}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.AcceptRestore, "accept-restore", false, "after a deliberate restore: what is there now is what has happened")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsVerify(ctx context.Context, o *RunsVerifyOptions) error {
	host := o.app.Host
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		report, err := o.verify(ctx, d)
		if err != nil {
			return err
		}
		return host.WriteCheckResult(o.JSON, report, len(report.Faults) > 0, func() { WriteReport(host, report) })
	})
}

// verify checks guided runs and those of machines, which are in a store of their
// own, or one of them.
func (o *RunsVerifyOptions) verify(ctx context.Context, d *app.RunDeps) (*run.Report, error) {
	report := &run.Report{}
	if !machinecmd.IsMachineRun(o.Run) {
		if o.AcceptRestore {
			if err := d.Runs.AcceptRestore(ctx); err != nil {
				return nil, err
			}
		}
		var err error
		if report, err = d.Runs.Verify(ctx, o.Run); err != nil {
			return nil, forPerson(err)
		}
	}
	if o.Run == "" || machinecmd.IsMachineRun(o.Run) {
		cfg, err := o.app.Load()
		if err != nil {
			return nil, err
		}
		more, err := machinecmd.VerifyMachines(ctx, o.app, cfg, o.Run, o.AcceptRestore)
		if err != nil {
			return nil, err
		}
		report.Runs, report.Events = report.Runs+more.Runs, report.Events+more.Events
		report.Faults = append(report.Faults, more.Faults...)
	}
	report.Faults = app.OrEmpty(report.Faults)
	return report, nil
}

func WriteReport(host *app.Host, report *run.Report) {
	s := host.OutStyles()
	checked := fmt.Sprintf("%s, %s", app.Plural(report.Runs, "run", "runs"), app.Plural(int(report.Events), "event", "events"))
	if len(report.Faults) == 0 {
		fmt.Fprintf(host.Out, "%s: %s; every link holds\n", s.Green("ok"), checked)
		return
	}
	restored, damaged := false, false
	for _, f := range report.Faults {
		where := f.Run + "  "
		switch {
		case f.Run == "":
			where = "" // it is of no run
		case !strings.HasPrefix(f.Message, "event "):
			where += fmt.Sprintf("event %d: ", f.Seq)
		}
		fmt.Fprintf(host.Out, "%s%s %s\n", where, s.Red(app.OneLine(f.Message)), s.Faint("["+string(f.Kind)+"]"))
		switch f.Kind {
		case run.FaultTruncated, run.FaultMissing, run.FaultReplaced:
			restored = true
		case run.FaultHeads:
			damaged = true
		}
	}
	fmt.Fprintf(host.Out, "\n%s: %s in %s\n", s.Red("broken"), app.Plural(len(report.Faults), "broken link", "broken links"), checked)
	if restored {
		fmt.Fprintln(host.Out, "If you have put the data back from a backup yourself: guideway runs verify --accept-restore")
	}
	if damaged {
		// Last, and only then: it takes away what tells of runs that were cut off.
		fmt.Fprintln(host.Out, "Find out who has changed the heads. Once you take all that is there now for what has happened: guideway runs verify --accept-restore")
	}
}
