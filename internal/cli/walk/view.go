package walk

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
)

// TextView prints a line for each event that a walk shows, and a summary at the end.
type TextView struct{ app.TextPrinter }

var _ View = (*TextView)(nil)

// Begin implements View.
func (v *TextView) Begin(w *Walk) {
	fmt.Fprintf(v.Out, "%s %s %s\n", v.Styles.Bold(app.OneLine(w.Def.Name)), w.Def.ID, v.Styles.Faint(w.Def.Version))
}

// Position implements View.
func (v *TextView) Position(*Walk, engine.Position) {}

// Event implements View.
func (v *TextView) Event(w *Walk, e engine.Event) {
	mark, text := DescribeEvent(w, e)
	if text == "" {
		return
	}
	indent := "  "
	if e.Round > 0 && !isLoopEvent(e.Kind) {
		indent = "    "
	}
	fmt.Fprintf(v.Out, "%s%s  %s\n", indent, v.FormatMark(mark), text)
}

// FormatMark returns the styled label of an event.
func (v *TextView) FormatMark(word string) string {
	padded := fmt.Sprintf("%-7s", word)
	switch word {
	case markDone:
		return v.Styles.Green(padded)
	case markSkipped:
		return v.Styles.Faint(padded)
	case MarkGate:
		return v.Styles.Yellow(padded)
	default:
		return v.Styles.Cyan(padded)
	}
}

// Refusal implements View.
func (v *TextView) Refusal(*Walk, *engine.Refusal) {}

// End implements View.
func (v *TextView) End(w *Walk) {
	sum := w.newSummary()
	head := v.Styles.Green("Completed")
	if sum.Position != nil {
		head = v.Styles.Yellow("Stopped") + " at " + DescribePosition(*sum.Position)
	}
	fmt.Fprintf(v.Out, "\n%s: %s\n", head, w.History)
	v.PrintVariables(sum.Variables)
}

// PrintVariables prints the variables of a run.
func (v *TextView) PrintVariables(vars map[string]any) {
	if len(vars) == 0 {
		return
	}
	fmt.Fprintln(v.Out, "\nVariables")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(v.Out, "  %s\n", app.Truncate(app.OneLine(name)+" = "+FormatValue(vars[name]), max(v.Width, 72)-2))
	}
}

// JSONView prints a line of JSON for each position and event.
type JSONView struct {
	Enc *json.Encoder
}

var _ View = (*JSONView)(nil)

