package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// runsApproveOptions is the command line of guideway runs approve.
type runsApproveOptions struct {
	app *app
	// Run is empty where a passphrase is set.
	Run           string
	SetPassphrase bool
}

func newRunsApproveCmd(a *app, do func(context.Context, *runsApproveOptions) error) *cobra.Command {
	o := &runsApproveOptions{app: a}
	cmd := &cobra.Command{
		Use:   "approve {RUN|--set-passphrase}",
		Short: "Answer the gate of a run, as a person",
		Long: `Answer the gate that a run waits at. It shows what is to be confirmed, asks for your
passphrase, and then for the answer and a note. Some gates only a person opens: no
answer of an agent counts there.

It is off until you have set a passphrase, with --set-passphrase; to set another one
takes the old one. It is asked for at a terminal and nowhere else: not by a flag, not
by a variable, not from a file. Wrong ones make the next one wait.`,
		Example: `  guideway runs approve --set-passphrase
  guideway runs list --person
  guideway runs approve r_06bmyb2ad4ft47c6abwmtxs`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.SetPassphrase {
				return noArgs(cmd, args)
			}
			return oneRun("approve")(cmd, args)
		},
		ValidArgsFunction: a.completeRuns(func(r run.Record) bool { return r.Kind == guide.PositionGate }),
		RunE:              runWithArg(do, o, &o.Run, a.host.asksPeople),
	}
	cmd.Flags().BoolVar(&o.SetPassphrase, "set-passphrase", false, "set the passphrase that is asked for")
	return cmd
}

func runRunsApprove(ctx context.Context, o *runsApproveOptions) error {
	cfg, err := o.app.load()
	if err != nil {
		return err
	}
	person := newGateApprover(newApprover(o.app.host, cfg))
	if o.SetPassphrase {
		return person.setPassphrase(ctx)
	}
	// Without a passphrase nothing is asked for: no gate opens here.
	if err := person.secret.Ready(); err != nil {
		return err
	}
	return o.app.changeRun(ctx, "Answered", false, func(ctx context.Context, d *runDesk) (*run.Answer, error) {
		return o.approve(ctx, d, person)
	})
}

func (o *runsApproveOptions) approve(ctx context.Context, d *runDesk, person *gateApprover) (*run.Answer, error) {
	details, err := d.runs.Get(ctx, d.caller, refOf(o.Run))
	if err != nil {
		return nil, err
	}
	pos := details.Position
	if pos.Kind != guide.PositionGate {
		return nil, guideway.Errorf(guideway.CodeConflict, "run %s waits for no answer: it is %s", details.ID, details.Status).
			WithFix("guideway runs list --person")
	}
	k, err := newKeptWalk(details)
	if err != nil {
		return nil, err
	}
	person.show(k)
	if err := person.prove(ctx); err != nil {
		return nil, err
	}
	given, err := person.answer(ctx, &k.walk, pos)
	if err != nil {
		return nil, err
	}
	answer, err := d.answerFor(ctx, details.Current, pos, *given)
	if refusal, ok := run.IsRefusal(err); ok && refusal.Rule == run.RuleStaleHandle {
		return nil, guideway.Errorf(guideway.CodeConflict, "somebody else has gone on with this run; nothing of yours was taken").
			WithFix("guideway runs approve %s, which shows it as it is now", details.ID)
	}
	return answer, err
}

// answerFor answers a gate for the person who has typed the passphrase. The handle
// is that of the position which was shown: no later one is answered unseen.
func (d *runDesk) answerFor(ctx context.Context, handle string, pos guide.Position, given guide.Answer) (*run.Answer, error) {
	caller := d.caller
	caller.Via = run.ViaTerminal
	return d.runs.Answer(ctx, caller, run.AnswerRequest{Ref: run.Ref{Handle: handle}, Step: pos.ID, Answer: given})
}

// gateApprover asks a person for the answer to a gate of a run.
type gateApprover struct {
	*approver
	view *terminal
}

// newGateApprover returns a gateApprover that shows runs by view.
func newGateApprover(p *approver) *gateApprover {
	return &gateApprover{approver: p, view: newTerminalOn(p.prompter)}
}

// show tells what is to be confirmed.
func (p *gateApprover) show(k *keptWalk) {
	r := k.details.Record
	fmt.Fprintf(p.out, "%s %s\n", p.styles.bold(oneLine(r.Name)), p.styles.faint(r.ID))
	if r.Goal != "" {
		p.prose("", r.Goal)
	}
	p.showHandedIn(k)
	p.view.position(&k.walk, k.details.Position)
	fmt.Fprintln(p.out)
}

// showHandedIn tells what the answer to the gate is about.
func (p *gateApprover) showHandedIn(k *keptWalk) {
	step, output, notes := k.handedIn()
	if output == "" && notes == "" {
		return
	}
	fmt.Fprintf(p.out, "\n%s\n", p.styles.bold("The output of "+step))
	p.prose("  ", output)
	if notes != "" {
		p.prose("  ", "Notes: "+notes)
	}
}

// handedIn gives what was handed in for the step that the run waits at; at a
// checkpoint, what was last handed in in its phase.
func (k *keptWalk) handedIn() (step, output, notes string) {
	pos := k.details.Position
	for _, e := range slices.Backward(k.details.Events) {
		fact, ok, err := factOf(e)
		if err != nil || !ok {
			continue
		}
		switch {
		case fact.Kind == guide.EventPhaseEntered:
			return "", "", ""
		case fact.Kind == guide.EventStepCompleted && pos.Phase == nil && fact.Step != pos.ID:
			return "", "", "" // a loop that has not begun
		case fact.Kind == guide.EventStepCompleted:
			return oneLine(fact.Step), fact.Output, fact.Notes
		}
	}
	return "", "", ""
}

// answer asks for an option and a note.
func (p *gateApprover) answer(ctx context.Context, w *walk, pos guide.Position) (*guide.Answer, error) {
	for {
		line, err := p.askLine(ctx, fmt.Sprintf("Your answer, 1 to %d: ", len(pos.Options)))
		if errors.Is(err, io.EOF) {
			return nil, stopped()
		}
		if err != nil {
			return nil, err
		}
		word := strings.TrimSpace(line)
		if note, ok := commandOf(word, "decline"); ok && w.course.declinable(pos) {
			return &guide.Answer{Decline: true, Note: note}, nil
		}
		option, ok := choose(pos.Options, word)
		if !ok {
			if word != "" {
				fmt.Fprintf(p.out, "There is no option %q.\n", oneLine(word))
			}
			continue
		}
		note, err := p.askLine(ctx, "A note, or nothing: ")
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return &guide.Answer{OptionID: option, Note: strings.TrimSpace(note)}, nil
	}
}
