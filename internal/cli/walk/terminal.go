package walk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
)

// Terminal shows a walk in a terminal and reads the answers of the user.
type Terminal struct {
	TextView
	Prompter *app.Prompter
	// pending are variables to send with the next output.
	pending map[string]any
	// notes are the notes to send with the next output.
	notes string
	// RunIsSaved is set if the run can be resumed later.
	RunIsSaved bool
	// ReadOnly omits the instructions for answers.
	ReadOnly bool
}

var (
	_ View   = (*Terminal)(nil)
	_ Player = (*Terminal)(nil)
)

// NewTerminal returns a terminal on the host.
func NewTerminal(host *app.Host) *Terminal {
	return NewTerminalFrom(app.NewPrompter(host))
}

// NewTerminalFrom returns a terminal that shares the unread input of p.
func NewTerminalFrom(p *app.Prompter) *Terminal {
	return &Terminal{TextView: TextView{p.TextPrinter}, Prompter: p, pending: map[string]any{}}
}

// Begin implements View.
func (t *Terminal) Begin(w *Walk) {
	t.TextView.Begin(w)
	t.PrintText("", w.Def.Description)
	for _, b := range w.Workflow.introLists() {
		t.PrintList(b.heading, b.texts)
	}
	fmt.Fprintln(t.Out)
}

// Position implements View.
func (t *Terminal) Position(w *Walk, pos engine.Position) {
	head, about := w.Workflow.describePosition(w.State, pos)
	title := app.OneLine(pos.Title)
	if pos.Kind == engine.PositionGate {
		title = "Gate: " + title
	}
	fmt.Fprintf(t.Out, "\n%s %s %s\n", t.Styles.Cyan(head), t.Styles.Bold(title), t.Styles.Faint("("+pos.ID+")"))
	if about != "" {
		fmt.Fprintln(t.Out, t.Styles.Faint(about))
	}
	if l := pos.Loop; l != nil {
		round := fmt.Sprintf("round %d", l.Round)
		if l.Rounds > 0 {
			round += fmt.Sprintf(" of %d", l.Rounds)
		}
		fmt.Fprintf(t.Out, "%s in %s %s\n", round, app.OneLine(l.Title), t.Styles.Faint("("+l.ID+")"))
	}
	switch pos.Kind {
	case engine.PositionGate:
		t.showGate(w, pos)
	case engine.PositionContext:
		t.showNeeds(w, pos)
	default:
		t.showStep(pos)
	}
}

func (t *Terminal) showStep(pos engine.Position) {
	fmt.Fprintln(t.Out)
	if pos.Message != "" {
		t.PrintText("  ", pos.Message)
		fmt.Fprintln(t.Out)
	}
	t.PrintText("  ", pos.Prompt)
	for _, f := range pos.Functions {
		fmt.Fprintf(t.Out, "\n%s\n", t.Styles.Bold(app.OneLine(f.Name)+"()"))
		t.PrintText("  ", f.Definition)
	}
	t.PrintList("The output must meet these criteria", pos.Criteria)
	if tools := pos.Tools.String(); tools != "" {
		t.PrintList("The tools of the agent", []string{tools})
	}
	if t.ReadOnly {
		return
	}
	fmt.Fprintf(t.Out, "\n%s\n", t.Styles.Faint("Enter your output, then a line with a single . (or Ctrl-D); :help for more"))
}

func (t *Terminal) showGate(w *Walk, pos engine.Position) {
	fmt.Fprintln(t.Out)
	t.PrintText("  ", pos.Message)
	if pos.Prompt != "" {
		t.PrintText("  ", pos.Prompt)
	}
	for i, o := range pos.Options {
		text := o.Label
		if o.Description != "" {
			text += ": " + o.Description
		}
		t.PrintText("  ", fmt.Sprintf("%d. %s", i+1, text))
	}
	if w.Workflow.IsDeclinable(pos) {
		t.PrintText("  ", ":decline leaves the question unanswered.")
	}
}

func (t *Terminal) showNeeds(w *Walk, pos engine.Position) {
	fmt.Fprintln(t.Out)
	t.PrintText("  ", pos.Message)
	if c := w.Workflow.pendingCondition(w.State, pos); c != "" {
		t.PrintText("  ", "Condition: "+c)
	}
}

// Event implements View.
func (t *Terminal) Event(w *Walk, e engine.Event) {
	switch e.Kind {
	case engine.EventContextSet, engine.EventStepCompleted, engine.EventAsserted:
		clear(t.pending) // the variables were sent with this event
		t.notes = ""
	case engine.EventRoundStarted, engine.EventLoopIteration, engine.EventPhaseEntered:
		return // shown with the next position
	}
	t.TextView.Event(w, e)
}

// Refusal implements View.
func (t *Terminal) Refusal(_ *Walk, r *engine.Refusal) {
	fmt.Fprintf(t.Out, "\n%s: %s\n", t.Styles.Red("Refused"), app.OneLine(r.Message))
	for _, issue := range r.Issues {
		t.PrintText("  ", "- "+issue)
	}
}

