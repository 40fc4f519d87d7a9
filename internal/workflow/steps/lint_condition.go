package steps

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	exprpkg "github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/rules"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// lintRunCondition checks the run condition of a step.
func (l *linter) lintRunCondition(at shape.Place, step *Step, s scope) {
	l.lintIgnored(at)
	value, constant := step.RunCondition.Constant()
	switch {
	case at.Node != nil && at.Node.Kind == doc.Object && len(at.Node.Members) == 0: // lintIgnored reports it
	case constant && value:
		l.Warnf(at, CodeConditionAlways, "remove the condition", "The runCondition of %s is always true%s.", stepSubject(step), conditionSuffix(step.RunCondition))
	case constant:
		l.Warnf(at, CodeUnreachable, "fix the condition, or remove the step", "%s never runs: its runCondition is never true%s.", shape.Capital(stepSubject(step)), conditionSuffix(step.RunCondition))
	case l.neverHoldsInRounds(step, s):
		l.Warnf(at, CodeUnreachable, "compare with the number of an existing round, or raise the number of rounds",
			"%s never runs: its runCondition is false in every round of loop '%s', which has at most %s: %s.", shape.Capital(stepSubject(step)), s.loop.ID, shape.Count(maxRoundsOf(s.loop.Loop), "round"), step.RunCondition)
	}
	by := s.order - 1
	if s.loop != nil {
		// A body step may read variables that earlier steps of the body set.
		by = s.order
	}
	l.lintReads(at, step.RunCondition, "the runCondition of "+stepSubject(step), s, by)
}

// lintConfirmation checks the condition of a confirmation.
func (l *linter) lintConfirmation(at shape.Place, step *Step, s scope) {
	l.lintIgnored(at)
	if value, constant := step.Confirm.Constant(); constant && value {
		l.Warnf(at, CodeConditionAlways, "write \"requireConfirmation\": true", "The requireConfirmation of %s is always true%s.", stepSubject(step), conditionSuffix(step.Confirm))
	} else if constant {
		l.Warnf(at, CodeConditionNever, "fix or remove the condition", "The requireConfirmation of %s is never true%s.", stepSubject(step), conditionSuffix(step.Confirm))
	}
	by := s.order
	if step.Loop != nil {
		// A step is confirmed after its output, but a loop before its start.
		by--
	}
	l.lintReads(at, step.Confirm, "the requireConfirmation of "+stepSubject(step), s, by)
}

// lintRuleConditions checks the conditions of a step's rules.
func (l *linter) lintRuleConditions(at shape.Place, step *Step, s scope) {
	rules.VisitConditions(at, func(at shape.Place) {
		l.lintIgnored(at)
		expr := exprpkg.Parse(at.Node.Any())
		if value, constant := expr.Constant(); constant && value {
			l.Warnf(at, CodeConditionAlways, "remove the condition", "The condition of a rule of %s is always true%s.", stepSubject(step), conditionSuffix(expr))
		}
		if at.Name != "result" { // a condition on the result of a tool reads no variables of the run
			l.lintReads(at, expr, "the condition of a rule of "+stepSubject(step), s, s.order)
		}
	})
}

// conditionSuffix returns the condition after a colon, or "" if the condition is a
// constant.
func conditionSuffix(expr *exprpkg.Expr) string {
	if len(expr.Variables()) == 0 {
		return ""
	}
	return ": " + expr.String()
}

// lintReads checks that a text mentions each variable of a condition in time, so that the
// agent can set it: the order of the text must not be above by.
func (l *linter) lintReads(at shape.Place, expr *exprpkg.Expr, what string, s scope, by int) {
	for _, name := range expr.Variables() {
		l.lintRead(at, name, what, s, by)
	}
}

// lintRead is like lintReads, for one variable.
func (l *linter) lintRead(at shape.Place, name, what string, s scope, by int) {
	if name == "" || strings.HasPrefix(name, "_") || s.hasLoopVariable(name) {
		return
	}
	switch order := l.mentions.firstMentionOf(name); {
	case order == neverMentioned:
		if l.Once(CodeVariableUnset + name) {
			l.Warnf(at, CodeVariableUnset, l.unsetFix(name), "%s reads the variable '%s', but no text instructs the agent to set it.", shape.Capital(what), name)
		}
	case order > by:
		if l.Once(CodeVariableLate + name) {
			l.Warnf(at, CodeVariableLate, fmt.Sprintf("explain in an earlier step what '%s' is and when to set it", name),
				"%s reads the variable '%s', which no earlier text mentions: the first text that does is in %s.", shape.Capital(what), name, l.stepAt(order))
		}
	}
}

// unsetFix returns the fix for a variable that is never set.
func (l *linter) unsetFix(name string) string {
	return l.Suggest(name, l.knownNames(), fmt.Sprintf("explain in an earlier step what '%s' is and when to set it; otherwise a run stops at this point and asks for the value", name))
}

