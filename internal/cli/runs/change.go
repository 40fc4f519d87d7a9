package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/cli/walk"
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
		Use:               "fork RUN",
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
		Use:               "abort RUN",
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

// RunsApproveOptions is the command line of guideway runs approve.
type RunsApproveOptions struct {
	app *app.App
	// Run is empty if SetPassphrase is set.
	Run           string
	SetPassphrase bool
}

func NewRunsApproveCmd(a *app.App, do func(context.Context, *RunsApproveOptions) error) *cobra.Command {
	o := &RunsApproveOptions{app: a}
	cmd := &cobra.Command{
		Use: "approve {RUN|--set-passphrase}",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.SetPassphrase {
				return app.NoArgs(cmd, args)
			}
			return exactlyOneRun("approve")(cmd, args)
		},
		ValidArgsFunction: completeRuns(a, func(r run.Record) bool { return r.Kind == engine.PositionGate }),
		RunE:              app.RunWithArg(do, o, &o.Run, a.Host.RequireTerminal),
	}
	cmd.Flags().BoolVar(&o.SetPassphrase, "set-passphrase", false, "set or change the passphrase")
	return cmd
}

func runRunsApprove(ctx context.Context, o *RunsApproveOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	person := newGateApprover(app.NewApprover(o.app.Host, cfg))
	if o.SetPassphrase {
		return person.SetPassphrase(ctx)
	}
	// Without a passphrase, this command can answer no gate.
	if err := person.Passphrase.CheckUsable(); err != nil {
		return err
	}
	return changeRun(ctx, o.app, "Answered", false, func(ctx context.Context, d *app.RunDeps) (*run.Answer, error) {
		return o.approveRun(ctx, d, person)
	})
}

func (o *RunsApproveOptions) approveRun(ctx context.Context, d *app.RunDeps, person *gateApprover) (*run.Answer, error) {
	details, err := d.Runs.GetWithEvents(ctx, d.Caller, parseRunRef(o.Run))
	if err != nil {
		return nil, err
	}
	pos := details.Position
	if pos.Kind != engine.PositionGate {
		return nil, guideway.Errorf(guideway.CodeConflict, "the run %s is not at a gate: it is %s", details.ID, positionText(answerOf(details))).
			WithFix("guideway runs list --needs-approval")
	}
	k, err := newRunReplay(details)
	if err != nil {
		return nil, err
	}
	person.showGate(k)
	if err := person.CheckPassphrase(ctx); err != nil {
		return nil, err
	}
	given, err := person.askAnswer(ctx, &k.Walk, pos)
	if err != nil {
		return nil, err
	}
	answer, err := answerGate(ctx, d, details.Current, pos, *given)
	if refusal, ok := run.AsRefusal(err); ok && refusal.Rule == run.RuleStaleHandle {
		return nil, guideway.Errorf(guideway.CodeConflict, "the run %s has changed in the meantime; your answer was not recorded", details.ID).
			WithFix("guideway runs approve %s, to see its current gate", details.ID)
	}
	return answer, err
}

// answerGate answers a gate for the user who typed the passphrase. The handle must belong
// to the position that was shown, so that no later position is answered unseen.
func answerGate(ctx context.Context, d *app.RunDeps, handle string, pos engine.Position, given engine.Answer) (*run.Answer, error) {
	caller := d.Caller
	caller.Via = run.ViaTerminal
	return d.Runs.Answer(ctx, caller, run.AnswerRequest{Ref: run.Ref{Handle: handle}, Step: pos.ID, Answer: given})
}

// gateApprover asks the user for the answer to a gate of a run.
type gateApprover struct {
	*app.Approver
	view *walk.Terminal
}

// newGateApprover returns a gateApprover that asks and shows runs at the terminal of p.
func newGateApprover(p *app.Approver) *gateApprover {
	return &gateApprover{Approver: p, view: walk.NewTerminalFrom(p.Prompter)}
}

// showGate prints the gate to confirm.
func (p *gateApprover) showGate(k *runReplay) {
	r := k.details.Record
	fmt.Fprintf(p.Out, "%s %s\n", p.Styles.Bold(app.OneLine(r.Name)), p.Styles.Faint(r.ID))
	if r.Goal != "" {
		p.PrintText("", r.Goal)
	}
	p.showOutput(k)
	p.view.Position(&k.Walk, k.details.Position)
	fmt.Fprintln(p.Out)
}

// showOutput prints the output to confirm.
func (p *gateApprover) showOutput(k *runReplay) {
	submitted := k.details.Submission
	if submitted == nil {
		fmt.Fprintf(p.Out, "\n%s\n", p.Styles.Bold("This gate has no output to review."))
		return
	}
	fmt.Fprintf(p.Out, "\n%s\n", p.Styles.Bold("Output of "+app.OneLine(submitted.Step)))
	for _, c := range submitted.Checks {
		fmt.Fprintln(p.Out, "  "+app.OneLine(describeCheck(c)))
	}
	p.PrintText("  ", submitted.Output)
	if submitted.Notes != "" {
		p.PrintText("  ", "Notes: "+submitted.Notes)
	}
}

// describeCheck returns a check that the server executed for the output, with its result.
func describeCheck(c run.CheckSummary) string {
	switch {
	case c.Undefined:
		return "not checked: " + c.Check + ": the project does not define it"
	case c.Passed:
		return "checked by Guideway: " + c.Check
	default:
		return "check failed: " + c.Check
	}
}

// askAnswer asks for an option and a note.
func (p *gateApprover) askAnswer(ctx context.Context, w *walk.Walk, pos engine.Position) (*engine.Answer, error) {
	for {
		line, err := p.AskLine(ctx, fmt.Sprintf("Answer, 1 to %d: ", len(pos.Options)))
		if errors.Is(err, io.EOF) {
			return nil, app.StoppedError()
		}
		if err != nil {
			return nil, err
		}
		word := strings.TrimSpace(line)
		if note, ok := walk.ParseCommand(word, "decline"); ok && w.Workflow.IsDeclinable(pos) {
			return &engine.Answer{Decline: true, Note: note}, nil
		}
		option, ok := walk.FindOption(pos.Options, word)
		if !ok {
			if word != "" {
				fmt.Fprintf(p.Out, "There is no option %q; enter a number from 1 to %d, or the id of an option.\n", app.OneLine(word), len(pos.Options))
			}
			continue
		}
		note, err := p.AskLine(ctx, "Note (optional): ")
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return &engine.Answer{OptionID: option, Note: strings.TrimSpace(note)}, nil
	}
}
