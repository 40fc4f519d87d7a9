package expr

import (
	"sync"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// operatorOrder is the order in which operators on one object win (seed 000: the
// first that is present is the only one that counts).
func operatorOrder() []Op {
	return []Op{Equals, NotEquals, Gt, Gte, Lt, Lte, Contains, StartsWith, EndsWith, Matches}
}

// Parse reads a condition of a step workflow from decoded JSON. It never fails,
// as seed 000 never does: what is missing, empty or no object always holds, and
// what is an object but not understood never does.
//
// Not understood are unknown keys alone, and/or that is no list, and a var that
// is no name. A negation of what is not understood is not understood either: a
// mistake must not hold because it stands under a not.
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

// parseOperand is Parse for a part of a condition: it gives no nil, and says
// whether all of it was understood.
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

// parseObject reads an object with at least one key: a comparison where it has
// a var, else and, or, not in this order.
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

// parseComparison reads the operator that counts; a var alone is its truth.
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

// parseList reads the operands of and or or.
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

// compilePattern returns the pattern of a matches comparison, or nil for what is none.
// The flag is always i (seed 000).
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
