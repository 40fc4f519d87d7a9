// Package steps is the dialect of step workflows (seed 000): its types, the
// parser, every structural check and the linter.
package steps

import (
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/criterion"
	"github.com/guideway-dev/guideway/internal/window"
)

// Workflow is a parsed step workflow. It is immutable once parsed.
type Workflow struct {
	ID, Name, Description, Version string
	Preconditions                  []string
	ClarificationPrompts           []string
	MetaGuidance                   []string
	Functions                      []Function
	// ContextRules say what the workflow's variables are worth where a context
	// must shrink. They are our extension of the seed's dialect.
	ContextRules window.Rules
	// Steps are the top level in the order of the document, loop bodies that
	// a loop names by id included.
	Steps []Step
	// Canonical is the document as RFC 8785 JSON. The texts and the sources of
	// the workflow are parts of it where they can be.
	Canonical string
}

// Step is a standard step, or a loop where Loop is set.
type Step struct {
	ID, Title string
	// Prompt, AgentRole and Guidance are what the agent reads. A loop has none.
	Prompt    string
	AgentRole string
	Guidance  []string
	// AskForFiles and HasValidation are hints that are passed on as they are.
	AskForFiles, HasValidation bool
	// Confirm asks a person before going on; nil means never, and a condition
	// that always holds means always.
	Confirm *condition.Expr
	// Person says that only a person may give the confirmation, by a way that
	// no agent has. It is our extension of the seed's dialect ("approval":
	// "human").
	Person bool
	// RunCondition decides whether the step applies; nil means always.
	RunCondition *condition.Expr
	// Criteria judge the step's output; nil means that any text will do.
	Criteria *criterion.Criterion
	// Functions are defined by this step; Calls and References use functions.
	Functions  []Function
	Calls      []FunctionCall
	References []string
	// Loop makes the step a loop.
	Loop *Loop
	// Source is what the document says of the step, for those who pass it on.
	Source Source
}

// Source holds parts of a document as canonical JSON; one that the document does
// not have is "".
type Source struct {
	// Loop is the whole loop, its body in place of the id that may name it;
	// a step that is no loop has none.
	Loop string
	// Confirm, Condition and Criteria are requireConfirmation, runCondition
	// and validationCriteria.
	Confirm, Condition, Criteria string
}

// LoopType is the way in which a loop counts.
type LoopType string

// The loop types.
const (
	LoopWhile   LoopType = "while"
	LoopUntil   LoopType = "until"
	LoopFor     LoopType = "for"
	LoopForEach LoopType = "forEach"
)

// Loop is what repeats and until when.
type Loop struct {
	Type LoopType
	// Condition belongs to while and until.
	Condition *condition.Expr
	// Count belongs to for; where CountVar is set the variable holds it.
	Count    int
	CountVar string
	// Items names the variable that forEach goes through.
	Items string
	// MaxIterations bounds every loop, 1 to 1000.
	MaxIterations int
	// IterationVar (1-based), ItemVar and IndexVar (0-based) name the loop's
	// variables. The parser fills in currentIteration, currentItem and
	// currentIndex.
	IterationVar, ItemVar, IndexVar string
	// BodyRef is the id of the body where it is a top-level step, else "".
	BodyRef string
	// Body holds the steps of a round; for a BodyRef the parser copies the
	// step that it names.
	Body []Step
}

// Function is a definition that steps refer to instead of repeating it.
type Function struct {
	Name       string      `json:"name"`
	Definition string      `json:"definition"`
	Parameters []Parameter `json:"parameters,omitempty"`
	Scope      string      `json:"scope,omitempty"`
}

// Parameter is one parameter of a function.
type Parameter struct {
	Name        string `json:"name"`
	Type        string `json:"type"`
	Required    bool   `json:"required,omitempty"`
	Description string `json:"description,omitempty"`
	Enum        []any  `json:"enum,omitempty"`
	Default     any    `json:"default,omitempty"`
}

// FunctionCall is a function with its arguments.
type FunctionCall struct {
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

// Walked lists the steps of the top level that are walked in order: those that
// only are a loop's body are left out.
func (w *Workflow) Walked() []*Step {
	bodies := map[string]bool{}
	for i := range w.Steps {
		if l := w.Steps[i].Loop; l != nil && l.BodyRef != "" {
			bodies[l.BodyRef] = true
		}
	}
	var walked []*Step
	for i := range w.Steps {
		if !bodies[w.Steps[i].ID] {
			walked = append(walked, &w.Steps[i])
		}
	}
	return walked
}
