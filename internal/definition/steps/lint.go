package steps

import (
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// The codes of what a workflow loads with and a person should look at.
const (
	CodeUnreachable        = "step-unreachable"
	CodeConditionAlways    = "condition-always"
	CodeConditionNever     = "condition-never"
	CodeConditionIgnored   = "condition-ignored"
	CodeVariableUnset      = "variable-unset"
	CodeVariableLate       = "variable-late"
	CodeLoopNever          = "loop-never-runs"
	CodeLoopEndless        = "loop-never-ends"
	CodeLoopUntouched      = "loop-condition-untouched"
	CodeLoopCountZero      = "loop-count-zero"
	CodeLoopCountBound     = "loop-count-bound"
	CodeLoopLong           = "loop-long"
	CodeLoopFraction       = "loop-fraction"
	CodeLoopBodyShared     = "loop-body-shared"
	CodeLoopVariableClash  = "loop-variable-clash"
	CodeLoopVariableReach  = "loop-variable-outside"
	CodeBodyPromptLong     = "loop-prompt-long"
	CodeTemplateExpression = "template-expression"
	CodeTemplateUnset      = "template-unset"
	CodeTemplateLate       = "template-late"
	CodeFunctionUnused     = "function-unused"
	CodeFunctionTwice      = "function-duplicate"
	CodeReferenceUnknown   = "function-reference-unknown"
	CodeArgumentUnknown    = "function-argument-unknown"
)

// longPrompt is the length above which a prompt is too much to read in every
// round.
const longPrompt = 2000

// Lint looks for what is legal and most likely not meant, and for the patterns
// and schemas that do not compile: these are errors, though the workflow loads
// with them. The root gives the positions; without one the findings have
// pointers only.
//
// The dialect has no declarations, so a variable counts as set where a text that
// the agent has read by then has its name in it.
func Lint(w *Workflow, root *doc.Node, file string) []guideway.Diagnostic {
	at := shape.Root(root, "workflow")
	l := &linter{parser: newParser(file), w: w, by: newIndex(w), mentions: newMentions(w)}
	steps := at.Key("steps")
	l.definitions(at.Key("functionDefinitions"), w.Functions)
	l.outsideReads(steps)
	for i := range w.Steps {
		l.topStep(steps, i)
	}
	l.sharedBodies(steps)
	return l.Findings(guideway.SeverityWarning)
}

// linter collects warnings.
type linter struct {
	parser
	w        *Workflow
	by       index
	mentions *mentions
	// known are the names that a misspelt one may mean; see names.
	known []string
	// functions are those that some step calls or refers to; see used.
	functions map[string]bool
}

// scope is what surrounds a step.
type scope struct {
	// order is the step's place among the texts; see mentions.
	order int
	// loop is the step whose body this is, if any.
	loop *Step
	// functions are the definitions in reach, innermost first.
	functions [][]Function
}

// topStep looks at a top-level step, and at the body of a loop.
func (l *linter) topStep(steps shape.Place, i int) {
	at, step := steps.Index(i), &l.w.Steps[i]
	s := scope{order: orderOf(i), functions: [][]Function{step.Functions, l.w.Functions}}
	if j, ok := l.by.loop[step.ID]; ok {
		s = l.inside(j)
		s.functions = [][]Function{step.Functions, l.w.Steps[j].Functions, l.w.Functions}
	}
	l.definitions(at.Key("functionDefinitions"), step.Functions)
	l.step(at, step, s)
	if step.Loop == nil {
		return
	}
	l.loop(at, step, s)
	if step.Loop.BodyRef != "" {
		return
	}
	for j := range step.Loop.Body {
		body := &step.Loop.Body[j]
		inner := l.inside(i)
		inner.functions = [][]Function{body.Functions, step.Functions, l.w.Functions}
		bodyAt := at.Key("body").Index(j)
		l.definitions(bodyAt.Key("functionDefinitions"), body.Functions)
		l.step(bodyAt, body, inner)
	}
}

// inside is the scope of the body of the loop at an index.
func (l *linter) inside(i int) scope {
	return scope{order: orderOf(i), loop: &l.w.Steps[i]}
}

// step looks at what steps and loops have in common, and at a step's texts.
func (l *linter) step(at shape.Place, step *Step, s scope) {
	if step.RunCondition != nil || at.Node.Get("runCondition") != nil {
		l.runCondition(at.Key("runCondition"), step, s)
	}
	if node := at.Node.Get("requireConfirmation"); node != nil && node.Kind == doc.Object {
		l.confirmation(at.Key("requireConfirmation"), step, s)
	}
	l.criteria(at.Key("validationCriteria"), step, s)
	l.templates(at, step, s)
	l.uses(at, step, s)
	if s.loop != nil && runes(step.Prompt) > longPrompt {
		l.Warnf(at.Key("prompt"), CodeBodyPromptLong, "move what does not change from round to round into a step before the loop",
			"The prompt of step '%s' has %d characters and is read again in every round of loop '%s'.", step.ID, runes(step.Prompt), s.loop.ID)
	}
}

// criteria passes on what package criterion says of a step's criteria, and looks
// at the variables that their conditions read.
func (l *linter) criteria(at shape.Place, step *Step, s scope) {
	for _, problem := range step.Criteria.Problems() {
		report := l.Warnf
		if !problem.Warning {
			report = l.Errorf
		}
		report(at.Below(problem.Path), problem.Code, problem.Fix, "%s (step '%s')", problem.Message, step.ID)
	}
	l.ruleConditions(at, step, s)
}

// sharedBodies reports a step that is the body of two loops.
func (l *linter) sharedBodies(steps shape.Place) {
	usedBy := map[string]string{}
	for i := range l.w.Steps {
		step := &l.w.Steps[i]
		if step.Loop == nil || step.Loop.BodyRef == "" {
			continue
		}
		ref := step.Loop.BodyRef
		if first, ok := usedBy[ref]; ok {
			l.Warnf(steps.Index(i).Key("body"), CodeLoopBodyShared, "give each loop a body of its own, so that what was done in which loop stays clear",
				"Step '%s' is the body of loop '%s' and of loop '%s'.", ref, first, step.ID)
			continue
		}
		usedBy[ref] = step.ID
	}
}

// subject names a step for a message.
func subject(step *Step) string {
	if step.Loop != nil {
		return fmt.Sprintf("loop '%s'", step.ID)
	}
	return fmt.Sprintf("step '%s'", step.ID)
}
