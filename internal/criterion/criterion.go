// Package criterion judges a step's output: contains, regex, length and schema
// rules, their compositions and their conditions.
package criterion

import "github.com/guideway-dev/guideway/internal/condition"

// Criterion is a rule, or a composition of criteria. A nil Criterion accepts
// every output that is not blank.
type Criterion struct {
	// Type says what the other fields mean.
	Type Type
	// Message is what the author wants said when the rule fails.
	Message string
	// Condition turns the rule off where it does not hold; nil is always on.
	Condition *condition.Expr

	Value          string         // contains
	Pattern, Flags string         // regex
	Min, Max       *float64       // length, in UTF-16 units
	Schema         map[string]any // schema

	// Of are the parts of All, And, Or (any number) and Not (one).
	Of []*Criterion
}

// Type is the kind of a criterion.
type Type string

// The types.
const (
	Contains Type = "contains"
	Regex    Type = "regex"
	Length   Type = "length"
	Schema   Type = "schema"

	// All is the array form: every rule is checked and each issue is told.
	All Type = "all"
	// And, Or and Not are the composition objects.
	And Type = "and"
	Or  Type = "or"
	Not Type = "not"
)