// HandleRefusal drops the pending variables that would be refused again, and prints how to
// repeat a step. It never ends the walk.
func (t *Terminal) HandleRefusal(pos engine.Position, r *engine.Refusal) error {
	switch r.Rule {
	case engine.RuleServerVariable, engine.RuleContextTooLarge, engine.RuleVariableType:
		clear(t.pending) // the same variables would be refused again
	}
	if pos.Kind == engine.PositionStep {
		fmt.Fprintf(t.Out, "\n%s\n", t.Styles.Faint("Try the step again: enter your output, then a line with a single ."))
	}
	return nil
}

// NextInput implements Player.
func (t *Terminal) NextInput(ctx context.Context, w *Walk, pos engine.Position) (*engine.Continue, error) {
	switch pos.Kind {
	case engine.PositionGate:
		return t.askGate(ctx, w, pos)
	case engine.PositionContext:
		return t.askContext(ctx, w, pos)
	default:
		return t.askOutput(ctx, w, pos)
	}
}

// askOutput reads the lines of an output.
func (t *Terminal) askOutput(ctx context.Context, w *Walk, pos engine.Position) (*engine.Continue, error) {
	var lines []string
	for {
		line, err := t.Prompter.AskLine(ctx, "")
		switch {
		case errors.Is(err, io.EOF) && len(lines) == 0:
			return nil, ErrStopped
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil, line == ".":
			return &engine.Continue{Output: strings.Join(lines, "\n"), Notes: t.notes, Context: maps.Clone(t.pending)}, nil
		}
		if strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "::") {
			if reason, ok := ParseCommand(line, "skip"); ok && w.Workflow.IsSkippable(pos) {
				return &engine.Continue{Skip: &engine.Skip{Reason: reason}}, nil
			}
			if err := t.runCommand(w, pos, line); err != nil {
				return nil, err
			}
			continue
		}
		lines = append(lines, unescapeLine(line))
	}
}

// unescapeLine removes the escape from a line that would otherwise be a command or the end.
func unescapeLine(line string) string {
	if strings.HasPrefix(line, "::") || line == ".." {
		return line[1:]
	}
	return line
}

// askGate asks until the user selects an option.
func (t *Terminal) askGate(ctx context.Context, w *Walk, pos engine.Position) (*engine.Continue, error) {
	for {
		line, err := t.Prompter.AskLine(ctx, fmt.Sprintf("Answer, 1 to %d: ", len(pos.Options)))
		if err != nil {
			return nil, stopAtEnd(err)
		}
		if note, ok := ParseCommand(line, "decline"); ok && w.Workflow.IsDeclinable(pos) {
			return &engine.Continue{Answer: &engine.Answer{Decline: true, Note: note}}, nil
		}
		if strings.HasPrefix(line, ":") {
			if err := t.runCommand(w, pos, line); err != nil {
				return nil, err
			}
			continue
		}
		word, note, _ := strings.Cut(strings.TrimSpace(line), " ")
		if option, ok := FindOption(pos.Options, word); ok {
			return &engine.Continue{Answer: &engine.Answer{OptionID: option, Note: strings.TrimSpace(note)}}, nil
		}
		if word != "" {
			fmt.Fprintf(t.Out, "There is no option %q; enter a number from 1 to %d, or the id of an option.\n", app.OneLine(word), len(pos.Options))
		}
	}
}

// FindOption returns the option with a number or id.
func FindOption(options []engine.Option, word string) (string, bool) {
	if n, err := strconv.Atoi(strings.TrimSuffix(word, ".")); err == nil && n >= 1 && n <= len(options) {
		return options[n-1].ID, true
	}
	for _, o := range options {
		if strings.EqualFold(o.ID, word) {
			return o.ID, true
		}
	}
	return "", false
}

// askContext asks for each variable that the run waits for. An empty line skips a variable,
// because another variable may be enough.
func (t *Terminal) askContext(ctx context.Context, w *Walk, pos engine.Position) (*engine.Continue, error) {
	vars := map[string]any{}
	for i := 0; i < len(pos.Needs); {
		need := pos.Needs[i]
		if _, set := t.pending[need.Variable]; set {
			i++
			continue
		}
		line, err := t.Prompter.AskLine(ctx, variablePrompt(need)+" = ")
		if err != nil {
			return nil, stopAtEnd(err)
		}
		if strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "::") {
			if err := t.runCommand(w, pos, line); err != nil {
				return nil, err
			}
			continue
		}
		if text := strings.TrimSpace(unescapeLine(line)); text != "" {
			w.Workflow.SetVariable(w.State, vars, need.Variable, w.Workflow.ParseVariable(need.Variable, text))
		}
		i++
	}
	maps.Copy(vars, t.pending)
	return &engine.Continue{Context: vars}, nil
}

