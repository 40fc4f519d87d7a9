// Package phases is the dialect of phase workflows and of their related documents:
// conditions, states, skills and activities. It contains their types, parsers, checks and
// the linter, and reads no files.
package phases

import (
	"maps"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// DefaultMaxIterations limits a loop without a limit.
const DefaultMaxIterations = 100

// Workflow is a parsed phase workflow. It is immutable. The ids of its phases are unique,
// and all references to phases are valid.
type Workflow struct {
	ID, Version, Title, Description, Author string
	Tags                                    []string
	// Rules apply to every phase.
	Rules     []string
	Variables []Variable
	// ContextRules define the importance of the workflow's variables when a context is
	// compressed. They are an extension of the original dialect.
	ContextRules compress.Rules
	// InitialPhase is the id of the first phase to run, which need not be the first in the
	// list.
	InitialPhase string
	// Phases are in document order. The number of a phase in state documents and tools is
	// its index in this list plus one.
	Phases []Phase
	// Canonical is the document as RFC 8785 JSON. The texts of the workflow are substrings
	// of it where possible.
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
	// DefaultValue is the initial value, as decoded from JSON, if HasDefault is set. It is
	// null or of the variable's type.
	DefaultValue any
	HasDefault   bool
	// Required is set if a run needs the variable.
	Required bool
}

// Phase is one stage of a workflow. The order inside a phase is: entry actions, steps,
// loops, checkpoints, decisions, transitions, exit actions.
type Phase struct {
	ID, Name, Description string
	// Required defaults to true.
	Required bool
	// EstimatedTime is a duration such as "10-15m".
	EstimatedTime string
	Guide         *Guide
	EntryActions  []Action
	ExitActions   []Action
	Steps         []Step
	Checkpoints   []Checkpoint
	Decisions     []Decision
	Loops         []Loop
	Transitions   []Transition
	// Tools restricts the tools of the agent during the phase; nil restricts none. It is an
	// extension of the original dialect.
	Tools *toolpolicy.Policy
	// Source is the part of the document with the phase, as canonical JSON.
	Source string
}

// Terminal reports whether a run that completed the phase is complete: it has neither
// decisions nor transitions, so only an option of a checkpoint can leave it.
func (p *Phase) Terminal() bool { return len(p.Decisions) == 0 && len(p.Transitions) == 0 }

// Step is one task of a phase or of a loop's round.
type Step struct {
	ID, Name, Description string
	Guide                 *Guide
	// Required defaults to true.
	Required bool
	// Criteria are the rules on the output of the step; nil without any. They are an
	// extension of the original dialect.
	Criteria *criteria.Criterion
	// Tools restricts the tools of the agent during the step, in addition to the phase and
	// the loop.
	Tools   *toolpolicy.Policy
	Actions []Action
}

// Guide refers to a text with instructions.
type Guide struct {
	// Path is a URL, the name of a guide of the workflow, or the path of another file.
	Path string
	// Section is the heading of the relevant part.
	Section string
	Title   string
}

// ActionKind is the kind of an action.
type ActionKind string

// The kinds of actions.
const (
	ActionLog      ActionKind = "log"
	ActionValidate ActionKind = "validate"
	ActionSet      ActionKind = "set"
	ActionEmit     ActionKind = "emit"
)

// Action is an action on entering or leaving a phase, or with a step.
type Action struct {
	Action  ActionKind
	Target  string
	Message string
	// Value is decoded from JSON, if HasValue is set.
	Value    any
	HasValue bool
}

// Holds reports whether a validate action on a variable holds: the variable equals the
// action's value, or exists if the action has no value.
func (a *Action) Holds(vars expr.Lookup) bool {
	value, found, _ := vars.Path(a.Target)
	if !a.HasValue {
		return found && value != nil
	}
	return found && jsontext.Equal(value, a.Value)
}

// SetPath returns a map with one entry: the name and the new value of the variable that
// changes when value is written to path. path is the name of a variable, or a dotted path
// into an object.
func SetPath(vars map[string]any, path string, value any) map[string]any {
	name, rest, dotted := strings.Cut(path, ".")
	if dotted {
		object, _ := vars[name].(map[string]any)
		merged := maps.Clone(object)
		if merged == nil {
			merged = map[string]any{}
		}
		maps.Copy(merged, SetPath(object, rest, value))
		value = merged
	}
	return map[string]any{name: value}
}

// Checkpoint is a question that blocks the phase until it is answered.
type Checkpoint struct {
	ID, Name string
	// Message is the question.
	Message string
	// Prerequisite is the condition for asking the question, or "". The original schema
	// does not have it, but existing workflows use it.
	Prerequisite string
	Guide        *Guide
	Options      []Option
	// Required defaults to true; a checkpoint that is not required can be declined.
	Required bool
	// Blocking is always true: the dialect has no checkpoints that do not block.
	Blocking bool
	// Person is set if only a person may answer, through a channel that no agent has. It is
	// an extension of the original dialect ("approval": "human").
	Person bool
	// Approval names the roles and the number of the persons; nil if one approver is enough.
	Approval *guideway.Approval
	// Source is the part of the document with the checkpoint, as canonical JSON.
	Source string
}

// Option is one answer to a checkpoint.
type Option struct {
	ID, Label, Description string
	Effect                 Effect
}

// Effect is the effect of an answer; the zero value has no effect.
type Effect struct {
	// SetVariable are the variables to set, sorted by name.
	SetVariable []Assignment
	// TransitionTo is the id of the phase to go to immediately, or "".
	TransitionTo string
	// SkipPhases are ids of phases to pass through, never of the current phase.
	SkipPhases []string
}

// Assignment is a variable and its new value, as decoded from JSON.
type Assignment struct {
	Name  string
	Value any
}

// Decision is a branching decided by variables.
type Decision struct {
	ID, Name, Description string
	Guide                 *Guide
	// Branches are at least two, in the order of evaluation.
	Branches []Branch
}

// Branch is an outcome of a decision. A branch with neither Condition nor IsDefault is
// never taken automatically. It is offered as a choice if no other branch applies.
type Branch struct {
	ID, Label string
	// Condition is nil for an unconditional branch.
	Condition    *expr.Expr
	TransitionTo string
	// IsDefault marks the branch to take if no condition holds, at any position in the
	// list. It may also have a condition.
	IsDefault bool
}

// LoopType is the type of a loop.
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
	// Over is the dotted path of the list of a forEach loop, such as "plan.tasks"; see
	// expr.Lookup.Path.
	Over string
	// Condition is evaluated before each round of while and after each round of doWhile; it
	// is never nil there.
	Condition *expr.Expr
	// MaxIterations is the maximum number of rounds, at least 1; the default is
	// DefaultMaxIterations.
	MaxIterations int
	// BreakCondition ends the loop if it holds; it may be nil.
	BreakCondition *expr.Expr
	// Tools restricts the tools of the agent during the loop, in addition to the phase.
	Tools *toolpolicy.Policy
	Steps []Step
	// Phases are ids of phases. The original schema has them without a meaning, and the
	// engine ignores them.
	Phases []string
}

// Transition leads from a phase to another.
type Transition struct {
	To string
	// Condition is nil for an unconditional transition.
	Condition *expr.Expr
	// IsDefault marks the transition to take if no condition holds, at any position in the
	// list. It may also have a condition. A transition that has no condition and is not the
	// default always applies.
	IsDefault bool
}

// Index returns the index of a phase in Phases, or -1.
func (w *Workflow) Index(id string) int {
	return slices.IndexFunc(w.Phases, func(p Phase) bool { return p.ID == id })
}

// Variable returns the declaration of a variable, or nil.
func (w *Workflow) Variable(name string) *Variable {
	return lists.Find(w.Variables, func(v *Variable) bool { return v.Name == name })
}

// Owned returns the sorted names of the variables that an effect, a set action or a loop
// writes. Only the engine may write them.
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

// Fits reports whether a value decoded from JSON is of the type. Null has no type.
func (t VariableType) Fits(value any) bool { return string(t) == jsontext.TypeName(value) }
