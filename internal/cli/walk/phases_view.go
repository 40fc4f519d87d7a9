package walk

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/catalog/graph"
	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// phasesView is the view of a phase workflow.
type phasesView struct{ *engine.PhaseProgram }

func (c phasesView) introLists() []textList {
	return []textList{{"Rules for the whole run", c.Workflow.Rules}}
}

func (c phasesView) totalCount() int { return len(c.Workflow.Phases) }

// phaseByNumber returns a phase by its 1-based number, or nil.
func (c phasesView) phaseByNumber(number int) *phases.Phase {
	if number < 1 || number > len(c.Workflow.Phases) {
		return nil
	}
	return &c.Workflow.Phases[number-1]
}

// phaseAt returns the phase of a position, or nil before the first phase.
func (c phasesView) phaseAt(pos engine.Position) *phases.Phase {
	if pos.Phase == nil {
		return nil
	}
	return c.phaseByNumber(pos.Phase.Number)
}

func (c phasesView) describePosition(_ engine.State, pos engine.Position) (number, about string) {
	phase := c.phaseAt(pos)
	if phase == nil {
		return fmt.Sprintf("[0/%d]", c.totalCount()), ""
	}
	number = fmt.Sprintf("[%d/%d]", pos.Phase.Number, pos.Phase.Of)
	if pos.ID == phase.ID {
		return number, ""
	}
	about = fmt.Sprintf("in %s (%s)", app.OneLine(phase.Name), phase.ID)
	if i := indexOfStep(phase.Steps, pos.ID); i >= 0 && pos.Loop == nil && len(phase.Steps) > 1 {
		about = fmt.Sprintf("step %d of %d ", i+1, len(phase.Steps)) + about
	}
	return number, about
}

func indexOfStep(list []phases.Step, id string) int {
	return slices.IndexFunc(list, func(s phases.Step) bool { return s.ID == id })
}

// eventTitle searches only the phase of the event.
func (c phasesView) eventTitle(e engine.Event) string {
	phase := c.phaseByNumber(e.Phase)
	if phase == nil {
		return e.Step
	}
	for _, part := range listParts(phase) {
		if part.id == e.Step {
			return part.name
		}
	}
	return e.Step
}

func (c phasesView) eventPhaseID(e engine.Event) string {
	if phase := c.phaseByNumber(e.Phase); phase != nil {
		return phase.ID
	}
	return ""
}

// phasePart is a part of a phase with an id.
type phasePart struct{ name, id string }

// listParts returns a phase and its parts.
func listParts(phase *phases.Phase) []phasePart {
	parts := []phasePart{{phase.Name, phase.ID}}
	addSteps := func(list []phases.Step) {
		for i := range list {
			parts = append(parts, phasePart{list[i].Name, list[i].ID})
		}
	}
	addSteps(phase.Steps)
	for i := range phase.Loops {
		parts = append(parts, phasePart{phase.Loops[i].Name, phase.Loops[i].ID})
		addSteps(phase.Loops[i].Steps)
	}
	for _, c := range phase.Checkpoints {
		parts = append(parts, phasePart{c.Name, c.ID})
	}
	for _, d := range phase.Decisions {
		parts = append(parts, phasePart{d.Name, d.ID})
	}
	return parts
}

// formatAnswer returns the option and its effects.
func (c phasesView) formatAnswer(e engine.Event) string {
	words := []string{e.Option}
	if e.Option == "" {
		words[0] = "declined"
	}
	for _, name := range slices.Sorted(maps.Keys(e.Vars)) {
		words = append(words, name+" = "+FormatValue(e.Vars[name]))
	}
	for _, n := range e.Skips {
		words = append(words, "skips "+c.phaseIDByNumber(n))
	}
	if e.To > 0 {
		words = append(words, "to "+c.phaseIDByNumber(e.To))
	}
	if len(e.Undone) > 0 {
		words = append(words, "omits "+strings.Join(e.Undone, ", "))
	}
	return strings.Join(words, ", ")
}

// phaseIDByNumber returns the id of a phase, or "the end".
func (c phasesView) phaseIDByNumber(number int) string {
	if phase := c.phaseByNumber(number); phase != nil {
		return phase.ID
	}
	return "the end"
}

// pendingCondition returns the condition of the loop, or the conditions of the branches and
// transitions.
func (c phasesView) pendingCondition(_ engine.State, pos engine.Position) string {
	phase := c.phaseAt(pos)
	if phase == nil {
		return ""
	}
	for i := range phase.Loops {
		if l := &phase.Loops[i]; l.ID == pos.ID {
			return graph.PhaseExtent(l)
		}
	}
	var words []string
	add := func(when *expr.Expr, to string) {
		if when != nil {
			words = append(words, fmt.Sprintf("to %s if %s", to, when))
		}
	}
	for i := range phase.Decisions {
		for _, b := range phase.Decisions[i].Branches {
			if phase.Decisions[i].ID == pos.ID {
				add(b.Condition, b.TransitionTo)
			}
		}
	}
	if pos.ID == phase.ID && len(phase.Decisions) == 0 {
		for _, t := range phase.Transitions {
			add(t.Condition, t.To)
		}
	}
	return strings.Join(words, "; ")
}