// variablePrompt returns the prompt for a variable.
func variablePrompt(need engine.Need) string {
	ask := need.Variable
	switch {
	case need.Found != "":
		ask += " (now " + need.Found + ")"
	case need.Description != "":
		ask += " (" + need.Description + ")"
	case len(need.Tests) > 0:
		ask += " (" + strings.Join(need.Tests, ", ") + ")"
	}
	switch {
	case need.Exhaustive:
		ask += " (" + formatValues(need.Allowed) + ")"
	case len(need.Allowed) > 0:
		ask += " (" + formatValues(need.Allowed) + ", or another value)"
	}
	return app.OneLine(ask)
}

func stopAtEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return ErrStopped
	}
	return err
}

// ParseCommand returns the argument of a command line such as ":skip reason". ok reports
// whether the line is the named command.
func ParseCommand(line, name string) (rest string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	return strings.TrimSpace(rest), word == ":"+name
}

const terminalHelp = `  :vars              shows the variables
  :status            shows the position and the completed steps
  :quit              stops the command; %s
  :help              shows this help
`

// The additional lines of the help at each kind of position.
const (
	outputHelp = `  .                  ends the output, on a line of its own (.. enters a single .)
  :note text         adds notes to the output
  ::                 starts a line of the output with a single :
`
	valueHelp = `  ::                 starts a value with a single :
`
	gateHelp = `  1 text             chooses option 1, with an optional note
`
	setHelp = `  :set name=value    sets a variable, as JSON or plain text
`
)

// Help for commands that are not always available.
const (
	skipHelp    = "  :skip reason       skips the step or phase, which is optional\n"
	declineHelp = "  :decline note      leaves the question unanswered\n"
)

// positionHelp returns the lines of the help that apply only to the kind of a position.
func positionHelp(pos engine.Position) string {
	switch pos.Kind {
	case engine.PositionGate:
		return gateHelp
	case engine.PositionContext:
		return valueHelp + setHelp
	default:
		return outputHelp + setHelp
	}
}

// runCommand runs a command that begins with a colon.
func (t *Terminal) runCommand(w *Walk, pos engine.Position, line string) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
	switch name {
	case "set":
		t.setVariable(w, pos, rest)
	case "note":
		t.addNote(pos, rest)
	case "skip":
		fmt.Fprintln(t.Out, ":skip is available only at an optional step or phase.")
	case "decline":
		fmt.Fprintln(t.Out, ":decline is available only at an optional gate.")
	case "vars":
		t.TextView.PrintVariables(w.State.Vars)
		if len(w.State.Vars)+len(t.pending) == 0 {
			fmt.Fprintln(t.Out, "No variables are set.")
		}
		for _, name := range slices.Sorted(maps.Keys(t.pending)) {
			fmt.Fprintf(t.Out, "  %s = %s, sent with the next input\n", app.OneLine(name), FormatValue(t.pending[name]))
		}
	case "status":
		t.Position(w, pos)
		fmt.Fprintf(t.Out, "%s: %s\n", w.Workflow.Status(w.State), w.History)
	case "quit", "q":
		return ErrStopped
	case "help", "h", "?":
		kept := "nothing is saved"
		if t.RunIsSaved {
			kept = "the run is saved"
		}
		fmt.Fprint(t.Out, positionHelp(pos))
		fmt.Fprintf(t.Out, terminalHelp, kept)
		if w.Workflow.IsSkippable(pos) {
			fmt.Fprint(t.Out, skipHelp)
		}
		if pos.Kind == engine.PositionGate && w.Workflow.IsDeclinable(pos) {
			fmt.Fprint(t.Out, declineHelp)
		}
	default:
		hint := ", and :: starts a text with a single colon"
		if pos.Kind == engine.PositionGate {
			hint = ""
		}
		fmt.Fprintf(t.Out, "There is no command :%s; :help lists the commands%s.\n", app.OneLine(name), hint)
	}
	return nil
}

// addNote adds to the notes for the next output.
func (t *Terminal) addNote(pos engine.Position, text string) {
	text = strings.TrimSpace(text)
	switch {
	case pos.Kind == engine.PositionGate:
		fmt.Fprintln(t.Out, ":note is not available at a gate; write a note on an answer after the number of the option.")
		return
	case pos.Kind != engine.PositionStep:
		fmt.Fprintln(t.Out, ":note is not available here; notes are sent with the output of a step.")
		return
	case text == "":
		fmt.Fprintln(t.Out, "Write :note text.")
		return
	}
	t.notes = strings.TrimSpace(t.notes + "\n" + text)
	fmt.Fprintln(t.Out, "The note is added to the next output.")
}

func (t *Terminal) setVariable(w *Walk, pos engine.Position, pair string) {
	if pos.Kind == engine.PositionGate {
		fmt.Fprintln(t.Out, ":set is not available at a gate, which accepts only an answer.")
		return
	}
	name, text, err := app.ParsePair(pair, "")
	if err != nil {
		fmt.Fprintln(t.Out, "Write :set name=value.")
		return
	}
	value := w.Workflow.ParseVariable(name, text)
	w.Workflow.SetVariable(w.State, t.pending, name, value)
	fmt.Fprintf(t.Out, "%s = %s, sent with the next input\n", app.OneLine(name), FormatValue(value))
}
