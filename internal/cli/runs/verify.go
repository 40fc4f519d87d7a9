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
		Use: "verify [RUN]",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return exactlyOneRun("verify")(cmd, args)
			}
			return nil
		},
		ValidArgsFunction: completeRuns(a, anyRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.Run = args[0]
			}
			if o.AcceptRestore && o.Run != "" {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--accept-restore applies to all runs and takes no run id").
					WithFix("guideway runs verify --accept-restore")}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.AcceptRestore, "accept-restore", false, "accept the current state of all runs as the valid history, after a deliberate restore")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsVerify(ctx context.Context, o *RunsVerifyOptions) error {
	host := o.app.Host
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		report, err := o.verifyRuns(ctx, d)
		if err != nil {
			return err
		}
		return host.WriteCheckResult(o.JSON, report, len(report.Faults) > 0, func() { WriteReport(host, report) })
	})
}

// verifyRuns verifies one run, or all guided runs and all runs of machines, which have their
// own store.
func (o *RunsVerifyOptions) verifyRuns(ctx context.Context, d *app.RunDeps) (*run.Report, error) {
	report := &run.Report{}
	if !machinecmd.IsMachineRun(o.Run) {
		if o.AcceptRestore {
			if err := d.Runs.AcceptRestore(ctx); err != nil {
				return nil, err
			}
		}
		var err error
		if report, err = d.Runs.Verify(ctx, o.Run); err != nil {
			return nil, userError(err)
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

// WriteReport prints the result of a verification.
func WriteReport(host *app.Host, report *run.Report) {
	s := host.OutStyles()
	checked := fmt.Sprintf("%s, %s", app.Plural(report.Runs, "run", "runs"), app.Plural(int(report.Events), "event", "events"))
	if len(report.Faults) == 0 {
		fmt.Fprintf(host.Out, "%s: %s verified\n", s.Green("ok"), checked)
		return
	}
	restored, damaged := false, false
	for _, f := range report.Faults {
		where := f.Run + "  "
		switch {
		case f.Run == "":
			where = "" // the broken link belongs to no run
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
		fmt.Fprintln(host.Out, "If you restored the data from a backup: guideway runs verify --accept-restore")
	}
	if damaged {
		// The suggestion is last because it removes the evidence of truncated runs.
		fmt.Fprintln(host.Out, "Find out why the head file changed. To accept the current state as the valid history: guideway runs verify --accept-restore")
	}
}
