package expr

import (
	"sync"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// operatorOrder returns the precedence of several operators on one object; as in WorkRail,
// only the first one is used.
func operatorOrder() []Op {
	return []Op{Equals, NotEquals, Gt, Gte, Lt, Lte, Contains, StartsWith, EndsWith, Matches}
}

// Parse parses a condition of a step workflow from decoded JSON. It never fails, as in
// WorkRail: a missing or empty condition and a text, number or boolean always hold; an
// invalid object and a list with elements never do.
//
// An object is invalid if it has neither a name as "var" nor "and", "or" or "not", or if
// its "and" or "or" is not a list. The negation of an invalid condition is invalid too, and
// never holds.
func Parse(v any) *Expr {
	switch value := v.(type) {
	case map[string]any:
		if len(value) == 0 {
			return nil
		}
		e, _ := parseObject(value)
		return e
	case []any:
		if len(value) > 0 {
			return &Expr{Op: Never}
		}
	}
	return nil
}

// parseOperand parses a part of a condition. It never returns nil; the bool reports whether
// the whole part is valid.
func parseOperand(v any) (*Expr, bool) {
	if object, ok := v.(map[string]any); ok && len(object) > 0 {
		return parseObject(object)
	}
	e := Parse(v)
	if e == nil {
		return &Expr{Op: Always}, true
	}
	return e, false
}

// parseObject parses an object with at least one key: a comparison if it has a "var",
// otherwise "and", "or" or "not", in this order.
func parseObject(object map[string]any) (*Expr, bool) {
	if name, ok := object["var"].(string); ok && name != "" {
		return parseComparison(name, object), true
	}
	for _, op := range []Op{And, Or} {
		if operands, ok := object[string(op)]; ok {
			return parseList(op, operands)
		}
	}
	if operand, ok := object[string(Not)]; ok {
		e, understood := parseOperand(operand)
		if !understood {
			return &Expr{Op: Never}, false
		}
		return &Expr{Op: Not, Of: []*Expr{e}}, true
	}
	return &Expr{Op: Never}, false
}

// parseComparison parses a comparison with its first operator. A "var" without operators is
// tested for truth.
func parseComparison(name string, object map[string]any) *Expr {
	for _, op := range operatorOrder() {
		value, ok := object[string(op)]
		if !ok {
			continue
		}
		e := &Expr{Op: op, Var: name, Value: value}
		if op == Matches {
			e.compiled = sync.OnceValue(func() *pattern.Pattern { return compilePattern(value) })
		}
		return e
	}
	return &Expr{Op: Truthy, Var: name}
}

// parseList reads the operands of "and" or "or".
func parseList(op Op, v any) (*Expr, bool) {
	list, ok := v.([]any)
	if !ok {
		return &Expr{Op: Never}, false
	}
	e, all := &Expr{Op: op, Of: make([]*Expr, 0, len(list))}, true
	for _, operand := range list {
		part, understood := parseOperand(operand)
		e.Of = append(e.Of, part)
		all = all && understood
	}
	return e, all
}

// compilePattern compiles the pattern of a matches comparison; it returns nil if v is not a
// text or not a valid pattern. The pattern always ignores case, as in WorkRail.
func compilePattern(v any) *pattern.Pattern {
	source, ok := v.(string)
	if !ok {
		return nil
	}
	p, err := pattern.Compile(source, "i")
	if err != nil {
		return nil
	}
	return p
}
