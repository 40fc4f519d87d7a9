package walk

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/engine"
)

// TextView prints one line for each event of a walk, and a summary at the end.
type TextView struct{ app.TextPrinter }

var _ View = (*TextView)(nil)

func (v *TextView) Begin(w *Walk) {
	fmt.Fprintf(v.Out, "%s %s %s\n", v.Styles.Bold(app.OneLine(w.Def.Name)), w.Def.ID, v.Styles.Faint(w.Def.Version))
}

func (v *TextView) Position(*Walk, engine.Position) {}

func (v *TextView) Event(w *Walk, e engine.Event) {
	mark, text := EventWords(w, e)
	if text == "" {
		return
	}
	indent := "  "
	if e.Round > 0 && !ofLoop(e.Kind) {
		indent = "    "
	}
	fmt.Fprintf(v.Out, "%s%s  %s\n", indent, v.Mark(mark), text)
}

// Mark sets the word that an event begins with.
func (v *TextView) Mark(word string) string {
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

func (v *TextView) Refusal(*Walk, *engine.Refusal) {}

func (v *TextView) End(w *Walk) {
	sum := w.summary()
	head := v.Styles.Green("Completed")
	if sum.Position != nil {
		head = v.Styles.Yellow("Stopped") + " at " + WhereIs(*sum.Position)
	}
	fmt.Fprintf(v.Out, "\n%s: %s\n", head, w.Past)
	v.Variables(sum.Variables)
}

// Variables lists the variables of a run.
func (v *TextView) Variables(vars map[string]any) {
	if len(vars) == 0 {
		return
	}
	fmt.Fprintln(v.Out, "\nVariables")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(v.Out, "  %s\n", app.Truncate(app.OneLine(name)+" = "+ValueWords(vars[name]), max(v.Width, 72)-2))
	}
}

// JsonView prints a line of JSON for each position and event.
type JsonView struct {
	Enc *json.Encoder
}

var _ View = (*JsonView)(nil)

// runLine is one line of guideway run --json; the type says which field is set.
type runLine struct {
	Type     string           `json:"type"`
	Start    *runStart        `json:"start,omitempty"`
	Status   engine.Status    `json:"status,omitempty"`
	Position *engine.Position `json:"position,omitempty"`
	Event    *engine.Event    `json:"event,omitempty"`
	Refusal  *engine.Refusal  `json:"refusal,omitempty"`
	Summary  *summary         `json:"summary,omitempty"`
}

// runStart says what is walked.
type runStart struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Version string `json:"version"`
	Hash    string `json:"hash"`
	Path    string `json:"path"`
	// Steps counts the steps of a step workflow, Phases the phases of a phase
	// workflow.
	Steps   int            `json:"steps,omitempty"`
	Phases  int            `json:"phases,omitempty"`
	Context map[string]any `json:"context"`
}

// line prints; an output that is gone is found by who reads it.
func (v *JsonView) line(l runLine) {
	v.Enc.SetEscapeHTML(false)
	_ = v.Enc.Encode(l)
}

func (v *JsonView) Begin(w *Walk) {
	start := &runStart{
		ID: w.Def.ID, Name: w.Def.Name, Version: w.Def.Version, Hash: w.Def.Hash, Path: w.Def.Path(), Context: w.Vars,
	}
	if w.Def.Phases != nil {
		start.Phases = w.Course.size()
	} else {
		start.Steps = w.Course.size()
	}
	v.line(runLine{Type: "start", Start: start})
}

func (v *JsonView) Position(w *Walk, pos engine.Position) {
	v.line(runLine{Type: "position", Status: w.Course.Status(w.State), Position: &pos})
}

func (v *JsonView) Event(_ *Walk, e engine.Event) { v.line(runLine{Type: "event", Event: &e}) }

func (v *JsonView) Refusal(_ *Walk, r *engine.Refusal) { v.line(runLine{Type: "refusal", Refusal: r}) }

func (v *JsonView) End(w *Walk) {
	sum := w.summary()
	v.line(runLine{Type: "summary", Summary: &sum})
}
