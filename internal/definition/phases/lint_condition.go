package phases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/shape"
)

// LintCondition is Lint for a document that is a condition.
func LintCondition(e *condition.Expr, root *doc.Node, file string) []guideway.Diagnostic {
	l := &linter{parser: newParser(file), vars: newVariables(&Workflow{})}
	l.constant(shape.Root(root, ""), e, "the condition")
	return l.Findings(guideway.SeverityWarning)
}

// The bounds of what is compared: a hostile workflow has more, and no other.
const (
	maxCompared = 200
	maxBefore   = 16
)

// condition looks at a condition and at the variables that it reads. True means
// that it is the same whatever the variables are.
func (l *linter) condition(at shape.Place, e *condition.Expr, what string) bool {
	l.reads(at, e, what)
	return l.constant(at, e, what)
}

// constant reports comparisons, and conditions, that always or never hold.
func (l *linter) constant(at shape.Place, e *condition.Expr, what string) bool {
	found := false
	l.comparisons(at, e, func(at shape.Place, leaf *condition.Expr) {
		l.form(at, leaf)
		value, ok := leaf.ConstantIn(l.vars.domain)
		if !ok {
			return
		}
		found = true
		subject := what
		if leaf != e {
			subject = fmt.Sprintf("the comparison '%s' in %s", leaf, what)
		}
		l.constantFinding(at, value, subject, leaf, l.vars.reason(leaf))
	})
	if found || len(e.Of) == 0 || l.compared >= maxCompared {
		return found
	}
	l.compared++
	value, ok := e.ConstantIn(l.vars.domain)
	if ok {
		l.constantFinding(at, value, what, e, "")
	}
	return ok
}

// constantFinding reports what always or never holds.
func (l *linter) constantFinding(at shape.Place, value bool, subject string, e *condition.Expr, reason string) {
	code, verb, fix := CodeConditionNever, "can never hold", "compare with a value that the variable can have"
	if value {
		code, verb, fix = CodeConditionAlways, "always holds", "remove it, or compare with something that can be otherwise"
	}
	said := ""
	if !strings.Contains(subject, e.String()) {
		said = ": " + e.String()
	}
	if reason != "" {
		said += " (" + reason + ")"
	}
	l.Warnf(at, code, fix, "%s %s%s.", shape.Capital(subject), verb, said)
}

// form looks for what has no effect in a comparison.
func (l *linter) form(at shape.Place, leaf *condition.Expr) {
	if value := at.Key("value"); value.Node != nil && (leaf.Op == condition.Exists || leaf.Op == condition.NotExists) {
		l.Warnf(value, CodeConditionIgnored, "remove it, or compare with '=='", "The value has no effect: '%s' compares with nothing.", leaf)
	}
	if strings.HasPrefix(leaf.Var, ".") || strings.HasSuffix(leaf.Var, ".") || strings.Contains(leaf.Var, "..") {
		l.Warnf(at.Key("variable"), CodeVariablePath, "write names with single dots between: plan.tasks", "The path %s leads nowhere.", shape.Quote(leaf.Var))
	}
}

// comparisons visits the comparisons of a condition with their places.
func (l *linter) comparisons(at shape.Place, e *condition.Expr, visit func(shape.Place, *condition.Expr)) {
	switch {
	case e == nil:
	case e.Op == condition.And || e.Op == condition.Or:
		for i, part := range e.Of {
			l.comparisons(at.Key("conditions").Index(i), part, visit)
		}
	case e.Op == condition.Not:
		l.comparisons(at.Key("condition"), e.Of[0], visit)
	default:
		visit(at, e)
	}
}

// shadowed says whether a condition never holds where those before it do not.
func (l *linter) shadowed(e *condition.Expr, before []*condition.Expr) bool {
	if len(before) == 0 || len(before) > maxBefore || l.compared >= maxCompared {
		return false
	}
	l.compared++
	all := &condition.Expr{Op: condition.And, Mode: condition.Strict}
	for _, other := range before {
		all.Of = append(all.Of, &condition.Expr{Op: condition.Not, Mode: condition.Strict, Of: []*condition.Expr{other}})
	}
	all.Of = append(all.Of, e)
	value, ok := all.ConstantIn(l.vars.domain)
	return ok && !value
}

// covers says whether one of the conditions always holds once their variables are
// set. That what the engine writes is written by then is taken for granted: late
// looks for where it cannot be.
func (l *linter) covers(conditions []*condition.Expr) bool {
	if len(conditions) > maxBefore || l.compared >= maxCompared {
		// What is not looked at is not complained of.
		return true
	}
	l.compared++
	e := &condition.Expr{Op: condition.Or, Mode: condition.Strict, Of: conditions}
	var asked []string
	for _, c := range conditions {
		l.comparisons(shape.Place{}, c, func(_ shape.Place, leaf *condition.Expr) {
			if leaf.Op == condition.Exists || leaf.Op == condition.NotExists {
				asked = append(asked, leaf.Var)
			}
		})
	}
	value, ok := e.ConstantIn(func(name string) condition.Domain {
		d := l.vars.domain(name)
		if !slices.Contains(asked, name) {
			d.Set = true
			d.Values = slices.DeleteFunc(d.Values, func(v any) bool { return v == nil })
		}
		return d
	})
	return ok && value
}
