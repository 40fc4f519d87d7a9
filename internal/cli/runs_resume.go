package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// runsResumeOptions is the command line of guideway runs resume.
type runsResumeOptions struct {
	app *app
	// Words are what somebody remembers of the run, or its id.
	Words []string
	Here  bool
	JSON  bool
}

func newRunsResumeCmd(a *app, run func(context.Context, *runsResumeOptions) error) *cobra.Command {
	o := &runsResumeOptions{app: a}
	cmd := &cobra.Command{
		Use:   "resume [RUN|WORDS...]",
		Short: "Find a run by words, and go on with it in the terminal",
		Long: `Find a run by what you remember of it - words of its goal, its notes, the workflow,
the project or the branch - and go on with it in the terminal, in the agent's place:
the run is the same, an agent can take it up again later. Without words, the runs of
this project that were last worked on are offered.

With --json the runs that were found are printed, and nothing is done.`,
		Example: `  guideway runs resume auth refactoring
  guideway runs resume r_06bmyb2ad4ft47c6abwmtxs
  guideway runs resume auth --json`,
		Args:              cobra.ArbitraryArgs,
		ValidArgsFunction: a.completeRuns(goesOn),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Words = args
			if host := a.host; !o.JSON && (!host.InTerminal || !host.OutTerminal) {
				return usageError{err: guideway.Errorf(guideway.CodeInvalid, "there is no terminal to go on at: the input or the output is a file or a pipe").
					WithFix("guideway runs resume %s--json, to find runs", strings.Join(append(slices.Clone(args), ""), " "))}
			}
			return run(cmd.Context(), o)
		},
	}
	cmd.Flags().BoolVar(&o.Here, "here", false, "only runs of the project in the working directory")
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print the runs that were found, in JSON")
	return cmd
}

// runsResumeAnswer is the answer of guideway runs resume --json.
type runsResumeAnswer struct {
	Candidates []run.Candidate `json:"candidates"`
}

func runRunsResume(ctx context.Context, o *runsResumeOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	return o.app.withRuns(ctx, func(ctx context.Context, d *runDesk) error {
		candidates, err := d.runs.Resume(ctx, d.caller, o.request(d.here))
		if err != nil {
			return forPerson(err)
		}
		if o.JSON {
			return writeJSON(o.app.host.Out, runsResumeAnswer{Candidates: orEmpty(candidates)})
		}
		t := newTerminal(o.app.host)
		t.kept = true
		id, err := o.pick(ctx, t, candidates)
		if err != nil {
			return err
		}
		details, err := d.runs.Get(ctx, d.caller, run.Ref{RunID: id})
		if err != nil {
			return forPerson(err)
		}
		person := &gateApprover{approver: &approver{prompter: t.prompt, secret: o.app.host.passphraseFile(cfg)}, view: t}
		err = (&resumed{runDesk: d, person: person}).lead(ctx, details)
		if errors.Is(err, errStopped) {
			fmt.Fprintf(t.out, "\nThe run is kept. Go on with it: guideway runs resume %s\n", id)
			return nil
		}
		return err
	})
}

