package walk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// The labels of events.
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

// isLoopEvent reports whether an event belongs to a whole loop and not to one of its
// rounds.
func isLoopEvent(kind engine.EventKind) bool {
	return slices.Contains([]engine.EventKind{
		engine.EventRoundStarted, engine.EventLoopEnded, engine.EventLoopIteration, engine.EventLoopCompleted, engine.EventLoopBroken,
	}, kind)
}

// DescribeEvent returns the label and the text of an event. The text is empty for an event
// that is not shown.
func DescribeEvent(w *Walk, e engine.Event) (mark, text string) {
	title := app.OneLine(w.Workflow.eventTitle(e))
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
			text += ", " + FormatValue(e.Value)
		}
		return markRound, text
	case engine.EventLoopEnded, engine.EventLoopCompleted, engine.EventLoopBroken:
		return markLoop, fmt.Sprintf("%s ends after %s: %s", e.Step, app.Plural(e.Round, "round", "rounds"), app.OneLine(e.Reason))
	case engine.EventGateApproved, engine.EventGateAnswered, engine.EventCheckpointAnswer:
		return MarkGate, e.Step + ": " + app.OneLine(w.Workflow.formatAnswer(e)) + formatNote(e)
	default:
		return describePhaseEvent(w, e, title)
	}
}

// describePhaseEvent describes the events of phase workflows.
func describePhaseEvent(w *Walk, e engine.Event, title string) (mark, text string) {
	switch e.Kind {
	case engine.EventPhaseEntered:
		return MarkPhase, e.Step + ": " + title
	case engine.EventBranchTaken:
		return MarkWay, fmt.Sprintf("%s: %s, to %s%s", e.Step, e.Option, targetPhaseID(w, e), formatNote(e))
	case engine.EventTransitionTaken:
		return MarkWay, fmt.Sprintf("%s: to %s", e.Step, targetPhaseID(w, e))
	case engine.EventVariableSet:
		return MarkSet, app.OneLine(formatAssignments(e.Vars))
	case engine.EventLogged:
		return markLog, app.OneLine(strings.TrimSpace(e.Message))
	case engine.EventEmitted:
		text = strings.Trim(e.Target+": "+e.Message, ": ")
		if e.Value != nil {
			text = strings.TrimSpace(text + " " + FormatValue(e.Value))
		}
		return markEmit, app.OneLine(text)
	case engine.EventAsserted:
		return MarkChecked, app.OneLine(e.Notes)
	case engine.EventStateImported:
		return markImport, "the state of a run that started elsewhere"
	default:
		return "", ""
	}
}

// formatNote returns the note of an answer in parentheses.
func formatNote(e engine.Event) string {
	if e.Notes == "" {
		return ""
	}
	return " (" + app.OneLine(e.Notes) + ")"
}

// targetPhaseID returns the id of the phase that an event leads to.
func targetPhaseID(w *Walk, e engine.Event) string {
	if c, ok := w.Workflow.(phasesView); ok {
		return c.phaseIDByNumber(e.To)
	}
	return ""
}

// formatAssignments returns variables with their values, sorted by name.
func formatAssignments(vars map[string]any) string {
	words := lists.Map(slices.Sorted(maps.Keys(vars)), func(name string) string { return name + " = " + FormatValue(vars[name]) })
	return strings.Join(words, ", ")
}

// DescribePosition returns the name of a position.
func DescribePosition(pos engine.Position) string {
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

// FormatNeed returns a variable with the values that decide the condition.
func FormatNeed(need engine.Need) string {
	text := need.Variable
	if len(need.Allowed) > 0 {
		text += ", such as " + formatValues(need.Allowed)
	}
	if len(need.Tests) > 0 {
		text += " (" + strings.Join(need.Tests, ", ") + ")"
	}
	return text
}

// formatValues formats values as JSON, joined with "or".
func formatValues(values []any) string {
	return strings.Join(lists.Map(values, FormatValue), " or ")
}

// FormatValue formats a value as JSON on one line.
func FormatValue(v any) string {
	text, err := jsontext.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return app.OneLine(string(text))
}

// FormatOrdinal returns a number as an ordinal.
func FormatOrdinal(n int) string {
	switch {
	case n == 1:
		return "first"
	case n == 2:
		return "second"
	case n == 3:
		return "third"
	case n%10 == 1 && n%100 != 11:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2 && n%100 != 12:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3 && n%100 != 13:
		return fmt.Sprintf("%drd", n)
	default:
		return fmt.Sprintf("%dth", n)
	}
}

// Further labels of events. A walk shows only MarkSet.
const (
	MarkStart   = "start"
	MarkSet     = "set"
	MarkRefused = "refused"
	MarkEnd     = "end"
	MarkBegun   = "begun"
)