// runLine is one line of guideway run --json. Type is the name of the member that is set. A
// position also has a status.
type runLine struct {
	Type     string           `json:"type"`
	Start    *runStart        `json:"start,omitempty"`
	Status   engine.Status    `json:"status,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
	Event    *engine.Event    `json:"event,omitempty"`
	Refusal  *engine.Refusal  `json:"refusal,omitempty"`
	Summary  *summary         `json:"summary,omitempty"`
}

// runStart identifies the definition of the walk.
type runStart struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	Path    string `json:"path"`
	// Steps is the number of steps of a step workflow, Phases the number of phases of a
	// phase workflow.
	Steps   int            `json:"steps,omitempty"`
	Phases  int            `json:"phases,omitempty"`
	Context map[string]any `json:"context"`
}

// writeLine writes a line. It ignores errors: the reader may have closed the output.
func (v *JSONView) writeLine(l runLine) {
	v.Enc.SetEscapeHTML(false)
	_ = v.Enc.Encode(l)
}

// Begin implements View.
func (v *JSONView) Begin(w *Walk) {
	start := &runStart{
		ID: w.Def.ID, Name: w.Def.Name, Version: w.Def.Version, Hash: w.Def.Hash, Path: w.Def.Path(), Context: w.Vars,
	}
	if w.Def.Phases != nil {
		start.Phases = w.Workflow.totalCount()
	} else {
		start.Steps = w.Workflow.totalCount()
	}
	v.writeLine(runLine{Type: "start", Start: start})
}

// Position implements View.
func (v *JSONView) Position(w *Walk, pos engine.Position) {
	v.writeLine(runLine{Type: "position", Status: w.Workflow.Status(w.State), Position: &pos})
}

// Event implements View.
func (v *JSONView) Event(_ *Walk, e engine.Event) { v.writeLine(runLine{Type: "event", Event: &e}) }

// Refusal implements View.
func (v *JSONView) Refusal(_ *Walk, r *engine.Refusal) {
	v.writeLine(runLine{Type: "refusal", Refusal: r})
}

// End implements View.
func (v *JSONView) End(w *Walk) {
	sum := w.newSummary()
	v.writeLine(runLine{Type: "summary", Summary: &sum})
}

// WorkflowView adapts a definition of either dialect to a walk: its engine, and texts about
// it.
type WorkflowView interface {
	engine.Flow
	// introLists returns the lists to read before the first position.
	introLists() []textList
	// totalCount returns the number of top-level steps or phases, the total in [2/5].
	totalCount() int
	// describePosition returns the number of a position, such as [2/5], and the line below
	// it, or "".
	describePosition(s engine.State, pos engine.Position) (number, about string)
	// eventTitle returns the title of the object of an event.
	eventTitle(e engine.Event) string
	// eventPhaseID returns the id of the phase of an event, or "".
	eventPhaseID(e engine.Event) string
	// formatAnswer returns the answer to a gate in words.
	formatAnswer(e engine.Event) string
	// pendingCondition returns the condition that a position waits for in words, or "".
	pendingCondition(s engine.State, pos engine.Position) string
	// IsDeclinable reports whether the gate of a position can be declined.
	IsDeclinable(pos engine.Position) bool
	// IsSkippable reports whether the step of a position, or the rest of its phase, can be
	// skipped.
	IsSkippable(pos engine.Position) bool
	// ParseVariable parses the typed value of a variable: JSON, or else text.
	ParseVariable(name, text string) any
	// SetVariable sets a variable in vars. If name is a path into an object, it stores a
	// copy of the whole object with the changed member.
	SetVariable(s engine.State, vars map[string]any, name string, value any)
	// ExpectedInput returns the inputs that a run accepts under an id.
	ExpectedInput(id string) expectedInput
	// ExpectedInputIDs returns the ids under which a run accepts input.
	ExpectedInputIDs() []string
}

var (
	_ WorkflowView = stepsView{}
	_ WorkflowView = phasesView{}
)

// NewWorkflowView compiles a definition for the engine of its dialect.
func NewWorkflowView(f app.LoadedDefinition) WorkflowView {
	if f.Phases != nil {
		return phasesView{engine.CompilePhases(f.Phases)}
	}
	return stepsView{engine.Compile(f.Steps)}
}

// textList is a list with a heading.
type textList struct {
	heading string
	texts   []string
}

// expectedInput describes the inputs that a run accepts under one id. Ids of phase
// workflows are unique only within their phase, so it may cover several objects.
type expectedInput struct {
	// Known reports whether the id exists.
	Known bool
	// Output reports whether an output is accepted.
	Output bool
	// Options are the options of the gate with that id. Declinable and Skippable report
	// whether the gate can be declined and the step skipped.
	Options               []string
	Declinable, Skippable bool
	// Repeating lists the options after which the run asks for the same input again.
	Repeating []string
}

// mergeInput adds the inputs of another object with the same id.
func (a *expectedInput) mergeInput(b expectedInput) {
	a.Known = true
	a.Output = a.Output || b.Output
	a.Declinable = a.Declinable || b.Declinable
	a.Skippable = a.Skippable || b.Skippable
	for _, option := range b.Options {
		if !slices.Contains(a.Options, option) {
			a.Options = append(a.Options, option)
		}
	}
	a.Repeating = append(a.Repeating, b.Repeating...)
}
