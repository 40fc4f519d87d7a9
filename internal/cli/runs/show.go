package runs

import "github.com/guideway-dev/guideway/internal/cli/app"

import "github.com/guideway-dev/guideway/internal/cli/walk"

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/clienthook"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/evidence"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/spf13/cobra"
)

// RunsShowOptions is the command line of guideway runs show.
type RunsShowOptions struct {
	app    *app.App
	Run    string
	Events bool
	Vars   bool
	// State prints only the state document.
	State bool
	JSON  bool
}

func NewRunsShowCmd(a *app.App, run func(context.Context, *RunsShowOptions) error) *cobra.Command {
	o := &RunsShowOptions{app: a}
	cmd := &cobra.Command{
		Use:               "show RUN",
		Args:              exactlyOneRun("show"),
		ValidArgsFunction: completeRuns(a, anyRun),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Run = args[0]
			if o.State && (o.Events || o.Vars) {
				return app.UsageError{Err: guideway.Errorf(guideway.CodeInvalid, "--state cannot be combined with --events or --vars; the state document has the variables and the history").
					WithFix("guideway runs show %s --state", o.Run)}
			}
			return run(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Events, "events", false, "show every event, with its time and who caused it")
	f.BoolVar(&o.Vars, "vars", false, "show the variables")
	f.BoolVar(&o.State, "state", false, "print the run as a JSON state document")
	f.BoolVar(&o.JSON, "json", false, "print all of the run as JSON")
	return cmd
}

func runRunsShow(ctx context.Context, o *RunsShowOptions) error {
	return o.app.WithRuns(ctx, func(ctx context.Context, d *app.RunDeps) error {
		if o.State {
			state, err := d.Runs.State(ctx, d.Caller, parseRunRef(o.Run))
			if err != nil {
				return userError(err)
			}
			return app.WriteJSON(o.app.Host.Out, state)
		}
		details, err := d.Runs.GetWithEvents(ctx, d.Caller, parseRunRef(o.Run))
		if err != nil {
			return userError(err)
		}
		if o.JSON {
			return app.WriteJSON(o.app.Host.Out, details)
		}
		k, err := newRunReplay(details)
		if err != nil {
			return err
		}
		o.writeText(k)
		return nil
	})
}

func (o *RunsShowOptions) writeText(k *runReplay) {
	host, r := o.app.Host, k.details.Record
	t := walk.NewTerminal(host)
	t.ReadOnly = true
	fmt.Fprintf(t.Out, "%s %s %s\n", t.Styles.Bold(app.OneLine(r.Name)), app.OneLine(r.Workflow), t.Styles.Faint(app.OneLine(r.Version)))
	if r.Goal != "" {
		t.PrintText("", r.Goal)
	}
	fmt.Fprintln(t.Out)
	line := host.WriteFields(10)
	line("run", r.ID)
	line("status", statusStyled(t.Styles, r)+", "+k.Walk.History.String())
	line("project", projectWords(r.Project))
	line("started", app.FormatTime(r.Created)+byWords(r.Client))
	line("changed", app.FormatTime(r.Updated)+" ("+host.FormatAge(r.Updated)+")")
	if r.Parent != "" {
		line("forked", fmt.Sprintf("from %s, after event %d", r.Parent, r.ParentSeq))
	}
	if c, unwatched := clienthook.UnwatchedClient(r.Client, k.details.Hooked); unwatched {
		line("unwatched", fmt.Sprintf("no hook of %s has reported; to configure the hooks: guideway install %s --hooks", c.Title, c.ID))
	}
	line("definition", r.Hash)
	line("from", k.sourceText())
	if o.Events {
		fmt.Fprintf(t.Out, "\n%s\n", t.Styles.Bold("Events"))
		for _, e := range k.details.Events {
			k.writeEvent(t, e)
		}
	}
	if o.Vars {
		t.PrintVariables(k.details.Variables)
	}
	if pos := k.details.Position; pos.Kind != engine.PositionEnd {
		t.Position(&k.Walk, pos)
	}
	switch {
	case r.Person:
		fmt.Fprintf(t.Out, "\n%s\n", t.Styles.Faint("To approve: guideway runs approve "+r.ID))
	case acceptsCommands(r):
		fmt.Fprintf(t.Out, "\n%s\n", t.Styles.Faint("To resume in the terminal: guideway runs resume "+r.ID))
	}
}

// sourceText returns the source of the definition, as far as it is recorded in the run.
func (k *runReplay) sourceText() string {
	for _, e := range k.details.Events {
		var created run.Created
		if e.Kind != run.KindCreated || json.Unmarshal(e.Data, &created) != nil || created.Source == "" {
			continue
		}
		return app.FormatSource(app.OneLine(created.Source), created.Revision)
	}
	return ""
}

func projectWords(p run.Project) string {
	text := cmp.Or(app.OneLine(p.Path), p.ID)
	if p.Branch != "" {
		text += ", branch " + app.OneLine(p.Branch)
	}
	if p.Commit != "" {
		text += " at " + app.OneLine(p.Commit)[:min(12, len(app.OneLine(p.Commit)))]
	}
	return text
}

func byWords(client string) string {
	if client == "" {
		return ""
	}
	return " by " + app.OneLine(client)
}

// runReplay is a stored run, replayed as a walk that can be shown.
type runReplay struct {
	walk.Walk
	details *run.Details
}

// newRunReplay replays a run.
func newRunReplay(details *run.Details) (*runReplay, error) {
	def, problems := workflow.Parse("", []byte(details.Definition))
	if def == nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the definition of the run %s does not load: %s", details.ID, problems[0].Message).
			WithFix("guideway runs verify %s", details.ID)
	}
	k := &runReplay{details: details}
	k.Def = app.LoadedDefinition{Definition: def}
	k.Workflow = walk.NewWorkflowView(k.Def)
	_, err := k.replayEvents(details.Events)
	return k, err
}

