package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/guide"
)

// terminal shows a walk to a person and asks for the answers.
type terminal struct {
	textView
	prompt *prompter
	// pending are variables that go in with the next output.
	pending map[string]any
	// notes go in with the next output.
	notes string
	// kept says that the run goes on later where it is left.
	kept bool
	// asksNothing leaves out how to answer.
	asksNothing bool
}

var (
	_ view   = (*terminal)(nil)
	_ player = (*terminal)(nil)
)

func newTerminal(host *Host) *terminal {
	return newTerminalOn(newPrompter(host))
}

// newTerminalOn returns a terminal that shares the unread input of p.
func newTerminalOn(p *prompter) *terminal {
	return &terminal{textView: textView{p.textPrinter}, prompt: p, pending: map[string]any{}}
}

func (t *terminal) begin(w *walk) {
	t.textView.begin(w)
	t.prose("", w.def.Description)
	for _, b := range w.course.intro() {
		t.bullets(b.heading, b.texts)
	}
	fmt.Fprintln(t.out)
}

func (t *terminal) position(w *walk, pos guide.Position) {
	head, about := w.course.head(w.state, pos)
	title := oneLine(pos.Title)
	if pos.Kind == guide.PositionGate {
		title = "Gate: " + title
	}
	fmt.Fprintf(t.out, "\n%s %s %s\n", t.styles.cyan(head), t.styles.bold(title), t.styles.faint("("+pos.ID+")"))
	if about != "" {
		fmt.Fprintln(t.out, t.styles.faint(about))
	}
	if l := pos.Loop; l != nil {
		round := fmt.Sprintf("round %d", l.Round)
		if l.Rounds > 0 {
			round += fmt.Sprintf(" of %d", l.Rounds)
		}
		fmt.Fprintf(t.out, "%s in %s %s\n", round, oneLine(l.Title), t.styles.faint("("+l.ID+")"))
	}
	switch pos.Kind {
	case guide.PositionGate:
		t.gate(w, pos)
	case guide.PositionContext:
		t.waits(w, pos)
	default:
		t.step(pos)
	}
}

func (t *terminal) step(pos guide.Position) {
	fmt.Fprintln(t.out)
	if pos.Message != "" {
		t.prose("  ", pos.Message)
		fmt.Fprintln(t.out)
	}
	t.prose("  ", pos.Prompt)
	for _, f := range pos.Functions {
		fmt.Fprintf(t.out, "\n%s\n", t.styles.bold(oneLine(f.Name)+"()"))
		t.prose("  ", f.Definition)
	}
	t.bullets("The output must meet", pos.Criteria)
	if t.asksNothing {
		return
	}
	fmt.Fprintf(t.out, "\n%s\n", t.styles.faint("Your output, then a line with a single . (or Ctrl-D); :help for more"))
}

func (t *terminal) gate(w *walk, pos guide.Position) {
	fmt.Fprintln(t.out)
	t.prose("  ", pos.Message)
	if pos.Prompt != "" {
		t.prose("  ", pos.Prompt)
	}
	for i, o := range pos.Options {
		text := o.Label
		if o.Description != "" {
			text += ": " + o.Description
		}
		t.prose("  ", fmt.Sprintf("%d. %s", i+1, text))
	}
	if w.course.declinable(pos) {
		t.prose("  ", ":decline leaves it unanswered.")
	}
}

func (t *terminal) waits(w *walk, pos guide.Position) {
	fmt.Fprintln(t.out)
	t.prose("  ", pos.Message)
	if c := w.course.undecided(w.state, pos); c != "" {
		t.prose("  ", "They decide: "+c)
	}
}

func (t *terminal) event(w *walk, e guide.Event) {
	switch e.Kind {
	case guide.EventContextSet, guide.EventStepCompleted, guide.EventAsserted:
		clear(t.pending) // they went in
		t.notes = ""
	case guide.EventRoundStarted, guide.EventLoopIteration, guide.EventPhaseEntered:
		return // the position says it
	}
	t.textView.event(w, e)
}

func (t *terminal) refusal(_ *walk, r *guide.Refusal) {
	fmt.Fprintf(t.out, "\n%s: %s\n", t.styles.red("Refused"), oneLine(r.Message))
	for _, issue := range r.Issues {
		t.prose("  ", "- "+issue)
	}
}

