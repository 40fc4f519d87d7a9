// Package condition holds the expression tree of both condition grammars and
// the one evaluator. The dialects differ in how they compare: step workflows
// leniently (facts: "equals" ignores case and converts), phase workflows
// strictly.
package condition

// Expr is a condition. A nil Expr always holds.
type Expr struct {
	// Op says what the other fields mean.
	Op Op
	// Var is the variable of a comparison.
	Var string
	// Value is what a comparison compares with, as JSON decodes it.
	Value any
	// Of are the operands of And, Or (any number) and Not (one).
	Of []*Expr
}

// Op is an operator.
type Op string

// The operators.
const (
	// Always and Never are constants: an empty condition, and one that cannot
	// be understood.
	Always Op = "always"
	Never  Op = "never"
	// Truthy is a variable alone.
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

	And Op = "and"
	Or  Op = "or"
	Not Op = "not"
)