// replayEvents replays new events and returns the engine events among them.
func (k *runReplay) replayEvents(events []run.Event) ([]engine.Event, error) {
	var facts []engine.Event
	for _, e := range events {
		fact, ok, err := decodeEngineEvent(e)
		if err != nil {
			return nil, eventError(k.details.ID, e, err)
		}
		if !ok {
			continue
		}
		if k.State, err = k.Workflow.FoldFrom(k.State, []engine.Event{fact}); err != nil {
			return nil, err
		}
		k.History.AddEvent(&k.Walk, fact)
		facts = append(facts, fact)
	}
	return facts, nil
}

// decodeEngineEvent returns the engine event in e; ok is false if none exists.
func decodeEngineEvent(e run.Event) (fact engine.Event, ok bool, err error) {
	if !e.IsFact() {
		return fact, false, nil
	}
	dec := json.NewDecoder(bytes.NewReader(e.Data))
	dec.UseNumber()
	if err := dec.Decode(&fact); err != nil {
		return fact, false, err
	}
	return fact, true, nil
}

// eventError returns the error for an event of a run that cannot be decoded.
func eventError(id string, e run.Event, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "event %d of the run %s cannot be read: %w", e.Seq, id, err).WithFix("guideway runs verify %s", id)
}

// writeEvent prints an event on a line, and submitted text below it.
func (k *runReplay) writeEvent(t *walk.Terminal, e run.Event) {
	mark, text, more := k.eventLine(e)
	fmt.Fprintf(t.Out, "%5d  %s  %s  %s  %s\n", e.Seq, t.Styles.Faint(e.At.Local().Format("01-02 15:04:05")),
		t.FormatMark(mark), text, t.Styles.Faint("("+principalText(e.By)+")"))
	for _, line := range more {
		fmt.Fprintf(t.Out, "         %s\n", app.Truncate(line, max(t.Width, 72)-9))
	}
}

// hasInlineNotes reports whether the notes of an event are printed on its line.
func hasInlineNotes(kind engine.EventKind) bool {
	return slices.Contains([]engine.EventKind{engine.EventGateApproved, engine.EventGateAnswered, engine.EventCheckpointAnswer, engine.EventBranchTaken, engine.EventAsserted}, kind)
}

func (k *runReplay) eventLine(e run.Event) (mark, text string, more []string) {
	switch e.Kind {
	case run.KindCreated:
		var created run.Created
		_ = json.Unmarshal(e.Data, &created) // an event that cannot be decoded has no text
		return walk.MarkStart, app.OneLine(created.Workflow), nil
	case run.KindRefused:
		var refused run.Refused
		_ = json.Unmarshal(e.Data, &refused)
		for _, issue := range refused.Issues {
			more = append(more, "- "+app.OneLine(issue))
		}
		if refused.Output != "" {
			more = append(more, "output: "+app.OneLine(refused.Output))
		}
		if refused.Notes != "" {
			more = append(more, "notes: "+app.OneLine(refused.Notes))
		}
		return walk.MarkRefused, app.OneLine(refused.Step + ": " + refused.Message), more
	case run.KindDeclined, run.KindUnanswered:
		var declined run.Declined
		_ = json.Unmarshal(e.Data, &declined)
		text = "a person closed the form without an answer"
		if e.Kind == run.KindUnanswered {
			text = "the client closed or answered the form before a person could read it"
		}
		return walk.MarkGate, app.OneLine(declined.Step) + ": " + text, nil
	case run.KindAbortConfirmed:
		var confirmed run.AbortConfirmed
		_ = json.Unmarshal(e.Data, &confirmed)
		return walk.MarkEnd, strings.TrimSuffix("abort confirmed by a person: "+app.OneLine(confirmed.Reason), ": "), nil
	case run.KindHooked, run.KindStopped, run.KindCheckRun:
		return reportLine(e)
	case run.KindMarked:
		var marked run.Marked
		_ = json.Unmarshal(e.Data, &marked)
		return walk.MarkSet, "critical: " + app.OneLine(strings.Join(marked.Keys, ", ")), nil
	}
	fact, _, err := decodeEngineEvent(e)
	if err != nil {
		return e.Kind, "the event cannot be read: " + app.OneLine(err.Error()), nil
	}
	if fact.Output != "" {
		more = append(more, "output: "+app.OneLine(fact.Output))
	}
	if fact.Notes != "" && !hasInlineNotes(fact.Kind) {
		more = append(more, "notes: "+app.OneLine(fact.Notes))
	}
	if len(fact.Vars) > 0 && (fact.Kind == engine.EventStepCompleted || fact.Kind == engine.EventAsserted) {
		more = append(more, "sets: "+walk.FormatValue(fact.Vars))
	}
	if mark, text = walk.DescribeEvent(&k.Walk, fact); text != "" {
		if e.Label != "" {
			text += " [" + e.Label + "]"
		}
		return mark, text, more
	}
	mark, text = hiddenEventText(fact)
	return mark, text, more
}

