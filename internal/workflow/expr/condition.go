// Package expr contains the expression tree of both condition grammars, and their
// evaluator. The dialects differ in how they compare: step workflows leniently, like
// WorkRail ("equals" ignores case and converts values), phase workflows strictly.
package expr

import (
	"sync"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// Expr is a condition. A nil Expr always holds. An Expr is immutable, so it is safe for
// concurrent use.
type Expr struct {
	// Op determines the meaning of the other fields.
	Op Op
	// Mode selects the rules of comparisons. It is the same in the whole tree.
	Mode Mode
	// Var is the variable of a comparison, or a dotted path into it (see Lookup.Path). The
	// function Root returns the name of the variable.
	Var string
	// Value is the literal of a comparison, as decoded from JSON.
	Value any
	// Of are the operands of And, Or (any number) or Not (one).
	Of []*Expr

	// compiled returns the pattern of Matches, or nil if it does not compile. It is nil if
	// Parse did not create the Expr.
	compiled func() *pattern.Pattern
}

// Mode is a set of rules for comparisons.
type Mode uint8

// The modes of comparison.
const (
	// Lenient are the rules of step workflows: values are converted, a missing variable is
	// null.
	Lenient Mode = iota
	// Strict are the rules of phase workflows: nothing is converted, a missing variable is
	// not null.
	Strict
)

// Op is an operator.
type Op string

// The operators.
const (
	// Always and Never are constants: an empty condition, and an invalid one.
	Always Op = "always"
	Never  Op = "never"
	// Truthy tests a variable without an operator.
	Truthy Op = "truthy"

	Equals     Op = "equals"
	NotEquals  Op = "not_equals"
	Gt         Op = "gt"
	Gte        Op = "gte"
	Lt         Op = "lt"
	Lte        Op = "lte"
	Contains   Op = "contains"
	StartsWith Op = "startsWith"
	EndsWith   Op = "endsWith"
	Matches    Op = "matches"
	// Exists holds if the variable is set and not null; NotExists is its negation. Only
	// Strict conditions have them.
	Exists    Op = "exists"
	NotExists Op = "notExists"

	And Op = "and"
	Or  Op = "or"
	Not Op = "not"
)

// Lookup finds a variable; ok is false for a variable that was never set. For an explicit
// null it returns (nil, true).
type Lookup func(name string) (value any, ok bool)

// Map returns a Lookup that reads a map. Names are flat keys: "a.b" is one name, as in
// WorkRail.
func Map(vars map[string]any) Lookup {
	return func(name string) (any, bool) {
		value, ok := vars[name]
		return value, ok
	}
}

// Verdict is the value of a condition whose variables may be unset.
type Verdict uint8

// The verdicts.
const (
	// Unknown means that the value depends on a variable that was never set.
	Unknown Verdict = iota
	// No means false for all values of the unset variables.
	No
	// Yes means true for all values of the unset variables.
	Yes
)

// String names the verdict.
func (v Verdict) String() string {
	switch v {
	case Yes:
		return "yes"
	case No:
		return "no"
	default:
		return "unknown"
	}
}

// Negate returns the negation in three-valued logic.
func (v Verdict) Negate() Verdict {
	switch v {
	case Yes:
		return No
	case No:
		return Yes
	default:
		return Unknown
	}
}

// compiledPattern returns the compiled Value of a Matches, or nil if it is invalid.
func (e *Expr) compiledPattern() *pattern.Pattern {
	if e.compiled != nil {
		return e.compiled()
	}
	return compilePattern(e.Value)
}

// verdictOf returns Yes or No.
func verdictOf(holds bool) Verdict {
	if holds {
		return Yes
	}
	return No
}

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
