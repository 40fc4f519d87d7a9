package phases

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// LintCondition is like Lint, for a condition document.
func LintCondition(e *expr.Expr, root *doc.Node, file string) []guideway.Diagnostic {
	l := &linter{parser: newParser(file), vars: newVariables(&Workflow{})}
	at := shape.Root(root, "")
	l.lintConstant(at, e, "the condition")
	l.LintHidden(at)
	return l.Findings(guideway.SeverityWarning)
}

// The limits of comparisons between conditions, which protect against hostile workflows.
const (
	maxCompared = 200
	maxBefore   = 16
)

// lintCondition checks a condition and the variables that it reads. It returns true if the
// condition or one of its comparisons is constant.
func (l *linter) lintCondition(at shape.Place, e *expr.Expr, what string) bool {
	l.lintReads(at, e, what)
	return l.lintConstant(at, e, what)
}

// lintConstant reports comparisons and conditions that always or never hold, and returns
// true if there are any.
func (l *linter) lintConstant(at shape.Place, e *expr.Expr, what string) bool {
	found := false
	l.visitComparisons(at, e, func(at shape.Place, leaf *expr.Expr) {
		l.lintComparison(at, leaf)
		value, ok := l.constantValue(leaf)
		if !ok {
			return
		}
		found = true
		subject := what
		if leaf != e {
			subject = fmt.Sprintf("the comparison '%s' in %s", leaf, what)
		}
		l.reportConstant(at, value, subject, leaf, l.vars.constantReason(leaf))
	})
	if found || len(e.Of) == 0 || l.compared >= maxCompared {
		return found
	}
	l.compared++
	value, ok := l.constantValue(e)
	if ok {
		l.reportConstant(at, value, what, e, "")
	}
	return ok
}

// maxLeaves limits the number of comparisons in a condition for which constantIn tries
// values.
const maxLeaves = 50

// constantValue returns the value of a condition that always or never holds; ok is false
// for all other conditions, and for conditions that read several paths.
func (l *linter) constantValue(e *expr.Expr) (value, ok bool) {
	path, ok := onlyPath(e)
	if !ok {
		return false, false
	}
	return constantIn(e, l.vars.domainOf(path))
}

// onlyPath returns the path that all comparisons of a condition read.
func onlyPath(e *expr.Expr) (path string, ok bool) {
	paths := e.Variables()
	if len(paths) != 1 {
		return "", false
	}
	return paths[0], true
}

// constantIn evaluates a condition for the sample values of the one path that it reads; ok
// is false if the results differ.
func constantIn(e *expr.Expr, d domain) (value, ok bool) {
	literals := literalsOf(e)
	if len(literals) > maxLeaves {
		return false, false
	}
	holds := !d.set && e.HoldsWith(nil, false)
	fails := !d.set && !holds
	for _, sample := range d.sampleValues(literals) {
		if e.HoldsWith(sample, true) {
			holds = true
		} else {
			fails = true
		}
	}
	return holds, holds != fails
}

// literalsOf returns the literals of a condition.
func literalsOf(e *expr.Expr) []any {
	if len(e.Of) == 0 {
		return []any{e.Value}
	}
	var all []any
	for _, part := range e.Of {
		all = append(all, literalsOf(part)...)
	}
	return all
}

// reportConstant reports a condition that is always or never true.
func (l *linter) reportConstant(at shape.Place, value bool, subject string, e *expr.Expr, reason string) {
	code, verb, fix := CodeConditionNever, "is never true", "compare with a value that the variable can have"
	if value {
		code, verb, fix = CodeConditionAlways, "is always true", "remove the condition, or compare with a value that can differ"
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

// lintComparison reports parts of a comparison that have no effect.
func (l *linter) lintComparison(at shape.Place, leaf *expr.Expr) {
	if value := at.Key("value"); value.Node != nil && (leaf.Op == expr.Exists || leaf.Op == expr.NotExists) {
		l.Warnf(value, CodeConditionIgnored, "remove the value, or use the operator '=='", "The value has no effect: '%s' takes no value.", leaf)
	}
	if strings.HasPrefix(leaf.Var, ".") || strings.HasSuffix(leaf.Var, ".") || strings.Contains(leaf.Var, "..") {
		l.Warnf(at.Key("variable"), CodeVariablePath, "separate names with single dots: plan.tasks", "The variable path %s has an empty name.", shape.Quote(leaf.Var))
	}
}

// visitComparisons visits the comparisons of a condition with their places.
func (l *linter) visitComparisons(at shape.Place, e *expr.Expr, visit func(shape.Place, *expr.Expr)) {
	switch {
	case e == nil:
	case e.Op == expr.And || e.Op == expr.Or:
		for i, part := range e.Of {
			l.visitComparisons(at.Key("conditions").Index(i), part, visit)
		}
	case e.Op == expr.Not:
		l.visitComparisons(at.Key("condition"), e.Of[0], visit)
	default:
		visit(at, e)
	}
}

// isShadowed reports whether a condition never holds if none of the conditions before it
// holds. It compares only conditions that read the same path.
func (l *linter) isShadowed(e *expr.Expr, before []*expr.Expr) bool {
	path, ok := onlyPath(e)
	if !ok || len(before) > maxBefore || l.compared >= maxCompared {
		return false
	}
	l.compared++
	all := &expr.Expr{Op: expr.And, Mode: expr.Strict, Of: []*expr.Expr{e}}
	for _, other := range samePath(before, path) {
		all.Of = append(all.Of, &expr.Expr{Op: expr.Not, Mode: expr.Strict, Of: []*expr.Expr{other}})
	}
	value, ok := constantIn(all, l.vars.domainOf(path))
	return ok && !value
}

// samePath returns the conditions that read one path and no other.
func samePath(conditions []*expr.Expr, path string) []*expr.Expr {
	return slices.DeleteFunc(slices.Clone(conditions), func(e *expr.Expr) bool {
		other, ok := onlyPath(e)
		return !ok || other != path
	})
}

// coversAll reports whether one of the conditions always holds once their variables are
// set, as far as this follows from conditions on a single path. It assumes that variables
// written by the engine are set; lintLateReads reports the exceptions.
func (l *linter) coversAll(conditions []*expr.Expr) bool {
	if len(conditions) > maxBefore || l.compared >= maxCompared {
		return true // too many to compare: assume full coverage, so that there is no warning
	}
	l.compared++
	for _, c := range conditions {
		path, ok := onlyPath(c)
		if !ok {
			continue
		}
		d, asked := l.vars.domainOf(path), false
		same := samePath(conditions, path)
		for _, e := range same {
			l.visitComparisons(shape.Place{}, e, func(_ shape.Place, leaf *expr.Expr) {
				asked = asked || leaf.Op == expr.Exists || leaf.Op == expr.NotExists
			})
		}
		if !asked {
			d.set = true
			d.values = slices.DeleteFunc(slices.Clone(d.values), func(v any) bool { return v == nil })
		}
		if value, ok := constantIn(&expr.Expr{Op: expr.Or, Mode: expr.Strict, Of: same}, d); ok && value {
			return true
		}
	}
	return false
}
