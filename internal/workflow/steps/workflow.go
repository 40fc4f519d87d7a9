// Package steps implements the dialect of step workflows (WorkRail's format): types,
// parser, structural checks and linter.
package steps

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/compress"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// Workflow is a parsed step workflow. It is immutable once parsed.
type Workflow struct {
	ID, Name, Description, Version string
	Preconditions                  []string
	ClarificationPrompts           []string
	MetaGuidance                   []string
	Functions                      []Function
	// ContextRules define which variables to keep when a context is compressed. They are an
	// extension of WorkRail's format.
	ContextRules compress.Rules
	// Steps are the top-level steps in document order, including loop bodies that a loop
	// names by ID.
	Steps []Step
	// Canonical is the document as RFC 8785 JSON. The texts and the sources of the workflow
	// are substrings of it if possible.
	Canonical string
}

// Step is a standard step, or a loop if Loop is set.
type Step struct {
	ID, Title string
	// Prompt, AgentRole and Guidance are texts for the agent. A loop can have a prompt, which
	// comes with the first step of each round; it is an extension of WorkRail's format.
	Prompt    string
	AgentRole string
	Guidance  []string
	// AskForFiles and HasValidation are hints for the caller.
	AskForFiles, HasValidation bool
	// Confirm is the condition of a confirmation by a person; nil means never, and Always
	// means always.
	Confirm *expr.Expr
	// Person is set if the confirmation requires human approval. It is an extension of
	// WorkRail's format ("approval": "human").
	Person bool
	// Approval names the roles and the number of the persons; nil if one approver is enough.
	Approval *guideway.Approval
	// RunCondition decides whether the step applies; nil means always.
	RunCondition *expr.Expr
	// Criteria check the step's output; nil accepts any text that is not blank.
	Criteria *criteria.Criterion
	// Functions are defined by this step; Calls and References use functions.
	Functions  []Function
	Calls      []FunctionCall
	References []string
	// Tools restricts the tools of the agent during the step, or during all steps of a loop;
	// nil restricts none. It is an extension of WorkRail's format.
	Tools *toolpolicy.Policy
	// Loop is set if the step is a loop.
	Loop *Loop
	// Source contains parts of the step as JSON, for callers.
	Source Source
}

// Source holds parts of a document as canonical JSON; a missing part is "".
type Source struct {
	// Loop is the whole loop. If the document names the body by ID, Loop contains the step
	// itself instead of the ID. It is empty for steps that are not loops.
	Loop string
	// Confirm, Condition and Criteria are requireConfirmation, runCondition
	// and validationCriteria.
	Confirm, Condition, Criteria string
}

// LoopType is the type of a loop.
type LoopType string

// The loop types.
const (
	LoopWhile   LoopType = "while"
	LoopUntil   LoopType = "until"
	LoopFor     LoopType = "for"
	LoopForEach LoopType = "forEach"
)

// Loop is the configuration and the body of a loop.
type Loop struct {
	Type LoopType
	// Condition is the condition of a while or until loop.
	Condition *expr.Expr
	// Count is the count of a for loop; if CountVar is set, that variable contains the
	// count.
	Count    int
	CountVar string
	// Items is the variable with the list of a forEach loop.
	Items string
	// MaxIterations limits every loop, 1 to 1000.
	MaxIterations int
	// IterationVar (1-based), ItemVar and IndexVar (0-based) are the names of the loop's
	// variables. Their defaults are currentIteration, currentItem and currentIndex.
	IterationVar, ItemVar, IndexVar string
	// BodyRef is the ID of the body if it is a top-level step, otherwise "".
	BodyRef string
	// Body contains the steps of a round; for a BodyRef the parser copies the named step.
	Body []Step
}

// Variables returns the names of the variables that the loop sets in its rounds.
func (l *Loop) Variables() []string {
	names := []string{l.IterationVar, l.IndexVar}
	if l.Type == LoopForEach {
		names = append(names, l.ItemVar)
	}
	return names
}

// Function is a definition that steps refer to instead of repeating its text.
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

// Walked returns the top-level steps in order, without those that are only a loop's body.
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
