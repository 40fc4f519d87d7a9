// Package phases is the dialect of phase workflows (seed 002) and of the
// documents that belong to them: conditions, states, skills and activities. It
// has their types, the parsers, every check and the linter, and reads no files.
package phases

import (
	"maps"
	"math"
	"slices"

	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// DefaultMaxIterations bounds a loop that does not say its own bound.
const DefaultMaxIterations = 100

// Workflow is a parsed phase workflow. It is immutable once parsed: every id
// that it refers to is there, and no id is there twice.
type Workflow struct {
	ID, Version, Title, Description, Author string
	Tags                                    []string
	// Rules hold in every phase.
	Rules     []string
	Variables []Variable
	// ContextRules say what the workflow's variables are worth where a context
	// must shrink. They are our extension of the seed's dialect.
	ContextRules compress.Rules
	// InitialPhase is the id of the phase to begin with, which need not be the
	// first.
	InitialPhase string
	// Phases are in document order: a phase's number, as state
	// documents and tools have it, is its position in this list plus one.
	Phases []Phase
	// Canonical is the document as RFC 8785 JSON. The texts of the workflow
	// are parts of it where they can be.
	Canonical string
}

// VariableType is the type of a variable.
type VariableType string

// The types of variables.
const (
	TypeString  VariableType = "string"
	TypeNumber  VariableType = "number"
	TypeBoolean VariableType = "boolean"
	TypeArray   VariableType = "array"
	TypeObject  VariableType = "object"
)

// Variable is a declared variable of a workflow.
type Variable struct {
	Name        string
	Type        VariableType
	Description string
	// DefaultValue is the value that a run begins with, as JSON decodes it, if
	// HasDefault; it is of the variable's type.
	DefaultValue any
	HasDefault   bool
	// Required reports whether a run cannot do without the variable.
	Required bool
}

// Phase is one stage of a workflow. Inside it this is the order: entry actions,
// steps, loops, checkpoints, decisions, transitions, exit actions.
type Phase struct {
	ID, Name, Description string
	// Required is true unless the document says otherwise.
	Required bool
	// EstimatedTime is such as "10-15m".
	EstimatedTime string
	Guide         *Guide
	EntryActions  []Action
	ExitActions   []Action
	Steps         []Step
	Checkpoints   []Checkpoint
	Decisions     []Decision
	Loops         []Loop
	Transitions   []Transition
	// Source is what the document says of the phase, as canonical JSON.
	Source string
}

// Terminal reports whether a run that has done the phase is complete: it has
// neither decisions nor transitions, so only an answer at a checkpoint can
// lead on.
func (p *Phase) Terminal() bool { return len(p.Decisions) == 0 && len(p.Transitions) == 0 }

// Step is one task of a phase or of a loop's round.
type Step struct {
	ID, Name, Description string
	Guide                 *Guide
	// Required is true unless the document says otherwise.
	Required bool
	Actions  []Action
}

// Guide points to a text that says how to do something.
type Guide struct {
	// Path is a URL, or the name of a guide of the workflow.
	Path string
	// Section is the heading of the part that is meant.
	Section string
	Title   string
}

// ActionKind is what an action does.
type ActionKind string

// The kinds of actions.
const (
	ActionLog      ActionKind = "log"
	ActionValidate ActionKind = "validate"
	ActionSet      ActionKind = "set"
	ActionEmit     ActionKind = "emit"
)

// Action is something to do on entering or leaving a phase, or with a step.
type Action struct {
	Action  ActionKind
	Target  string
	Message string
	// Value is as JSON decodes it, if HasValue.
	Value    any
	HasValue bool
}

// Checkpoint is a question that blocks the phase until it is answered.
type Checkpoint struct {
	ID, Name string
	// Message is the question.
	Message string
	// Prerequisite is what must have been done before the question is put, or
	// "". The seed does not have it; real workflows do.
	Prerequisite string
	Guide        *Guide
	Options      []Option
	// Required is true unless the document says otherwise; one that is not
	// required can be declined.
	Required bool
	// Blocking is always true: the dialect has no other checkpoints.
	Blocking bool
	// Person reports whether only a person may answer, by a way that no agent has.
	// It is our extension of the seed's dialect ("approval": "human").
	Person bool
	// Source is what the document says of the checkpoint, as canonical JSON.
	Source string
}

// Option is one answer to a checkpoint.
type Option struct {
	ID, Label, Description string
	Effect                 Effect
}

// Effect is what an answer brings about; the zero value is nothing.
type Effect struct {
	// SetVariable are the variables to set, sorted by name.
	SetVariable []Assignment
	// TransitionTo is the id of the phase to go to at once, or "".
	TransitionTo string
	// SkipPhases are ids of phases to pass through, never that of the phase
	// itself.
	SkipPhases []string
}

// Assignment is a variable and the value that it gets, as JSON decodes it.
type Assignment struct {
	Name  string
	Value any
}

// Decision is a branching that is decided by variables.
type Decision struct {
	ID, Name, Description string
	Guide                 *Guide
	// Branches are at least two, in the order in which they are tried.
	Branches []Branch
}

// Branch is one way out of a decision. One that has neither condition nor
// IsDefault is never taken automatically: it is offered to a person where nothing
// else applies.
type Branch struct {
	ID, Label string
	// Condition is nil if there is none. A nil condition holds.
	Condition    *expr.Expr
	TransitionTo string
	// IsDefault makes the branch the one to take if no condition holds,
	// wherever it stands in the list. It may have a condition too.
	IsDefault bool
}

// LoopType is the way in which a loop counts.
type LoopType string

// The loop types.
const (
	LoopForEach LoopType = "forEach"
	LoopWhile   LoopType = "while"
	LoopDoWhile LoopType = "doWhile"
)

// Loop repeats steps.
type Loop struct {
	ID, Name string
	Type     LoopType
	// Variable is the name of the iteration variable, or "".
	Variable string
	// Over is the dotted path of the list that forEach goes through, such as
	// "plan.tasks"; see expr.Lookup.Path.
	Over string
	// Condition is asked before each round of while and after each of doWhile;
	// it is never nil there.
	Condition *expr.Expr
	// MaxIterations bounds the rounds, from 1; the parser fills in
	// DefaultMaxIterations.
	MaxIterations int
	// BreakCondition ends the loop where it holds; nil if there is none.
	// A nil condition holds.
	BreakCondition *expr.Expr
	Steps          []Step
	// Phases are ids of phases. The seed's schema has them, nothing says what
	// they mean, and the engine ignores them.
	Phases []string
}

// Transition is a way from a phase to another.
type Transition struct {
	To string
	// Condition is nil if there is none. A nil condition holds.
	Condition *expr.Expr
	// IsDefault makes the transition the one to take if no condition holds,
	// wherever it stands in the list. It may have a condition too. A
	// transition with neither always applies where it is reached.
	IsDefault bool
}

// Index is the position of a phase in Phases, or -1.
func (w *Workflow) Index(id string) int {
	return slices.IndexFunc(w.Phases, func(p Phase) bool { return p.ID == id })
}

// Variable is the declaration of a variable, or nil.
func (w *Workflow) Variable(name string) *Variable {
	i := slices.IndexFunc(w.Variables, func(v Variable) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Variables[i]
}

// Owned are the names of the variables that an effect, a set action or a loop
// writes, sorted. They belong to the engine: only the engine may write them.
func (w *Workflow) Owned() []string {
	names := map[string]bool{}
	note := func(actions []Action) {
		for i := range actions {
			if actions[i].Action == ActionSet {
				names[actions[i].Target] = true
			}
		}
	}
	steps := func(steps []Step) {
		for i := range steps {
			note(steps[i].Actions)
		}
	}
	for i := range w.Phases {
		phase := &w.Phases[i]
		note(phase.EntryActions)
		note(phase.ExitActions)
		steps(phase.Steps)
		for j := range phase.Loops {
			names[phase.Loops[j].Variable] = true
			steps(phase.Loops[j].Steps)
		}
		for _, checkpoint := range phase.Checkpoints {
			for _, option := range checkpoint.Options {
				for _, set := range option.Effect.SetVariable {
					names[set.Name] = true
				}
			}
		}
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Fits reports whether a value, as JSON decodes it, is of the type. Null is of
// none.
func (t VariableType) Fits(value any) bool {
	switch v := value.(type) {
	case string:
		return t == TypeString
	case float64:
		return t == TypeNumber && !math.IsNaN(v)
	case bool:
		return t == TypeBoolean
	case []any:
		return t == TypeArray
	case map[string]any:
		return t == TypeObject
	default:
		return false
	}
}
