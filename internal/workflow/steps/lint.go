package steps

import (
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/rules"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/toolpolicy"
)

// The codes of the linter. Most diagnostics with these codes are warnings.
const (
	CodeUnreachable        = "step-unreachable"
	CodeConditionAlways    = "condition-always"
	CodeConditionNever     = "condition-never"
	CodeConditionIgnored   = "condition-ignored"
	CodeConditionOperators = "condition-operators"
	CodeConditionEmpty     = "condition-empty"
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
	CodeLoopServerVariable = "loop-server-variable"
	CodeBodyPromptLong     = "loop-prompt-long"
	CodeTemplateExpression = "template-expression"
	CodeTemplateUnset      = "template-unset"
	CodeTemplateLate       = "template-late"
	CodeFunctionUnused     = "function-unused"
	CodeFunctionTwice      = "function-duplicate"
	CodeReferenceUnknown   = "function-reference-unknown"
	CodeArgumentUnknown    = "function-argument-unknown"
)

// longPrompt is the length in characters above which a prompt is too long to be read in
// every round of a loop.
const longPrompt = 2000

// Lint reports legal but probably unintended parts of a workflow. Some of them are errors
// although the workflow loads, such as a pattern that does not compile. root contains
// the positions; without it the diagnostics only have pointers.
//
// The dialect has no declarations, so a variable counts as set if its name occurs in a text
// that the agent has already read.
func Lint(w *Workflow, root *doc.Node, file string) []guideway.Diagnostic {
	at := shape.Root(root, "workflow")
	l := &linter{parser: newParser(file), w: w, index: newIndex(w), mentions: newMentions(w)}
	steps := at.Key("steps")
	l.lintDefinitions(at.Key("functionDefinitions"), w.Functions)
	l.lintOutsideReads(steps)
	for i := range w.Steps {
		l.lintTopStep(steps, i)
	}
	l.lintSharedBodies(steps)
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// linter collects warnings and errors.
type linter struct {
	parser
	w        *Workflow
	index    stepIndex
	mentions *mentionIndex
	// nameCache is the cache of knownNames.
	nameCache []string
	// usedFunctions is the cache of isUsed.
	usedFunctions map[string]bool
}

// scope is the context of a step.
type scope struct {
	// order is the step's order among the texts; see mentionIndex.
	order int
	// loop is the loop whose body contains the step, or nil.
	loop *Step
	// functions are the visible definitions, innermost first.
	functions [][]Function
}

// lintTopStep checks a top-level step, with its body if it is a loop.
func (l *linter) lintTopStep(steps shape.Place, i int) {
	at, step := steps.Index(i), &l.w.Steps[i]
	s := scope{order: orderOf(i), functions: [][]Function{step.Functions, l.w.Functions}}
	if j, ok := l.index.loop[step.ID]; ok {
		s = l.bodyScope(j)
		s.functions = [][]Function{step.Functions, l.w.Steps[j].Functions, l.w.Functions}
	}
	l.lintDefinitions(at.Key("functionDefinitions"), step.Functions)
	l.lintStep(at, step, s)
	if step.Loop == nil {
		return
	}
	l.lintLoop(at, step, s)
	if step.Loop.BodyRef != "" {
		return
	}
	for j := range step.Loop.Body {
		body := &step.Loop.Body[j]
		inner := l.bodyScope(i)
		inner.functions = [][]Function{body.Functions, step.Functions, l.w.Functions}
		bodyAt := at.Key("body").Index(j)
		l.lintDefinitions(bodyAt.Key("functionDefinitions"), body.Functions)
		l.lintStep(bodyAt, body, inner)
	}
}

// bodyScope returns the scope of the body of the loop at an index.
func (l *linter) bodyScope(i int) scope {
	return scope{order: orderOf(i), loop: &l.w.Steps[i]}
}

// lintStep checks the common members of steps and loops, and a step's texts.
func (l *linter) lintStep(at shape.Place, step *Step, s scope) {
	if step.RunCondition != nil || at.Node.Get("runCondition") != nil {
		l.lintRunCondition(at.Key("runCondition"), step, s)
	}
	if node := at.Node.Get("requireConfirmation"); node != nil && node.Kind == doc.Object {
		l.lintConfirmation(at.Key("requireConfirmation"), step, s)
	}
	l.lintCriteria(at.Key("validationCriteria"), step, s)
	l.lintTemplates(at, step, s)
	l.lintFunctionUses(at, step, s)
	toolpolicy.Lint(&l.Report, at.Key("tools"), step.Tools, stepSubject(step))
	if s.loop != nil && runeCount(step.Prompt) > longPrompt {
		l.Warnf(at.Key("prompt"), CodeBodyPromptLong, "move text that is the same in every round to a step before the loop",
			"The prompt of step '%s' has %d characters and is read again in every round of loop '%s'.", step.ID, runeCount(step.Prompt), s.loop.ID)
	}
}

// lintCriteria reports the diagnostics of package criteria, and checks the variables in the
// conditions and in the checks of criteria.
func (l *linter) lintCriteria(at shape.Place, step *Step, s scope) {
	rules.Lint(&l.Report, at, step.Criteria, step.ID)
	l.lintRuleConditions(at, step, s)
	rules.VisitTexts(at, func(at shape.Place, text string) { l.lintTemplate(at, text, step, s) })
}

// lintSharedBodies reports a step that is the body of two loops.
func (l *linter) lintSharedBodies(steps shape.Place) {
	usedBy := map[string]string{}
	for i := range l.w.Steps {
		step := &l.w.Steps[i]
		if step.Loop == nil || step.Loop.BodyRef == "" {
			continue
		}
		ref := step.Loop.BodyRef
		if first, ok := usedBy[ref]; ok {
			l.Warnf(steps.Index(i).Key("body"), CodeLoopBodyShared, "give each loop its own body, so that the work of each loop stays distinct",
				"Step '%s' is the body of loop '%s' and of loop '%s'.", ref, first, step.ID)
			continue
		}
		usedBy[ref] = step.ID
	}
}

// stepSubject names a step in a message.
func stepSubject(step *Step) string {
	if step.Loop != nil {
		return fmt.Sprintf("loop '%s'", step.ID)
	}
	return fmt.Sprintf("step '%s'", step.ID)
}
