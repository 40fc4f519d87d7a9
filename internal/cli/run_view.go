package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/guideway-dev/guideway/internal/guide"
)

// textView prints one line for each event of a walk, and a summary at the end.
type textView struct{ textPrinter }

var _ view = (*textView)(nil)

func (v *textView) begin(w *walk) {
	fmt.Fprintf(v.out, "%s %s %s\n", v.styles.bold(oneLine(w.def.Name)), w.def.ID, v.styles.faint(w.def.Version))
}

func (v *textView) position(*walk, guide.Position) {}

func (v *textView) event(w *walk, e guide.Event) {
	mark, text := eventWords(w, e)
	if text == "" {
		return
	}
	indent := "  "
	if e.Round > 0 && !ofLoop(e.Kind) {
		indent = "    "
	}
	fmt.Fprintf(v.out, "%s%s  %s\n", indent, v.mark(mark), text)
}

// mark sets the word that an event begins with.
func (v *textView) mark(word string) string {
	padded := fmt.Sprintf("%-7s", word)
	switch word {
	case markDone:
		return v.styles.green(padded)
	case markSkipped:
		return v.styles.faint(padded)
	case markGate:
		return v.styles.yellow(padded)
	default:
		return v.styles.cyan(padded)
	}
}

func (v *textView) refusal(*walk, *guide.Refusal) {}

func (v *textView) end(w *walk) {
	sum := w.summary()
	head := v.styles.green("Completed")
	if sum.Position != nil {
		head = v.styles.yellow("Stopped") + " at " + whereIs(*sum.Position)
	}
	fmt.Fprintf(v.out, "\n%s: %s\n", head, w.past)
	v.variables(sum.Variables)
}

// variables lists the variables of a run.
func (v *textView) variables(vars map[string]any) {
	if len(vars) == 0 {
		return
	}
	fmt.Fprintln(v.out, "\nVariables")
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		fmt.Fprintf(v.out, "  %s\n", cut(oneLine(name)+" = "+valueWords(vars[name]), max(v.width, 72)-2))
	}
}

// jsonView prints a line of JSON for each position and event.
type jsonView struct {
	enc *json.Encoder
}

var _ view = (*jsonView)(nil)

// runLine is one line of guideway run --json; the type says which field is set.
type runLine struct {
	Type     string          `json:"type"`
	Start    *runStart       `json:"start,omitempty"`
	Status   guide.Status    `json:"status,omitempty"`
	Position *guide.Position `json:"position,omitempty"`
	Event    *guide.Event    `json:"event,omitempty"`
	Refusal  *guide.Refusal  `json:"refusal,omitempty"`
	Summary  *summary        `json:"summary,omitempty"`
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
func (v *jsonView) line(l runLine) {
	v.enc.SetEscapeHTML(false)
	_ = v.enc.Encode(l)
}

func (v *jsonView) begin(w *walk) {
	start := &runStart{
		ID: w.def.ID, Name: w.def.Name, Version: w.def.Version, Hash: w.def.Hash, Path: w.def.path(), Context: w.vars,
	}
	if w.def.Phases != nil {
		start.Phases = w.course.size()
	} else {
		start.Steps = w.course.size()
	}
	v.line(runLine{Type: "start", Start: start})
}

func (v *jsonView) position(w *walk, pos guide.Position) {
	v.line(runLine{Type: "position", Status: w.course.Status(w.state), Position: &pos})
}

func (v *jsonView) event(_ *walk, e guide.Event) { v.line(runLine{Type: "event", Event: &e}) }

func (v *jsonView) refusal(_ *walk, r *guide.Refusal) { v.line(runLine{Type: "refusal", Refusal: r}) }

func (v *jsonView) end(w *walk) {
	sum := w.summary()
	v.line(runLine{Type: "summary", Summary: &sum})
}
