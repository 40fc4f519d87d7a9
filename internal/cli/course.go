package cli

import (
	"slices"

	"github.com/guideway-dev/guideway/internal/guide"
)

// course is a definition of either dialect as a walk goes through it: its engine,
// and what is said of it.
type course interface {
	guide.Flow
	// intro is what to read before the first position.
	intro() []bullets
	// size counts what heads of positions count.
	size() int
	// head is the number of a position, such as [2/5], and about the line below
	// it, or "".
	head(s guide.State, pos guide.Position) (number, about string)
	// title is the title of what an event is about.
	title(e guide.Event) string
	// phaseOf is the id of the phase that an event is of, or "".
	phaseOf(e guide.Event) string
	// answer says an answer to a gate in words.
	answer(e guide.Event) string
	// undecided says in words the condition that a position waits for, or "".
	undecided(s guide.State, pos guide.Position) string
	// declinable says whether the gate of a position need not be answered.
	declinable(pos guide.Position) bool
	// skippable says whether the step of a position, or the rest of its phase,
	// need not be done.
	skippable(pos guide.Position) bool
	// value reads what was typed for a variable: JSON, and anything else as the
	// text that it is.
	value(name, text string) any
	// put sets a variable by the name that a position gives it. Where that is a
	// path into an object, vars gets the whole object, with what the run has of
	// it.
	put(s guide.State, vars map[string]any, name string, value any)
	// asks finds what can be asked for by its id.
	asks(id string) asked
	// asksFor lists the ids of what can be asked for.
	asksFor() []string
}

var (
	_ course = stepCourse{}
	_ course = phaseCourse{}
)

// newCourse compiles a definition for the engine of its dialect.
func (f found) newCourse() course {
	if f.Phases != nil {
		return phaseCourse{guide.CompilePhases(f.Phases)}
	}
	return stepCourse{guide.Compile(f.Steps)}
}

// bullets is a heading with a list.
type bullets struct {
	heading string
	texts   []string
}

// asked is what a walk asks for under one id. Ids of phase workflows are unique
// only within their phase, so it may be more than one thing.
type asked struct {
	// known says that there is such an id.
	known bool
	// output says that an output is asked for.
	output bool
	// options are the answers that a gate of that id takes, declinable that it
	// can be declined, and skippable that a step of it can be skipped.
	options               []string
	declinable, skippable bool
	// endless are the options that ask for the same again.
	endless []string
}

// add takes in another thing of the same id.
func (a *asked) add(b asked) {
	a.known = true
	a.output = a.output || b.output
	a.declinable = a.declinable || b.declinable
	a.skippable = a.skippable || b.skippable
	for _, option := range b.options {
		if !slices.Contains(a.options, option) {
			a.options = append(a.options, option)
		}
	}
	a.endless = append(a.endless, b.endless...)
}
