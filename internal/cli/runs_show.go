package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/spf13/cobra"
)

// runsShowOptions is the command line of guideway runs show.
type runsShowOptions struct {
	app    *app
	Run    string
	Events bool
	Vars   bool
	// State prints the state document and nothing else.
	State bool
	JSON  bool
}

func newRunsShowCmd(a *app, run func(context.Context, *runsShowOptions) error) *cobra.Command {
	o := &runsShowOptions{app: a}
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "Show what a run is about, where it stands and what has happened",
		Long: `Show what a run is about, where it stands and what has happened.

With --state it is told as a state document, in JSON: what "guideway schema phases
--kind state" describes. "guideway runs import" goes on where such a document says.`,
		Example: `  guideway runs show r_06bmyb2ad4ft47c6abwmtxs
  guideway runs show r_06bmyb2ad4ft47c6abwmtxs --events --vars
  guideway runs show r_06bmyb2ad4ft47c6abwmtxs --state > state.json`,
		Args:              oneRun("show"),
		ValidArgsFunction: a.completeRuns(anyRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if o.State && (o.Events || o.Vars) {
				return usageError{err: guideway.Errorf(guideway.CodeInvalid, "--state prints a state document and nothing else; the variables and the history are in it").
					WithFix("guideway runs show %s --state", o.Run)}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Events, "events", false, "show every event, with whose doing it was")
	f.BoolVar(&o.Vars, "vars", false, "show the variables")
	f.BoolVar(&o.State, "state", false, "print the run as a state document, in JSON, and nothing else")
	f.BoolVar(&o.JSON, "json", false, "answer in JSON, with all of it")
	return cmd
}

func runRunsShow(ctx context.Context, o *runsShowOptions) error {
	return o.app.withRuns(ctx, func(ctx context.Context, d *runDesk) error {
		if o.State {
			state, err := d.runs.State(ctx, d.caller, refOf(o.Run))
			if err != nil {
				return forPerson(err)
			}
			return writeJSON(o.app.host.Out, state)
		}
		details, err := d.runs.Get(ctx, d.caller, refOf(o.Run))
		if err != nil {
			return forPerson(err)
		}
		if o.JSON {
			return writeJSON(o.app.host.Out, details)
		}
		k, err := newKeptWalk(details)
		if err != nil {
			return err
		}
		o.write(k)
		return nil
	})
}

func (o *runsShowOptions) write(k *keptWalk) {
	host, r := o.app.host, k.details.Record
	t := newTerminal(host)
	t.asksNothing = true
	fmt.Fprintf(t.out, "%s %s %s\n", t.styles.bold(oneLine(r.Name)), oneLine(r.Workflow), t.styles.faint(oneLine(r.Version)))
	if r.Goal != "" {
		t.prose("", r.Goal)
	}
	fmt.Fprintln(t.out)
	line := func(name, text string) {
		if text != "" {
			fmt.Fprintf(t.out, "%-11s %s\n", name, text)
		}
	}
	line("run", r.ID)
	line("status", t.styles.status(r)+", "+k.walk.past.String())
	line("project", projectWords(r.Project))
	line("started", whenWords(r.Created)+byWords(r.Client))
	line("changed", whenWords(r.Updated)+" ("+host.ago(r.Updated)+")")
	if r.Parent != "" {
		line("forked", fmt.Sprintf("from %s, after event %d", r.Parent, r.ParentSeq))
	}
	line("definition", r.Hash)
	line("from", k.provenance())
	if o.Events {
		fmt.Fprintf(t.out, "\n%s\n", t.styles.bold("Events"))
		for _, e := range k.details.Events {
			k.writeEvent(t, e)
		}
	}
	if o.Vars {
		t.variables(k.details.Variables)
	}
	if pos := k.details.Position; pos.Kind != guide.PositionEnd {
		t.position(&k.walk, pos)
	}
	for _, next := range nextCommands(r) {
		fmt.Fprintf(t.out, "\n%s\n", t.styles.faint(next))
	}
}

// provenance says which source the definition came from, as far as the run knows.
func (k *keptWalk) provenance() string {
	for _, e := range k.details.Events {
		var created run.Created
		if e.Kind != run.KindCreated || json.Unmarshal(e.Data, &created) != nil || created.Source == "" {
			continue
		}
		if created.Revision == "" {
			return oneLine(created.Source)
		}
		return oneLine(created.Source) + " at " + shortRevision(created.Revision)
	}
	return ""
}

// nextCommands are what a person can do with a run.
func nextCommands(r run.Record) []string {
	switch {
	case r.Person:
		return []string{"Open the gate: guideway runs approve " + r.ID}
	case goesOn(r):
		return []string{"Go on in the terminal: guideway runs resume " + r.ID}
	default:
		return nil
	}
}

func projectWords(p run.Project) string {
	text := oneLine(p.Path)
	if text == "" {
		text = p.ID
	}
	if p.Branch != "" {
		text += ", branch " + oneLine(p.Branch)
	}
	if p.Commit != "" {
		text += " at " + oneLine(p.Commit)[:min(12, len(oneLine(p.Commit)))]
	}
	return text
}

func byWords(client string) string {
	if client == "" {
		return ""
	}
	return " by " + oneLine(client)
}

// keptWalk is a run that is kept, as a walk that can be shown.
type keptWalk struct {
	walk
	details *run.Details
}

// newKeptWalk replays a run.
func newKeptWalk(details *run.Details) (*keptWalk, error) {
	def, problems := definition.Parse("", []byte(details.Definition))
	if def == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the definition of run %s does not load: %s", details.ID, problems[0].Message).
			WithFix("guideway runs verify %s", details.ID)
	}
	k := &keptWalk{details: details}
	k.def = found{Definition: def}
	k.course = k.def.newCourse()
	_, err := k.follow(details.Events)
	return k, err
}

