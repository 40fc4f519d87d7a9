package walk

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
)

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
