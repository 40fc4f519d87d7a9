package walk

import "github.com/guideway-dev/guideway/internal/cli/app"

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/engine"
)

// Course is a definition of either dialect as a walk goes through it: its engine,
// and what is said of it.
type Course interface {
	engine.Flow
	// intro is what to read before the first position.
	intro() []bullets
	// size counts what heads of positions count.
	size() int
	// head is the number of a position, such as [2/5], and about the line below
	// it, or "".
	head(s engine.State, pos engine.Position) (number, about string)
	// title is the title of what an event is about.
	title(e engine.Event) string
	// phaseOf is the id of the phase that an event is of, or "".
	phaseOf(e engine.Event) string
	// answer says an answer to a gate in words.
	answer(e engine.Event) string
	// undecided says in words the condition that a position waits for, or "".
	undecided(s engine.State, pos engine.Position) string
	// Declinable says whether the gate of a position need not be answered.
	Declinable(pos engine.Position) bool
	// Skippable says whether the step of a position, or the rest of its phase,
	// need not be done.
	Skippable(pos engine.Position) bool
	// Value reads what was typed for a variable: JSON, and anything else as the
	// text that it is.
	Value(name, text string) any
	// Put sets a variable by the name that a position gives it. Where that is a
	// path into an object, vars gets the whole object, with what the run has of
	// it.
	Put(s engine.State, vars map[string]any, name string, value any)
	// Asks finds what can be asked for by its id.
	Asks(id string) asked
	// AsksFor lists the ids of what can be asked for.
	AsksFor() []string
}

var (
	_ Course = stepCourse{}
	_ Course = phaseCourse{}
)

// NewCourse compiles a definition for the engine of its dialect.
func NewCourse(f app.LoadedDefinition) Course {
	if f.Phases != nil {
		return phaseCourse{engine.CompilePhases(f.Phases)}
	}
	return stepCourse{engine.Compile(f.Steps)}
}

// bullets is a heading with a list.
type bullets struct {
	heading string
	texts   []string
}

// asked is what a walk asks for under one id. Ids of phase workflows are unique
// only within their phase, so it may be more than one thing.
type asked struct {
	// Known says that there is such an id.
	Known bool
	// Output says that an output is asked for.
	Output bool
	// Options are the answers that a gate of that id takes, declinable that it
	// can be declined, and skippable that a step of it can be skipped.
	Options               []string
	Declinable, Skippable bool
	// Endless are the options that ask for the same again.
	Endless []string
}

// add takes in another thing of the same id.
func (a *asked) add(b asked) {
	a.Known = true
	a.Output = a.Output || b.Output
	a.Declinable = a.Declinable || b.Declinable
	a.Skippable = a.Skippable || b.Skippable
	for _, option := range b.Options {
		if !slices.Contains(a.Options, option) {
			a.Options = append(a.Options, option)
		}
	}
	a.Endless = append(a.Endless, b.Endless...)
}