// follow replays the events that came after those that are known, and gives the
// engine's among them.
func (k *keptWalk) follow(events []run.Event) ([]guide.Event, error) {
	var facts []guide.Event
	for _, e := range events {
		fact, ok, err := factOf(e)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if k.state, err = k.course.FoldFrom(k.state, []guide.Event{fact}); err != nil {
			return nil, err
		}
		k.past.add(&k.walk, fact)
		facts = append(facts, fact)
	}
	return facts, nil
}

// factOf gives the engine's event; ok is false for one that is not the engine's.
func factOf(e run.Event) (fact guide.Event, ok bool, err error) {
	if e.Kind == run.KindCreated || e.Kind == run.KindRefused || e.Kind == run.KindMarked {
		return fact, false, nil
	}
	dec := json.NewDecoder(bytes.NewReader(e.Data))
	dec.UseNumber()
	if err := dec.Decode(&fact); err != nil {
		return fact, false, guideway.Errorf(guideway.CodeUnavailable, "event %d cannot be read: %w", e.Seq, err)
	}
	return fact, true, nil
}

// writeEvent tells of an event on a line, and of what was handed in below it.
func (k *keptWalk) writeEvent(t *terminal, e run.Event) {
	mark, text, more := k.eventLine(e)
	fmt.Fprintf(t.out, "%5d  %s  %s  %s  %s\n", e.Seq, t.styles.faint(e.At.Local().Format("01-02 15:04:05")),
		t.mark(mark), text, t.styles.faint("("+viaWords(e.By)+")"))
	for _, line := range more {
		fmt.Fprintf(t.out, "         %s\n", cut(line, max(t.width, 72)-9))
	}
}

// inBrackets says whether the notes of an event stand behind its words.
func inBrackets(kind guide.EventKind) bool {
	switch kind {
	case guide.EventGateAnswered, guide.EventCheckpointAnswer, guide.EventBranchTaken, guide.EventAsserted:
		return true
	default:
		return false
	}
}

func (k *keptWalk) eventLine(e run.Event) (mark, text string, more []string) {
	switch e.Kind {
	case run.KindCreated:
		var created run.Created
		_ = json.Unmarshal(e.Data, &created) // what cannot be read has no words
		return markStart, oneLine(created.Workflow), nil
	case run.KindRefused:
		var refused run.Refused
		_ = json.Unmarshal(e.Data, &refused)
		for _, issue := range refused.Issues {
			more = append(more, "- "+oneLine(issue))
		}
		return markRefused, oneLine(refused.Step + ": " + refused.Message), more
	case run.KindMarked:
		var marked run.Marked
		_ = json.Unmarshal(e.Data, &marked)
		return markSet, "critical: " + oneLine(strings.Join(marked.Keys, ", ")), nil
	}
	fact, _, err := factOf(e)
	if err != nil {
		return e.Kind, oneLine(err.Error()), nil
	}
	if fact.Output != "" {
		more = append(more, "output: "+oneLine(fact.Output))
	}
	if fact.Notes != "" && !inBrackets(fact.Kind) {
		more = append(more, "notes: "+oneLine(fact.Notes))
	}
	if len(fact.Vars) > 0 && (fact.Kind == guide.EventStepCompleted || fact.Kind == guide.EventAsserted) {
		more = append(more, "sets: "+valueWords(fact.Vars))
	}
	if mark, text = eventWords(&k.walk, fact); text != "" {
		return mark, text, more
	}
	mark, text = plainWords(fact)
	return mark, text, more
}

// plainWords tells of the events that a walk passes over, because the position
// behind them says it.
func plainWords(fact guide.Event) (mark, text string) {
	switch fact.Kind {
	case guide.EventRunStarted, guide.EventContextSet:
		mark = markSet
		text = strings.TrimSpace(valueWords(fact.Vars))
		if len(fact.Vars) == 0 {
			text = "nothing"
		}
	case guide.EventGateOpened, guide.EventCheckpointReached, guide.EventDecisionOffered:
		mark, text = markGate, fact.Step+": opened"
	case guide.EventStepStarted:
		mark, text = markBegun, fact.Step
	case guide.EventDecisionReached, guide.EventDecisionPassed:
		mark, text = markWay, fact.Step+": "+strings.TrimPrefix(string(fact.Kind), "decision_")
	case guide.EventPhaseExited:
		mark, text = markPhase, fact.Step+": left"
	case guide.EventChecked:
		mark, text = markChecked, oneLine(strings.Trim(fact.Target+": "+fact.Message, ": "))
	case guide.EventRunCompleted:
		mark, text = markEnd, "completed"
	case guide.EventRunAborted:
		mark, text = markEnd, strings.TrimSuffix("aborted: "+oneLine(fact.Reason), ": ")
	default:
		mark, text = string(fact.Kind), fact.Step
	}
	return mark, text
}

// viaWords says whose doing an event was, and how that is known.
func viaWords(by run.By) string {
	who := map[run.Via]string{
		run.ViaAgent: "agent", run.ViaServer: "server", run.ViaElicitation: "person, in the client",
		run.ViaTerminal: "person, at a terminal", run.ViaBrowser: "person, in the browser", run.ViaToken: "person, by token",
		run.ViaImport: "as the bundle says",
	}[by.Via]
	if who == "" {
		who = string(by.Via)
	}
	if by.Client != "" {
		who += ", " + oneLine(by.Client)
	}
	return who
}