func (t *terminal) refused(pos guide.Position, r *guide.Refusal) error {
	switch r.Rule {
	case guide.RuleServerVariable, guide.RuleContextTooLarge, guide.RuleVariableType:
		clear(t.pending) // they would be refused again
	}
	if pos.Kind == guide.PositionStep {
		fmt.Fprintf(t.out, "\n%s\n", t.styles.faint("The step is asked for again: your output, then a line with a single ."))
	}
	return nil
}

func (t *terminal) next(ctx context.Context, w *walk, pos guide.Position) (*guide.Continue, error) {
	switch pos.Kind {
	case guide.PositionGate:
		return t.askGate(ctx, w, pos)
	case guide.PositionContext:
		return t.askContext(ctx, w, pos)
	default:
		return t.askOutput(ctx, w, pos)
	}
}

// askOutput reads the lines of an output.
func (t *terminal) askOutput(ctx context.Context, w *walk, pos guide.Position) (*guide.Continue, error) {
	var lines []string
	for {
		line, err := t.prompt.askLine(ctx, "")
		switch {
		case errors.Is(err, io.EOF) && len(lines) == 0:
			return nil, errStopped
		case err != nil && !errors.Is(err, io.EOF):
			return nil, err
		case err != nil, line == ".":
			return &guide.Continue{Output: strings.Join(lines, "\n"), Notes: t.notes, Context: maps.Clone(t.pending)}, nil
		}
		if strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "::") {
			if reason, ok := commandOf(line, "skip"); ok && w.course.skippable(pos) {
				return &guide.Continue{Skip: &guide.Skip{Reason: reason}}, nil
			}
			if err := t.command(w, pos, line); err != nil {
				return nil, err
			}
			continue
		}
		lines = append(lines, unescape(line))
	}
}

// unescape takes the mark off a line that would else be a command or the end.
func unescape(line string) string {
	if strings.HasPrefix(line, "::") || line == ".." {
		return line[1:]
	}
	return line
}

// askGate asks until one of the options is chosen.
func (t *terminal) askGate(ctx context.Context, w *walk, pos guide.Position) (*guide.Continue, error) {
	for {
		line, err := t.prompt.askLine(ctx, fmt.Sprintf("Your answer, 1 to %d: ", len(pos.Options)))
		if err != nil {
			return nil, stopAtEnd(err)
		}
		if note, ok := commandOf(line, "decline"); ok && w.course.declinable(pos) {
			return &guide.Continue{Answer: &guide.Answer{Decline: true, Note: note}}, nil
		}
		if strings.HasPrefix(line, ":") {
			if err := t.command(w, pos, line); err != nil {
				return nil, err
			}
			continue
		}
		word, note, _ := strings.Cut(strings.TrimSpace(line), " ")
		if option, ok := choose(pos.Options, word); ok {
			return &guide.Continue{Answer: &guide.Answer{OptionID: option, Note: strings.TrimSpace(note)}}, nil
		}
		if word != "" {
			fmt.Fprintf(t.out, "There is no option %q.\n", oneLine(word))
		}
	}
}

// choose finds an option by its number or id.
func choose(options []guide.Option, word string) (string, bool) {
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

// askContext asks for each variable that the run waits for. An empty line leaves
// one out: any one of them may be enough.
func (t *terminal) askContext(ctx context.Context, w *walk, pos guide.Position) (*guide.Continue, error) {
	vars := map[string]any{}
	for i := 0; i < len(pos.Needs); {
		need := pos.Needs[i]
		if _, set := t.pending[need.Variable]; set {
			i++
			continue
		}
		line, err := t.prompt.askLine(ctx, w.askFor(pos, need)+" = ")
		if err != nil {
			return nil, stopAtEnd(err)
		}
		if strings.HasPrefix(line, ":") && !strings.HasPrefix(line, "::") {
			if err := t.command(w, pos, line); err != nil {
				return nil, err
			}
			continue
		}
		if text := strings.TrimSpace(unescape(line)); text != "" {
			w.course.put(w.state, vars, need.Variable, w.course.value(need.Variable, text))
		}
		i++
	}
	maps.Copy(vars, t.pending)
	return &guide.Continue{Context: vars}, nil
}

// askFor is how a variable is asked for.
func (w *walk) askFor(pos guide.Position, need guide.Need) string {
	ask := need.Variable
	switch {
	case need.Found != "":
		ask += " (now of type " + need.Found + ")"
	case w.def.Phases != nil && pos.Phase == nil: // needed from the beginning, for what the definition says
		ask += " (" + strings.Join(need.Tests, ": ") + ")"
	}
	if len(need.Allowed) > 0 {
		ask += " (" + valueList(need.Allowed) + ", or something else)"
	}
	return oneLine(ask)
}

func stopAtEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return errStopped
	}
	return err
}

