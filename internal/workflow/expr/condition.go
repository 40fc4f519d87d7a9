// Package expr contains the expression tree of both condition grammars, and their
// evaluator. The dialects differ in how they compare: step workflows leniently, like
// WorkRail ("equals" ignores case and converts values), phase workflows strictly.
package expr

import "github.com/guideway-dev/guideway/internal/workflow/expr/pattern"

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
