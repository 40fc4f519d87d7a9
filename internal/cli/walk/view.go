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