// reportLine returns the line of a report of a check or of a client's hook.
func reportLine(e run.Event) (mark, text string, more []string) {
	if e.Kind == run.KindCheckRun {
		return checkLine(e)
	}
	var report run.HookReport
	_ = json.Unmarshal(e.Data, &report) // an event that cannot be decoded has no text
	if e.Kind == run.KindHooked {
		return walk.MarkChecked, "first report from the hooks of " + app.OneLine(report.Client), nil
	}
	return walk.MarkRefused, fmt.Sprintf("%s: %s stopped after %s", app.OneLine(report.Step), app.OneLine(report.Client),
		app.Plural(report.Refusals, "refused stop", "refused stops")), nil
}

// checkLine returns the line of an executed check, with what a person needs to
// repeat it.
func checkLine(e run.Event) (mark, text string, more []string) {
	var r evidence.Result
	_ = json.Unmarshal(e.Data, &r) // an event that cannot be decoded has no text
	mark, result := walk.MarkRefused, "failed: "+app.OneLine(r.Issue)
	switch {
	case r.Inconclusive:
		result = "not executed to its end: " + app.OneLine(r.Issue)
	case r.Undefined:
		mark, result = walk.MarkChecked, "not executed: the project does not define it"
	case r.Passed:
		mark, result = walk.MarkChecked, "passed"
	}
	if len(r.Argv) > 0 {
		more = append(more, fmt.Sprintf("command: %s, %d ms", app.OneLine(strings.Join(r.Argv, " ")), r.DurationMS))
	}
	if host := r.ConnectHost(); host != "" {
		more = append(more, "executed on "+app.OneLine(host)+" through guideway connect")
	}
	if w := r.Workspace; w != nil && w.Commit != "" {
		more = append(more, fmt.Sprintf("commit %s, %s", app.OneLine(w.Commit)[:min(12, len(app.OneLine(w.Commit)))], app.Plural(w.DirtyCount, "changed file", "changed files")))
	}
	return mark, app.OneLine(r.Step) + ": check: " + app.OneLine(r.Describe) + ": " + result, more
}

// hiddenEventText returns the text of the events that a walk does not show because the next
// position shows them.
func hiddenEventText(fact engine.Event) (mark, text string) {
	switch fact.Kind {
	case engine.EventRunStarted, engine.EventContextSet:
		mark = walk.MarkSet
		text = strings.TrimSpace(walk.FormatValue(fact.Vars))
		if len(fact.Vars) == 0 {
			text = "nothing"
		}
	case engine.EventGateOpened, engine.EventCheckpointReached, engine.EventDecisionOffered:
		mark, text = walk.MarkGate, fact.Step+": opened"
	case engine.EventStepStarted:
		mark, text = walk.MarkBegun, fact.Step
	case engine.EventDecisionReached, engine.EventDecisionPassed:
		mark, text = walk.MarkWay, fact.Step+": "+strings.TrimPrefix(string(fact.Kind), "decision_")
	case engine.EventPhaseExited:
		mark, text = walk.MarkPhase, fact.Step+": left"
	case engine.EventChecked:
		mark, text = walk.MarkChecked, app.OneLine(strings.Trim(fact.Target+": "+fact.Message, ": "))
	case engine.EventRunCompleted:
		mark, text = walk.MarkEnd, "completed"
	case engine.EventRunAborted:
		mark, text = walk.MarkEnd, strings.TrimSuffix("aborted: "+app.OneLine(fact.Reason), ": ")
	default:
		mark, text = string(fact.Kind), fact.Step
	}
	return mark, text
}

// principalText returns how the caller of an event was authenticated, and the client.
func principalText(by run.By) string {
	who := map[run.Via]string{
		run.ViaAgent: "agent", run.ViaServer: "server", run.ViaElicitation: "person, in the client",
		run.ViaTerminal: "person, at a terminal", run.ViaBrowser: "person, in the browser", run.ViaToken: "person, by token",
		run.ViaImport: "according to the bundle",
	}[by.Via]
	who = cmp.Or(who, string(by.Via))
	if by.Client != "" {
		who += ", " + app.OneLine(by.Client)
	}
	return who
}
