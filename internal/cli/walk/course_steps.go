package walk

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// stepCourse is a step workflow.
type stepCourse struct{ *engine.Program }

func (c stepCourse) intro() []bullets {
	return []bullets{
		{"Before you begin", c.Workflow.Preconditions},
		{"To be asked first", c.Workflow.ClarificationPrompts},
		{"Holds throughout", c.Workflow.MetaGuidance},
	}
}

func (c stepCourse) size() int { return c.TotalSteps() }

// head numbers the steps that are walked at the top level; a step in a loop is at
// the loop's number.
func (c stepCourse) head(s engine.State, pos engine.Position) (number, about string) {
	walked := c.Workflow.Walked()
	at := slices.IndexFunc(walked, func(s *steps.Step) bool { return s.ID == pos.ID }) + 1
	if at == 0 {
		at = min(s.Cursor+1, len(walked))
	}
	return fmt.Sprintf("[%d/%d]", at, c.TotalSteps()), ""
}

func (c stepCourse) title(e engine.Event) string {
	if step, ok := c.Step(e.Step); ok {
		return step.Title
	}
	return e.Step
}

func (c stepCourse) phaseOf(engine.Event) string { return "" }

func (c stepCourse) isLoop(id string) bool {
	step, ok := c.Step(id)
	return ok && step.Loop != nil
}

// answer says an answer by the words of its gate.
func (c stepCourse) answer(e engine.Event) string {
	switch {
	case e.Option == engine.OptionSkip:
		return "pass over"
	case e.Option == engine.OptionConfirm && c.isLoop(e.Step):
		return "begin"
	default:
		return e.Option
	}
}

func (c stepCourse) undecided(s engine.State, pos engine.Position) string {
	step, ok := c.Step(pos.ID)
	switch {
	case !ok:
		return ""
	case step.Loop != nil && s.Frame != nil:
		return string(step.Loop.Type) + " " + step.Loop.Condition.String()
	default:
		return app.FormatCondition(step.RunCondition)
	}
}

// Declinable and skippable: the dialect has nothing of the kind.
func (c stepCourse) Declinable(engine.Position) bool { return false }
func (c stepCourse) Skippable(engine.Position) bool  { return false }

func (c stepCourse) Value(_, text string) any { return app.ParseValue(text) }

func (c stepCourse) Put(_ engine.State, vars map[string]any, name string, value any) {
	vars[name] = value
}

func (c stepCourse) Asks(id string) asked {
	step, ok := c.Step(id)
	switch {
	case !ok:
		return asked{}
	case step.Loop != nil:
		return asked{Known: true, Output: true, Options: []string{engine.OptionConfirm, engine.OptionSkip}}
	default:
		return asked{
			Known: true, Output: true, Options: []string{engine.OptionConfirm, engine.OptionRevise},
			Endless: []string{engine.OptionRevise},
		}
	}
}

func (c stepCourse) AsksFor() []string { return c.StepIDs() }
