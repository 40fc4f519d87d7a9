package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// runsForkOptions is the command line of guideway runs fork.
type runsForkOptions struct {
	app  *app
	Run  string
	Seq  int64
	JSON bool
}

func newRunsForkCmd(a *app, run func(context.Context, *runsForkOptions) error) *cobra.Command {
	o := &runsForkOptions{app: a}
	cmd := &cobra.Command{
		Use:   "fork RUN",
		Short: "Begin a new run with what happened in an old one",
		Long: `Begin a new run that takes over the first events of an old one, to go another way
from there. The old run stays as it is.`,
		Example: `  guideway runs fork r_06bmyb2ad4ft47c6abwmtxs
  guideway runs fork r_06bmyb2ad4ft47c6abwmtxs --seq 12`,
		Args:              oneRun("fork"),
		ValidArgsFunction: a.completeRuns(anyRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if o.Seq < 0 || cmd.Flags().Changed("seq") && o.Seq == 0 {
				return usageError{err: guideway.Errorf(guideway.CodeInvalid, "there is no event %d", o.Seq).
					WithFix("guideway runs show %s --events, which numbers them", o.Run)}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().Int64Var(&o.Seq, "seq", 0, "the `number` of the last event to take over (default: all of them)")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsFork(ctx context.Context, o *runsForkOptions) error {
	return o.app.changeRun(ctx, "Forked", o.JSON, func(ctx context.Context, d *runDesk) (*run.Answer, error) {
		return d.runs.Fork(ctx, d.caller, run.ForkRequest{Ref: refOf(o.Run), Seq: o.Seq})
	})
}

// runsAbortOptions is the command line of guideway runs abort.
type runsAbortOptions struct {
	app    *app
	Run    string
	Reason string
	JSON   bool
}

func newRunsAbortCmd(a *app, run func(context.Context, *runsAbortOptions) error) *cobra.Command {
	o := &runsAbortOptions{app: a}
	cmd := &cobra.Command{
		Use:   "abort RUN",
		Short: "End a run for good",
		Long: `End a run for good. What has happened in it stays, and can be forked to go on from
any event.`,
		Example:           `  guideway runs abort r_06bmyb2ad4ft47c6abwmtxs --reason "done by hand"`,
		Args:              oneRun("abort"),
		ValidArgsFunction: a.completeRuns(goesOn),
		RunE:              runWithArg(run, o, &o.Run),
	}
	cmd.Flags().StringVar(&o.Reason, "reason", "", "why, for those who look at it later")
	addJSONFlag(cmd, &o.JSON)
	return cmd
}

func runRunsAbort(ctx context.Context, o *runsAbortOptions) error {
	return o.app.changeRun(ctx, "Aborted", o.JSON, func(ctx context.Context, d *runDesk) (*run.Answer, error) {
		return d.runs.Abort(ctx, d.caller, run.AbortRequest{Ref: refOf(o.Run), Reason: o.Reason})
	})
}

// changeRun opens the store, changes a run and says what came of it.
func (a *app) changeRun(ctx context.Context, did string, inJSON bool, change func(context.Context, *runDesk) (*run.Answer, error)) error {
	return a.withRuns(ctx, func(ctx context.Context, d *runDesk) error {
		answer, err := change(ctx, d)
		if err != nil {
			return forPerson(err)
		}
		return a.writeAnswer(answer, did, inJSON)
	})
}

// writeAnswer says in a line or two what a command has made of a run.
func (a *app) writeAnswer(answer *run.Answer, did string, inJSON bool) error {
	if inJSON {
		return writeJSON(a.host.Out, answer)
	}
	switch stands := standsAt(answer); {
	case !strings.EqualFold(stands, did):
		fmt.Fprintf(a.host.Out, "%s: %s, %s\n", did, answer.RunID, stands)
	case answer.Replayed:
		fmt.Fprintf(a.host.Out, "%s before: %s\n", did, answer.RunID)
	default:
		fmt.Fprintf(a.host.Out, "%s: %s\n", did, answer.RunID)
	}
	if pos := answer.Position; pos.Kind == guide.PositionGate && pos.Person {
		fmt.Fprintf(a.host.Out, "Open the gate: guideway runs approve %s\n", answer.RunID)
	} else if pos.Kind != guide.PositionEnd {
		fmt.Fprintf(a.host.Out, "Go on with it: guideway runs resume %s\n", answer.RunID)
	}
	return nil
}

// standsAt says where a run stands, in words.
func standsAt(answer *run.Answer) string {
	if answer.Position.Kind == guide.PositionEnd {
		return string(answer.Status)
	}
	return string(answer.Status) + " at " + whereIs(answer.Position)
}
