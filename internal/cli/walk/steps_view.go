package walk

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// stepsView is the view of a step workflow.
type stepsView struct{ *engine.Program }

func (c stepsView) introLists() []textList {
	return []textList{
		{"Before you begin", c.Workflow.Preconditions},
		{"Questions to ask first", c.Workflow.ClarificationPrompts},
		{"Rules for the whole run", c.Workflow.MetaGuidance},
	}
}

func (c stepsView) totalCount() int { return c.TotalSteps() }

// describePosition numbers the top-level steps. A step in a loop has the number of the
// loop.
func (c stepsView) describePosition(s engine.State, pos engine.Position) (number, about string) {
	walked := c.Workflow.Walked()
	at := slices.IndexFunc(walked, func(s *steps.Step) bool { return s.ID == pos.ID }) + 1
	if at == 0 {
		at = min(s.Cursor+1, len(walked))
	}
	return fmt.Sprintf("[%d/%d]", at, c.TotalSteps()), ""
}

func (c stepsView) eventTitle(e engine.Event) string {
	if step, ok := c.Step(e.Step); ok {
		return step.Title
	}
	return e.Step
}

func (c stepsView) eventPhaseID(engine.Event) string { return "" }

func (c stepsView) isLoop(id string) bool {
	step, ok := c.Step(id)
	return ok && step.Loop != nil
}

// formatAnswer returns a word for the option.
func (c stepsView) formatAnswer(e engine.Event) string {
	switch {
	case e.Option == engine.OptionSkip:
		return "skip"
	case e.Option == engine.OptionConfirm && c.isLoop(e.Step):
		return "begin"
	default:
		return e.Option
	}
}

func (c stepsView) pendingCondition(s engine.State, pos engine.Position) string {
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

// IsDeclinable and IsSkippable return false: the dialect has no optional gates or steps.
func (c stepsView) IsDeclinable(engine.Position) bool { return false }
func (c stepsView) IsSkippable(engine.Position) bool  { return false }

func (c stepsView) ParseVariable(_, text string) any { return app.ParseValue(text) }

func (c stepsView) SetVariable(_ engine.State, vars map[string]any, name string, value any) {
	vars[name] = value
}

func (c stepsView) ExpectedInput(id string) expectedInput {
	step, ok := c.Step(id)
	switch {
	case !ok:
		return expectedInput{}
	case step.Loop != nil:
		return expectedInput{Known: true, Output: true, Options: []string{engine.OptionConfirm, engine.OptionSkip}}
	default:
		return expectedInput{
			Known: true, Output: true, Options: []string{engine.OptionConfirm, engine.OptionRevise},
			Repeating: []string{engine.OptionRevise},
		}
	}
}

func (c stepsView) ExpectedInputIDs() []string { return c.StepIDs() }