func (o *runsResumeOptions) request(here run.Project) run.ResumeRequest {
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

// pick chooses the run: the only one that goes on, or the one that the person
// names.
func (o *runsResumeOptions) pick(ctx context.Context, t *terminal, candidates []run.Candidate) (string, error) {
	open := slices.DeleteFunc(slices.Clone(candidates), func(c run.Candidate) bool {
		return c.Status != guide.StatusRunning && c.Status != guide.StatusWaiting
	})
	switch {
	case len(candidates) == 0:
		return "", guideway.Errorf(guideway.CodeNotFound, "no run was found by %q", strings.Join(o.Words, " ")).
			WithFix("guideway runs list")
	case len(open) == 0:
		c := candidates[0]
		return "", guideway.Errorf(guideway.CodeNotFound, "run %s, %s, is %s", c.RunID, oneLine(c.Goal), c.Status).
			WithFix("guideway runs fork %s", c.RunID)
	case len(open) == 1:
		return open[0].RunID, nil
	}
	for i, c := range open {
		goal := oneLine(c.Goal)
		if goal == "" {
			goal = oneLine(c.WorkflowID)
		}
		fmt.Fprintf(t.out, "%2d. %s\n", i+1, t.styles.bold(cut(goal, max(t.width, 72)-4)))
		about := fmt.Sprintf("%s at %s, %s", c.WorkflowID, c.Position.ID, t.prompt.host.ago(c.UpdatedAt))
		if where := projectWords(c.Project); where != "" {
			about += ", " + where
		}
		t.prose("    ", about)
	}
	for {
		line, err := t.prompt.askLine(ctx, fmt.Sprintf("Which one, 1 to %d: ", len(open)))
		if errors.Is(err, io.EOF) {
			return "", stopped()
		}
		if err != nil {
			return "", err
		}
		if n, err := strconv.Atoi(strings.TrimSpace(line)); err == nil && n >= 1 && n <= len(open) {
			return open[n-1].RunID, nil
		}
	}
}

// resumed is a kept run that a person goes on with in the agent's place.
type resumed struct {
	*runDesk
	person *gateApprover
	kept   *keptWalk
	at     *run.Answer
}

// lead goes from position to position until the run ends or the person stops.
func (r *resumed) lead(ctx context.Context, details *run.Details) error {
	var err error
	if r.kept, err = newKeptWalk(details); err != nil {
		return err
	}
	t, w := r.person.view, &r.kept.walk
	t.begin(w)
	if details.Goal != "" {
		t.prose("", "Goal: "+details.Goal)
	}
	r.at = standing(details)
	if r.at.Position.Kind == guide.PositionGate {
		r.person.showHandedIn(r.kept) // by somebody else, or another day
	}
	for range maxMoves {
		if err := ctx.Err(); err != nil {
			return interrupted(err)
		}
		if r.at.Position.Kind == guide.PositionEnd {
			t.end(w)
			return nil
		}
		t.position(w, r.at.Position)
		if err := r.move(ctx); err != nil {
			return err
		}
	}
	return guideway.Errorf(guideway.CodeRefused, "the run did not end within %d moves", maxMoves)
}

// standing is where the run stands by what was read of it: what is shown and the
// handle that it is answered by are of one moment.
func standing(d *run.Details) *run.Answer {
	return &run.Answer{RunID: d.ID, Handle: d.Current, WorkflowID: d.Workflow, Status: d.Status, Position: d.Position}
}

// move hands in what the position asks for, as often as it is refused.
func (r *resumed) move(ctx context.Context) error {
	t := r.person.view
	for {
		_, err := r.handIn(ctx)
		refusal, refused := run.IsRefusal(err)
		switch {
		case err == nil:
			return r.catchUp(ctx)
		case !refused:
			return err
		case refusal.Rule == run.RuleStaleHandle:
			fmt.Fprintf(t.out, "\n%s: somebody else has gone on with this run; nothing of yours was taken.\n", t.styles.yellow("Moved on"))
			err := r.catchUp(ctx)
			if r.at.Position.Kind == guide.PositionGate {
				r.person.showHandedIn(r.kept)
			}
			return err
		}
		said := &guide.Refusal{Rule: refusal.Rule, Message: refusal.Message, Issues: refusal.Issues}
		t.refusal(&r.kept.walk, said)
		if err := t.refused(r.at.Position, said); err != nil {
			return err
		}
	}
}

// handIn asks for what the position wants and hands it in. A gate that only a
// person opens wants the passphrase besides.
func (r *resumed) handIn(ctx context.Context) (*run.Answer, error) {
	pos := r.at.Position
	if pos.Kind == guide.PositionGate && pos.Person {
		if err := r.person.prove(ctx); err != nil {
			return nil, err
		}
		given, err := r.person.answer(ctx, &r.kept.walk, pos)
		if err != nil {
			return nil, err
		}
		return r.answerFor(ctx, r.at.Handle, pos, *given)
	}
	given, err := r.person.view.next(ctx, &r.kept.walk, pos)
	if err != nil {
		return nil, err
	}
	return r.runs.Continue(ctx, r.caller, run.ContinueRequest{
		Handle: r.at.Handle, Step: pos.ID, Output: given.Output, Notes: given.Notes,
		Context: given.Context, Answer: given.Answer, Skip: given.Skip,
	})
}

// catchUp shows what has happened since, and goes on from where the run stands.
func (r *resumed) catchUp(ctx context.Context) error {
	details, err := r.runs.Get(ctx, r.caller, run.Ref{RunID: r.at.RunID})
	if err != nil {
		return forPerson(err)
	}
	seen := r.kept.details.Seq
	r.kept.details, r.at = details, standing(details)
	news := slices.DeleteFunc(slices.Clone(details.Events), func(e run.Event) bool { return e.Seq <= seen })
	facts, err := r.kept.follow(news)
	for _, fact := range facts {
		r.person.view.event(&r.kept.walk, fact)
	}
	return err
}
