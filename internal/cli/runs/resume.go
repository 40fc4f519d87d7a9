package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// RunsResumeOptions is the command line of guideway runs resume.
type RunsResumeOptions struct {
	app *app.App
	// Words are words to search for, or the id of a run.
	Words []string
	Here  bool
	JSON  bool
}

func NewRunsResumeCmd(a *app.App, run func(context.Context, *RunsResumeOptions) error) *cobra.Command {
	o := &RunsResumeOptions{app: a}
	cmd := &cobra.Command{
		Use:               "resume [RUN|WORDS...]",
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: completeRuns(a, acceptsCommands),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = args
			if host := a.Host; !o.JSON && (!host.InTerminal || !host.OutTerminal) {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "guideway runs resume without --json requires a terminal, but the input or the output is not a terminal").
					WithFix("guideway runs resume %s--json, to find runs", strings.Join(append(slices.Clone(args), ""), " "))}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.Here, "here", false, "find only runs of the project in the working directory")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print the runs found as JSON")
	return cmd
}

// runsResumeAnswer is the answer of guideway runs resume --json.
type runsResumeAnswer struct {
	Candidates []run.Candidate `json:"candidates"`
}

func runRunsResume(ctx context.Context, o *RunsResumeOptions) error {
	cfg, err := o.app.Load()
	if err != nil {
		return err
	}
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		candidates, err := d.Runs.Resume(ctx, d.Caller, o.newRequest(d.Project))
		if err != nil {
			return userError(err)
		}
		if o.JSON {
			return app.WriteJSON(o.app.Host.Out, runsResumeAnswer{Candidates: app.OrEmpty(candidates)})
		}
		t := walk.NewTerminal(o.app.Host)
		t.RunIsSaved = true
		id, err := o.chooseRun(ctx, t, candidates)
		if err != nil {
			return err
		}
		details, err := d.Runs.GetWithEvents(ctx, d.Caller, run.Ref{RunID: id})
		if err != nil {
			return userError(err)
		}
		person := &gateApprover{Approver: &app.Approver{Prompter: t.Prompter, Passphrase: o.app.Host.PassphraseFile(cfg)}, view: t}
		err = (&resumedRun{RunDeps: d, person: person}).runToEnd(ctx, details)
		if errors.Is(err, walk.ErrStopped) {
			fmt.Fprintf(t.Out, "\nThe run is saved. To resume: guideway runs resume %s\n", id)
			return nil
		}
		return err
	})
}

func (o *RunsResumeOptions) newRequest(here run.Project) run.ResumeRequest {
	r := run.ResumeRequest{Here: here}
	if o.Here {
		r.Project = here.ID
	}
	if len(o.Words) == 1 && strings.HasPrefix(o.Words[0], "r_") {
		r.RunID = o.Words[0]
	} else {
		r.Query = strings.Join(o.Words, " ")
	}
	return r
}

