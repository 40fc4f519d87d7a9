package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// RunsForkOptions is the command line of guideway runs fork.
type RunsForkOptions struct {
	app  *app.App
	Run  string
	Seq  int64
	JSON bool
}

func NewRunsForkCmd(a *app.App, run func(context.Context, *RunsForkOptions) error) *cobra.Command {
	o := &RunsForkOptions{app: a}
	cmd := &cobra.Command{
		Use:   "fork RUN",
		Short: "Start a new run from the events of another run",
		Long: `Start a new run with the first events of an existing run, to continue differently from
there. The existing run is not changed.

The fork stops before the first human approval of the existing run. Only a person can
fork a run that a person aborted: at a terminal, the command asks for the passphrase of
"guideway runs approve", and the fork keeps the approvals.`,
		Example: `  guideway runs fork r_06bmyb2ad4ft47c6abwmtxs
  guideway runs fork r_06bmyb2ad4ft47c6abwmtxs --seq 12`,
		Args:              exactlyOneRun("fork"),
		ValidArgsFunction: completeRuns(a, anyRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if o.Seq < 0 || cmd.Flags().Changed("seq") && o.Seq == 0 {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--seq %d is not the number of an event; the first event has the number 1", o.Seq).
					WithFix("guideway runs show %s --events, to see the numbers of the events", o.Run)}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().Int64Var(&o.Seq, "seq", 0, "`number` of the last event to copy (default: the last one from which a run can continue)")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsFork(ctx context.Context, o *RunsForkOptions) error {
	return changeRun(ctx, o.app, "Forked", o.JSON, func(ctx context.Context, d *app.RunDeps) (*run.Answer, error) {
		request := run.ForkRequest{Ref: parseRunRef(o.Run), Seq: o.Seq}
		answer, err := d.Runs.Fork(ctx, d.Caller, request)
		if refusal, ok := run.AsRefusal(err); !ok || refusal.Rule != run.RuleAbortedByPerson {
			return answer, err
		}
		caller, err := confirmPerson(ctx, o.app, d.Caller, err)
		if err != nil {
			return nil, err
		}
		return d.Runs.Fork(ctx, caller, request)
	})
}

// RunsAbortOptions is the command line of guideway runs abort.
type RunsAbortOptions struct {
	app    *app.App
	Run    string
	Reason string
	JSON   bool
}

func NewRunsAbortCmd(a *app.App, run func(context.Context, *RunsAbortOptions) error) *cobra.Command {
	o := &RunsAbortOptions{app: a}
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "Abort a run",
		Long: `Abort a run permanently. Its events are kept; "guideway runs fork" continues from one
of them in a new run. A command at a terminal is recorded as a person's action, and an
agent cannot fork the run afterwards.`,
		Example:           `  guideway runs abort r_06bmyb2ad4ft47c6abwmtxs --reason "done by hand"`,
		Args:              exactlyOneRun("abort"),
		ValidArgsFunction: completeRuns(a, acceptsCommands),
		RunE:              app.RunWithArg(run, o, &o.Run),
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "reason, recorded with the run")
	app.AddJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsAbort(ctx context.Context, o *RunsAbortOptions) error {
	return changeRun(ctx, o.app, "Aborted", o.JSON, func(ctx context.Context, d *app.RunDeps) (*run.Answer, error) {
		caller := d.Caller
		caller.Via = o.app.Host.DetectChannel()
		return d.Runs.Abort(ctx, caller, run.AbortRequest{Ref: parseRunRef(o.Run), Reason: o.Reason})
	})
}

// changeRun opens the store, changes a run and prints the result.
func changeRun(ctx context.Context, a *app.App, did string, inJSON bool, change func(context.Context, *app.RunDeps) (*run.Answer, error)) error {
	return a.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		answer, err := change(ctx, d)
		if err != nil {
			return userError(err)
		}
		return writeAnswer(a, answer, did, inJSON)
	})
}

// writeAnswer prints the result of a change of a run.
func writeAnswer(a *app.App, answer *run.Answer, did string, inJSON bool) error {
	if inJSON {
		return app.WriteJSON(a.Host.Out, answer)
	}
	switch text := positionText(answer); {
	case !strings.EqualFold(text, did):
		fmt.Fprintf(a.Host.Out, "%s: %s, %s\n", did, answer.RunID, text)
	case answer.Replayed:
		fmt.Fprintf(a.Host.Out, "Already %s: %s\n", strings.ToLower(did), answer.RunID)
	default:
		fmt.Fprintf(a.Host.Out, "%s: %s\n", did, answer.RunID)
	}
	if pos := answer.Position; pos.Kind == engine.PositionGate && pos.Person {
		fmt.Fprintf(a.Host.Out, "To approve: guideway runs approve %s\n", answer.RunID)
	} else if pos.Kind != engine.PositionEnd {
		fmt.Fprintf(a.Host.Out, "To resume: guideway runs resume %s\n", answer.RunID)
	}
	return nil
}

// positionText returns the status of a run as text, with its position if it has not ended.
func positionText(answer *run.Answer) string {
	if answer.Position.Kind == engine.PositionEnd {
		return string(answer.Status)
	}
	return string(answer.Status) + " at " + walk.DescribePosition(answer.Position)
}