// knownNames returns the variables that conditions and loops read and that a text mentions.
func (l *linter) knownNames() []string {
	if l.nameCache != nil {
		return l.nameCache
	}
	l.nameCache = []string{}
	add := func(name string) {
		if name != "" && len(l.nameCache) < shape.MaxNames && !slices.Contains(l.nameCache, name) && l.mentions.firstMention(name) != neverMentioned {
			l.nameCache = append(l.nameCache, name)
		}
	}
	for i := range l.w.Steps {
		for _, step := range append([]Step{l.w.Steps[i]}, bodyOf(&l.w.Steps[i])...) {
			for _, name := range append(step.RunCondition.Variables(), step.Confirm.Variables()...) {
				add(name)
			}
			if step.Loop != nil {
				add(step.Loop.CountVar)
				add(step.Loop.Items)
				for _, name := range step.Loop.Condition.Variables() {
					add(name)
				}
			}
		}
	}
	return l.nameCache
}

// bodyOf returns the steps of a round, or nil if the step is not a loop.
func bodyOf(step *Step) []Step {
	if step.Loop == nil {
		return nil
	}
	return step.Loop.Body
}

// stepAt returns the subject of messages about the text with the given order: a top-level
// step or the workflow.
func (l *linter) stepAt(order int) string {
	if order < 1 || order > len(l.w.Steps) {
		return "the workflow"
	}
	return stepSubject(&l.w.Steps[order-1])
}

// hasLoopVariable reports whether a path begins with a variable of the surrounding loop.
func (s scope) hasLoopVariable(path string) bool {
	return s.loop != nil && slices.Contains(s.loop.Loop.Variables(), exprpkg.Root(path))
}

// maxRoundsOf returns the maximum number of rounds of a loop.
func maxRoundsOf(loop *Loop) int {
	if loop.Type == LoopFor && loop.CountVar == "" {
		return min(loop.Count, loop.MaxIterations)
	}
	return loop.MaxIterations
}

// neverHoldsInRounds reports whether the condition of a body step is false in every round,
// regardless of other variables.
func (l *linter) neverHoldsInRounds(step *Step, s scope) bool {
	if s.loop == nil || maxRoundsOf(s.loop.Loop) == 0 {
		return false
	}
	for round := 1; round <= maxRoundsOf(s.loop.Loop); round++ {
		verdict := step.RunCondition.Decide(func(name string) (any, bool) {
			return float64(round), name == s.loop.Loop.IterationVar
		})
		if verdict != exprpkg.No {
			return false
		}
	}
	return true
}

// lintIgnored reports the parts of a condition that have no effect.
func (l *linter) lintIgnored(at shape.Place) {
	if at.Node == nil || at.Node.Kind != doc.Object {
		return
	}
	operators := operatorsOf(at.Node)
	name := at.Node.Get("var")
	switch {
	case len(at.Node.Members) == 0:
		l.Errorf(at, CodeConditionEmpty, "remove the condition, or write a comparison", "The condition is empty, so it tests nothing.")
	case name == nil && len(operators) > 0:
		effect := "so it is never true"
		if at.Node.Get("and") != nil || at.Node.Get("or") != nil || at.Node.Get("not") != nil {
			effect = "so it has no effect"
		}
		l.Warnf(at, CodeConditionIgnored, `add "var": the variable to compare`, "The condition compares nothing: '%s' has no 'var', %s.", operators[0], effect)
	case name != nil && name.Text == "":
		l.Warnf(at.Key("var"), CodeConditionIgnored, "write the name of a variable", "The condition's variable has no name, so the condition is never true.")
	case len(operators) > 1:
		l.Errorf(at, CodeConditionOperators, fmt.Sprintf(`write {"and": [{"var": "%s", "%s": ...}, {"var": "%s", "%s": ...}]}`, name.Text, operators[0], name.Text, operators[1]),
			"A condition has one operator: of %s, only '%s' is used.", strings.Join(operators, ", "), operators[0])
	}
	seen := ""
	for _, key := range []string{"var", "and", "or", "not"} {
		if at.Node.Get(key) == nil {
			continue
		}
		if seen != "" {
			l.Errorf(at.Key(key), CodeConditionOperators, "put both conditions into a list under 'and' or 'or'", "'%s' has no effect next to '%s': a condition has one operator.", key, seen)
			continue
		}
		seen = key
	}
	for _, key := range []string{"and", "or"} {
		if list := at.Key(key); list.Node != nil {
			for i := range list.Node.Items {
				l.lintIgnored(list.Index(i))
			}
		}
	}
	l.lintIgnored(at.Key("not"))
}

// operatorsOf returns the comparisons of a condition in order of precedence.
func operatorsOf(n *doc.Node) []string {
	return lists.Filter([]string{"equals", "not_equals", "gt", "gte", "lt", "lte", "contains", "startsWith", "endsWith", "matches"}, func(key string) bool { return n.Get(key) != nil })
}