func (c phasesView) IsDeclinable(pos engine.Position) bool {
	phase := c.phaseAt(pos)
	return phase != nil && slices.ContainsFunc(phase.Checkpoints, func(k phases.Checkpoint) bool {
		return k.ID == pos.ID && !k.Required
	})
}

func (c phasesView) IsSkippable(pos engine.Position) bool {
	phase := c.phaseAt(pos)
	if phase == nil || pos.Kind != engine.PositionStep {
		return false
	}
	// The entry and exit checks of a phase have its id and are not steps.
	return slices.ContainsFunc(ListSteps(phase), func(s phases.Step) bool {
		return s.ID == pos.ID && (!s.Required || !phase.Required)
	})
}

// ListSteps returns the steps of a phase and of its loops.
func ListSteps(phase *phases.Phase) []phases.Step {
	list := slices.Clone(phase.Steps)
	for i := range phase.Loops {
		list = append(list, phase.Loops[i].Steps...)
	}
	return list
}

// ParseVariable parses a value like app.ParseValue, but keeps the text for a string
// variable: a version such as 1.4 is not a number.
func (c phasesView) ParseVariable(name, text string) any {
	value := app.ParseValue(text)
	if _, isText := value.(string); !isText {
		if v := c.Workflow.Variable(name); v != nil && v.Type == phases.TypeString {
			return strings.TrimSpace(text)
		}
	}
	return value
}

// SetVariable sets the root variable of a path, because the engine only accepts whole
// variables.
func (c phasesView) SetVariable(s engine.State, vars map[string]any, name string, value any) {
	root, path, nested := strings.Cut(name, ".")
	if !nested {
		vars[name] = value
		return
	}
	old, set := vars[root]
	if !set {
		old = s.Vars[root]
	}
	vars[root] = setInObject(old, path, value)
}

// setInObject returns a copy of an object with a value at a path.
func setInObject(old any, path string, value any) map[string]any {
	object, _ := old.(map[string]any)
	if object = maps.Clone(object); object == nil {
		object = map[string]any{}
	}
	name, rest, nested := strings.Cut(path, ".")
	if nested {
		value = setInObject(object[name], rest, value)
	}
	object[name] = value
	return object
}

// ExpectedInput finds an id in all phases, or an id PHASE/ID in one phase. The id of a
// phase accepts an output for its entry and exit checks, and while the phase waits for
// variables.
func (c phasesView) ExpectedInput(id string) expectedInput {
	var a expectedInput
	in := ""
	if phase, rest, ok := strings.Cut(id, "/"); ok && c.Workflow.Index(phase) >= 0 {
		in, id = phase, rest
	}
	for i := range c.Workflow.Phases {
		phase := &c.Workflow.Phases[i]
		if in != "" && in != phase.ID {
			continue
		}
		if phase.ID == id {
			a.mergeInput(expectedInput{Output: true, Skippable: !phase.Required})
		}
		for _, step := range ListSteps(phase) {
			if step.ID == id {
				a.mergeInput(expectedInput{Output: true, Skippable: !step.Required || !phase.Required})
			}
		}
		if slices.ContainsFunc(phase.Loops, func(l phases.Loop) bool { return l.ID == id }) {
			a.mergeInput(expectedInput{})
		}
		for _, k := range phase.Checkpoints {
			if k.ID == id {
				a.mergeInput(expectedInput{Options: optionIDs(k), Declinable: !k.Required})
			}
		}
		for _, d := range phase.Decisions {
			if d.ID == id {
				a.mergeInput(expectedInput{Options: branchIDs(d)})
			}
		}
	}
	return a
}

func optionIDs(k phases.Checkpoint) []string {
	return lists.Map(k.Options, func(o phases.Option) string { return o.ID })
}

// branchIDs returns the branches of a decision that an answer can select.
func branchIDs(d phases.Decision) []string {
	var ids []string
	for _, b := range d.Branches {
		if b.Condition == nil && !b.IsDefault {
			ids = append(ids, b.ID)
		}
	}
	return ids
}

func (c phasesView) ExpectedInputIDs() []string {
	var ids []string
	for i := range c.Workflow.Phases {
		for _, part := range listParts(&c.Workflow.Phases[i]) {
			if !slices.Contains(ids, part.id) {
				ids = append(ids, part.id)
			}
		}
	}
	return ids
}

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