// chooseRun returns the only run that can be resumed, or the one that the user chooses.
func (o *RunsResumeOptions) chooseRun(ctx context.Context, t *walk.Terminal, candidates []run.Candidate) (string, error) {
	open := slices.DeleteFunc(slices.Clone(candidates), func(c run.Candidate) bool {
		return c.Status != engine.StatusRunning && c.Status != engine.StatusWaiting
	})
	switch {
	case len(candidates) == 0 && len(o.Words) == 0:
		return "", guideway.Errorf(guideway.CodeNotFound, "there are no runs to resume").
			WithFix("guideway runs list")
	case len(candidates) == 0:
		return "", guideway.Errorf(guideway.CodeNotFound, "no run matches %q", strings.Join(o.Words, " ")).
			WithFix("guideway runs list")
	case len(open) == 0:
		var ended []string
		for _, c := range candidates {
			ended = append(ended, fmt.Sprintf("%s, %s, is %s", c.RunID, cmp.Or(app.OneLine(c.Goal), app.OneLine(c.WorkflowID)), c.Status))
		}
		return "", guideway.Errorf(guideway.CodeNotFound, "every run found has ended: %s", strings.Join(ended, "; ")).
			WithFix("guideway runs fork %s", candidates[0].RunID)
	case len(open) == 1:
		return open[0].RunID, nil
	}
	for i, c := range open {
		goal := cmp.Or(app.OneLine(c.Goal), app.OneLine(c.WorkflowID))
		fmt.Fprintf(t.Out, "%2d. %s\n", i+1, t.Styles.Bold(app.Truncate(goal, max(t.Width, 72)-4)))
		about := fmt.Sprintf("%s at %s, %s", c.WorkflowID, c.Position.ID, t.Prompter.Host.FormatAge(c.UpdatedAt))
		if where := projectWords(c.Project); where != "" {
			about += ", " + where
		}
		t.PrintText("    ", about)
	}
	for {
		line, err := t.Prompter.AskLine(ctx, fmt.Sprintf("Choose a run, 1 to %d: ", len(open)))
		if errors.Is(err, io.EOF) {
			return "", app.StoppedError()
		}
		if err != nil {
			return "", err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= len(open) {
			return open[n-1].RunID, nil
		}
	}
}

// resumedRun is a stored run that the user resumes in place of the agent.
type resumedRun struct {
	*app.RunDeps
	person *gateApprover
	replay *runReplay
	at     *run.Answer
}

// runToEnd submits input until the run ends or the user stops.
func (r *resumedRun) runToEnd(ctx context.Context, details *run.Details) error {
	var err error
	if r.replay, err = newRunReplay(details); err != nil {
		return err
	}
	t, w := r.person.view, &r.replay.Walk
	t.Begin(w)
	if details.Goal != "" {
		t.PrintText("", "Goal: "+details.Goal)
	}
	r.at = answerOf(details)
	if r.at.Position.Kind == engine.PositionGate {
		r.person.showOutput(r.replay) // the output was submitted earlier or by another client
	}
	for range walk.MaxMoves {
		if err := ctx.Err(); err != nil {
			return app.InterruptedError(err)
		}
		if r.at.Position.Kind == engine.PositionEnd {
			t.End(w)
			return nil
		}
		t.Position(w, r.at.Position)
		if err := r.submitUntilAccepted(ctx); err != nil {
			return err
		}
	}
	return guideway.Errorf(guideway.CodeRefused, "the run did not end within %d commands", walk.MaxMoves).
		WithFix("guideway runs resume %s", details.ID)
}

// answerOf returns the state of a run as an answer. The position and the handle come from
// the same read, so that the handle answers what was shown.
func answerOf(d *run.Details) *run.Answer {
	return &run.Answer{RunID: d.ID, Handle: d.Current, WorkflowID: d.Workflow, Status: d.Status, Position: d.Position}
}

// submitUntilAccepted submits input for the position until it is accepted, or the run has
// moved on.
func (r *resumedRun) submitUntilAccepted(ctx context.Context) error {
	t := r.person.view
	for {
		_, err := r.submitInput(ctx)
		refusal, refused := run.AsRefusal(err)
		switch {
		case err == nil:
			return r.showNewEvents(ctx)
		case !refused:
			return err
		case refusal.Rule == run.RuleStaleHandle:
			fmt.Fprintf(t.Out, "\n%s: the run has changed in the meantime.\n", t.Styles.Yellow("Not recorded"))
			err := r.showNewEvents(ctx)
			if r.at.Position.Kind == engine.PositionGate {
				r.person.showOutput(r.replay)
			}
			return err
		}
		said := &engine.Refusal{Rule: refusal.Rule, Message: refusal.Message, Issues: refusal.Issues}
		t.Refusal(&r.replay.Walk, said)
		if err := t.HandleRefusal(r.at.Position, said); err != nil {
			return err
		}
	}
}

// submitInput asks for the input of the position and submits it. A gate that requires human
// approval also needs the passphrase.
func (r *resumedRun) submitInput(ctx context.Context) (*run.Answer, error) {
	pos := r.at.Position
	if pos.Kind == engine.PositionGate && pos.Person {
		if err := r.person.CheckPassphrase(ctx); err != nil {
			return nil, err
		}
		given, err := r.person.askAnswer(ctx, &r.replay.Walk, pos)
		if err != nil {
			return nil, err
		}
		return answerGate(ctx, r.RunDeps, r.at.Handle, pos, *given)
	}
	given, err := r.person.view.NextInput(ctx, &r.replay.Walk, pos)
	if err != nil {
		return nil, err
	}
	return r.Runs.Continue(ctx, r.Caller, run.ContinueRequest{
		Handle: r.at.Handle, Step: pos.ID, Output: given.Output, Notes: given.Notes,
		Context: given.Context, Answer: given.Answer, Skip: given.Skip,
	})
}

// showNewEvents prints the events since the last call and updates the position.
func (r *resumedRun) showNewEvents(ctx context.Context) error {
	details, err := r.Runs.GetWithEvents(ctx, r.Caller, run.Ref{RunID: r.at.RunID})
	if err != nil {
		return userError(err)
	}
	seen := r.replay.details.Seq
	r.replay.details, r.at = details, answerOf(details)
	news := slices.DeleteFunc(slices.Clone(details.Events), func(e run.Event) bool { return e.Seq <= seen })
	facts, err := r.replay.replayEvents(news)
	for _, fact := range facts {
		r.person.view.Event(&r.replay.Walk, fact)
	}
	return err
}
