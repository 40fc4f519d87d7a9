package walk

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The words that events begin with.
const (
	markDone    = "done"
	markSkipped = "skipped"
	MarkGate    = "gate"
	markLoop    = "loop"
	markRound   = "round"
	MarkPhase   = "phase"
	MarkWay     = "way"
	markLog     = "log"
	markEmit    = "emit"
	MarkChecked = "checked"
	markImport  = "import"
)

// ofLoop says whether an event is of a loop as a whole, and not of one round.
func ofLoop(kind engine.EventKind) bool {
	switch kind {
	case engine.EventRoundStarted, engine.EventLoopEnded, engine.EventLoopIteration, engine.EventLoopCompleted, engine.EventLoopBroken:
		return true
	default:
		return false
	}
}

// EventWords tells of an event; what speaks for itself has no text.
func EventWords(w *Walk, e engine.Event) (mark, text string) {
	title := app.OneLine(w.Course.title(e))
	switch e.Kind {
	case engine.EventStepCompleted:
		return markDone, e.Step + ": " + title
	case engine.EventStepSkipped, engine.EventPhaseSkipped:
		return markSkipped, e.Step + ": " + app.OneLine(e.Reason)
	case engine.EventLoopEntered, engine.EventLoopStarted:
		if e.Rounds >= 0 {
			title += ", " + app.Plural(e.Rounds, "round", "rounds")
		}
		return markLoop, e.Step + ": " + title
	case engine.EventRoundStarted:
		return markRound, fmt.Sprintf("%s: %d", e.Step, e.Round)
	case engine.EventLoopIteration:
		text = fmt.Sprintf("%s: %d", e.Step, e.Round)
		if e.Value != nil {
			text += ", " + ValueWords(e.Value)
		}
		return markRound, text
	case engine.EventLoopEnded, engine.EventLoopCompleted, engine.EventLoopBroken:
		return markLoop, fmt.Sprintf("%s ends after %s: %s", e.Step, app.Plural(e.Round, "round", "rounds"), app.OneLine(e.Reason))
	case engine.EventGateAnswered, engine.EventCheckpointAnswer:
		return MarkGate, e.Step + ": " + app.OneLine(w.Course.answer(e)) + noteWords(e)
	default:
		return phaseWords(w, e, title)
	}
}

// phaseWords tells of what happens in runs of phase workflows only.
func phaseWords(w *Walk, e engine.Event, title string) (mark, text string) {
	switch e.Kind {
	case engine.EventPhaseEntered:
		return MarkPhase, e.Step + ": " + title
	case engine.EventBranchTaken:
		return MarkWay, fmt.Sprintf("%s: %s, to %s%s", e.Step, e.Option, wayWords(w, e), noteWords(e))
	case engine.EventTransitionTaken:
		return MarkWay, fmt.Sprintf("%s: to %s", e.Step, wayWords(w, e))
	case engine.EventVariableSet:
		return MarkSet, app.OneLine(assignments(e.Vars))
	case engine.EventLogged:
		return markLog, app.OneLine(strings.TrimSpace(e.Message))
	case engine.EventEmitted:
		text = strings.Trim(e.Target+": "+e.Message, ": ")
		if e.Value != nil {
			text = strings.TrimSpace(text + " " + ValueWords(e.Value))
		}
		return markEmit, app.OneLine(text)
	case engine.EventAsserted:
		return MarkChecked, app.OneLine(e.Notes)
	case engine.EventStateImported:
		return markImport, "the state of a run that began elsewhere"
	default:
		return "", ""
	}
}

// noteWords is the note of an answer, in brackets.
func noteWords(e engine.Event) string {
	if e.Notes == "" {
		return ""
	}
	return " (" + app.OneLine(e.Notes) + ")"
}

// wayWords is the id of the phase that an event leads to.
func wayWords(w *Walk, e engine.Event) string {
	if c, ok := w.Course.(phaseCourse); ok {
		return c.phaseID(e.To)
	}
	return ""
}

// assignments are variables with their values, in order of their names.
func assignments(vars map[string]any) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		words = append(words, name+" = "+ValueWords(vars[name]))
	}
	return strings.Join(words, ", ")
}

// WhereIs names a position.
func WhereIs(pos engine.Position) string {
	kinds := map[engine.PositionKind]string{
		engine.PositionStep: "step", engine.PositionGate: "the gate of", engine.PositionContext: "step",
	}
	text := fmt.Sprintf("%s %q", kinds[pos.Kind], pos.ID)
	switch phase := pos.Phase; {
	case phase != nil && phase.ID == pos.ID:
		text = fmt.Sprintf("phase %q", pos.ID)
	case phase != nil:
		if pos.Kind == engine.PositionGate {
			text = fmt.Sprintf("gate %q", pos.ID)
		}
		text += fmt.Sprintf(" of phase %q", phase.ID)
	}
	if pos.Loop != nil {
		text += fmt.Sprintf(", round %d of loop %q", pos.Loop.Round, pos.Loop.ID)
	}
	return text
}

// NeedWords names a variable with the values that would decide.
func NeedWords(need engine.Need) string {
	text := need.Variable
	if len(need.Allowed) > 0 {
		text += ", such as " + valueList(need.Allowed)
	}
	if len(need.Tests) > 0 {
		text += " (" + strings.Join(need.Tests, ", ") + ")"
	}
	return text
}

// valueList writes values as JSON, joined for a sentence.
func valueList(values []any) string {
	words := make([]string, len(values))
	for i, v := range values {
		words[i] = ValueWords(v)
	}
	return strings.Join(words, " or ")
}

// ValueWords writes a value as JSON on one line.
func ValueWords(v any) string {
	text, err := jsontext.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return app.OneLine(string(text))
}

func Ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	default:
		return fmt.Sprintf("%dth", n)
	}
}

// The words of events that a walk has no words for.
const (
	MarkStart   = "start"
	MarkSet     = "set"
	MarkRefused = "refused"
	MarkEnd     = "end"
	MarkBegun   = "begun"
)
