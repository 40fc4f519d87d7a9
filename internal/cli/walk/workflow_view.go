package walk

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/cli/app"
	"github.com/guideway-dev/guideway/internal/engine"
)

// WorkflowView is a definition of either dialect as a walk goes through it: its engine,
// and what is said of it.
type WorkflowView interface {
	engine.Flow
	// introLists is what to read before the first position.
	introLists() []textList
	// totalCount counts what heads of positions count.
	totalCount() int
	// describePosition is the number of a position, such as [2/5], and about the line below
	// it, or "".
	describePosition(s engine.State, pos engine.Position) (number, about string)
	// eventTitle is the title of what an event is about.
	eventTitle(e engine.Event) string
	// eventPhaseID is the id of the phase that an event is of, or "".
	eventPhaseID(e engine.Event) string
	// formatAnswer says an answer to a gate in words.
	formatAnswer(e engine.Event) string
	// pendingCondition says in words the condition that a position waits for, or "".
	pendingCondition(s engine.State, pos engine.Position) string
	// IsDeclinable says whether the gate of a position need not be answered.
	IsDeclinable(pos engine.Position) bool
	// IsSkippable says whether the step of a position, or the rest of its phase,
	// need not be done.
	IsSkippable(pos engine.Position) bool
	// ParseVariable reads what was typed for a variable: JSON, and anything else as the
	// text that it is.
	ParseVariable(name, text string) any
	// SetVariable sets a variable by the name that a position gives it. Where that is a
	// path into an object, vars gets the whole object, with what the run has of
	// it.
	SetVariable(s engine.State, vars map[string]any, name string, value any)
	// ExpectedInput finds what can be asked for by its id.
	ExpectedInput(id string) expectedInput
	// ExpectedInputIDs lists the ids of what can be asked for.
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

// textList is a heading with a list.
type textList struct {
	heading string
	texts   []string
}

// expectedInput is what a walk asks for under one id. Ids of phase workflows are unique
// only within their phase, so it may be more than one thing.
type expectedInput struct {
	// Known says that there is such an id.
	Known bool
	// Output says that an output is asked for.
	Output bool
	// Options are the answers that a gate of that id takes, declinable that it
	// can be declined, and skippable that a step of it can be skipped.
	Options               []string
	Declinable, Skippable bool
	// Repeating are the options that ask for the same again.
	Repeating []string
}

// mergeInput takes in another thing of the same id.
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