// commandOf gives what follows the name of a command on its line.
func commandOf(line, name string) (rest string, ok bool) {
	word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
	return strings.TrimSpace(rest), word == ":"+name
}

const terminalHelp = `  .                  ends the output, on a line of its own (.. is a text of one .)
  :note text         adds notes to the output
  :set name=value    sets a variable, as JSON or plain text
  :vars              shows the variables
  :status            shows the position again, and what is done
  :quit              stops here; %s
  :help              shows this (:: begins a text with one :)
`

// The commands that are there in some places only.
const (
	skipHelp    = "  :skip reason       leaves it out: it is optional here\n"
	declineHelp = "  :decline note      leaves it unanswered\n"
)

// command does what a line with a colon says.
func (t *terminal) command(w *walk, pos guide.Position, line string) error {
	name, rest, _ := strings.Cut(strings.TrimSpace(line[1:]), " ")
	switch name {
	case "set":
		t.set(w, pos, rest)
	case "note":
		t.note(pos, rest)
	case "skip":
		fmt.Fprintln(t.out, "There is nothing here that can be skipped.")
	case "decline":
		fmt.Fprintln(t.out, "There is nothing here that can be declined.")
	case "vars":
		t.textView.variables(w.state.Vars)
		if len(w.state.Vars)+len(t.pending) == 0 {
			fmt.Fprintln(t.out, "No variables are set.")
		}
		for _, name := range slices.Sorted(maps.Keys(t.pending)) {
			fmt.Fprintf(t.out, "  %s = %s, with the next output\n", oneLine(name), valueWords(t.pending[name]))
		}
	case "status":
		t.position(w, pos)
		fmt.Fprintf(t.out, "%s: %s\n", w.course.Status(w.state), w.past)
	case "quit", "q":
		return errStopped
	case "help", "h", "?":
		kept := "nothing is kept"
		if t.kept {
			kept = "the run is kept"
		}
		fmt.Fprintf(t.out, terminalHelp, kept)
		if w.course.skippable(pos) {
			fmt.Fprint(t.out, skipHelp)
		}
		if pos.Kind == guide.PositionGate && w.course.declinable(pos) {
			fmt.Fprint(t.out, declineHelp)
		}
	default:
		fmt.Fprintf(t.out, "There is no command :%s; :help shows those that there are, and :: begins a text with one colon.\n", oneLine(name))
	}
	return nil
}

// note adds to the notes that go in with the next output.
func (t *terminal) note(pos guide.Position, text string) {
	text = strings.TrimSpace(text)
	switch {
	case pos.Kind != guide.PositionStep:
		fmt.Fprintln(t.out, "Notes go with the output of a step; a note on an answer follows its number.")
		return
	case text == "":
		fmt.Fprintln(t.out, "Write :note text.")
		return
	}
	t.notes = strings.TrimSpace(t.notes + "\n" + text)
	fmt.Fprintln(t.out, "The note goes in with the next output.")
}

func (t *terminal) set(w *walk, pos guide.Position, pair string) {
	if pos.Kind == guide.PositionGate {
		fmt.Fprintln(t.out, "A gate takes nothing but an answer to it.")
		return
	}
	name, text, err := parsePair(pair)
	if err != nil {
		fmt.Fprintln(t.out, "Write :set name=value.")
		return
	}
	value := w.course.value(name, text)
	w.course.put(w.state, t.pending, name, value)
	fmt.Fprintf(t.out, "%s = %s, with the next output\n", oneLine(name), valueWords(value))
}
