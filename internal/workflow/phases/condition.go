package phases

import (
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// ParseCondition checks and parses a condition document. It reports all errors; the
// condition is nil if there are any.
func ParseCondition(file string, root *doc.Node) (*expr.Expr, []guideway.Diagnostic) {
	p, at := newParser(file), shape.Root(root, "")
	if !p.Document(at, "A condition", "write one object with a type: simple, and, or, not") {
		return nil, p.Found
	}
	p.checkCondition(at)
	if len(p.Found) > 0 {
		return nil, p.Findings(guideway.SeverityError)
	}
	return expr.ParseStrict(root.Any()), nil
}

// CheckCondition checks and parses a condition in a document of another dialect, and adds
// the diagnostics to the report of that dialect; it returns nil if the condition is
// invalid.
func CheckCondition(r *shape.Report, at shape.Place) *expr.Expr {
	p := parser{Report: *r}
	e := p.readCondition(at)
	*r = p.Report
	return e
}

// readCondition parses a condition; it returns nil if the condition is missing or invalid.
func (p *parser) readCondition(at shape.Place) *expr.Expr {
	if at.Node == nil || !p.checkCondition(at) {
		return nil
	}
	return expr.ParseStrict(at.Node.Any())
}

// checkCondition checks a condition recursively. It returns false after an error.
func (p *parser) checkCondition(at shape.Place) bool {
	before := len(p.Found)
	if at.Node.Kind != doc.Object {
		p.WrongType(at, `a condition such as {"type": "simple", "variable": "done", "operator": "==", "value": true}`)
		return false
	}
	kind := at.Key("type")
	inner := at
	if at.Name != "" {
		inner = at.In("in " + at.Name + " " + at.Where)
	}
	switch {
	case kind.Node == nil:
		p.Missing(inner, "type", missingTypeFix(at.Node))
	case kind.Node.Kind != doc.String:
		p.WrongType(kind.In(inner.Where), "a string")
	case kind.Node.Text == "simple":
		p.checkComparison(inner)
	case kind.Node.Text == "and" || kind.Node.Text == "or":
		p.checkOperands(inner, at.Where)
	case kind.Node.Text == "not":
		p.Closed(inner, "", []string{"type", "condition"})
		p.Require(inner, "condition")
		if part := at.Key("condition"); part.Node != nil {
			part.Name = joinName(at.Name, "condition")
			p.checkCondition(part)
		}
	default:
		p.Choice(kind.In(inner.Where), CodeConditionType, "simple", "and", "or", "not")
	}
	return len(p.Found) == before
}

// joinName returns the name of a part; a whole document has no name.
func joinName(name, part string) string {
	if name == "" {
		return part
	}
	return name + "." + part
}

// missingTypeFix returns the fix for a condition without a type.
func missingTypeFix(n *doc.Node) string {
	switch {
	case n.Get("var") != nil:
		return `write {"type": "simple", "variable": "...", "operator": "==", "value": ...}; only step workflows use "var"`
	case n.Get("conditions") != nil:
		return `add "type": "and", or "or"`
	case n.Get("variable") != nil || n.Get("operator") != nil:
		return `add "type": "simple"`
	case n.Get("condition") != nil:
		return `add "type": "not"`
	default:
		return `add "type": one of simple, and, or, not`
	}
}

// checkComparison checks a simple condition.
func (p *parser) checkComparison(at shape.Place) {
	p.Closed(at, "", []string{"type", "variable", "operator", "value"})
	p.Require(at, "variable", "operator")
	p.readID(at.Key("variable"))
	operator, value := at.Key("operator"), at.Key("value")
	op := p.Choice(operator, shape.CodeEnum, "==", "!=", ">", "<", ">=", "<=", "exists", "notExists")
	needs := false
	switch op {
	case "==", "!=", ">", "<", ">=", "<=":
		needs = true
	}
	switch {
	case value.Node == nil && needs:
		p.Errorf(at, CodeConditionValue, `add "value": the value to compare with; to test whether a value exists, use the operator 'exists' or 'notExists'`,
			"The operator '%s' needs a value to compare with (%s).", op, at.Where)
	case value.Node == nil:
	case value.Node.Kind == doc.Array || value.Node.Kind == doc.Object:
		p.Errorf(value, shape.CodeType, "compare with one value; combine several comparisons in a condition of type 'or'",
			"Field 'value' %s must be a string, a number, a boolean or null, but it is %s.", at.Where, shape.Describe(value.Node))
	}
}

// checkOperands checks the operands of "and" and "or"; outer is the location of the whole
// condition.
func (p *parser) checkOperands(at shape.Place, outer string) {
	p.Closed(at, "", []string{"type", "conditions"})
	p.Require(at, "conditions")
	parts := at.Key("conditions")
	if !p.Array(parts, "a list of conditions") {
		return
	}
	if len(parts.Node.Items) < 2 {
		p.Errorf(parts, CodeFewConditions, "write at least 2 conditions, or one condition without '"+at.Node.Get("type").Text+"' around it",
			"Field 'conditions' %s must have at least 2 conditions for '%s', but it has %d.", at.Where, at.Node.Get("type").Text, len(parts.Node.Items))
	}
	parts.Name = joinName(at.Name, "conditions")
	for i := range parts.Node.Items {
		p.checkCondition(parts.Index(i).In(outer))
	}
}
