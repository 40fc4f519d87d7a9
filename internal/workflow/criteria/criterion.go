// Package criteria checks a step's output: contains, regex, length and schema rules, their
// compositions and their conditions.
//
// Check returns the issues of an output for the agent. Diagnostics returns the errors and
// warnings in the criteria for their author; Errors returns only the errors that prevent a
// definition from loading.
package criteria

import (
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// Criterion is a rule, or a composition of criteria. A nil Criterion accepts every output
// that is not blank. A Criterion from Parse is safe for concurrent use and compiles its
// pattern or schema once, when it is first needed.
type Criterion struct {
	// Type determines the meaning of the other fields.
	Type Type
	// Message is the author's message for a failed rule.
	Message string
	// If Condition does not hold, the rule is skipped; nil always holds.
	Condition *expr.Expr

	Value          string         // for contains
	Pattern, Flags string         // for regex
	Min, Max       *float64       // for length, in UTF-16 units
	Schema         map[string]any // for schema

	// CheckRule is the specification of a rule that the server executes; nil for other rules.
	CheckRule *CheckRule

	// Of are the parts of All, And, Or (any number) or Not (one).
	Of []*Criterion

	// unusable is the reason why the rule cannot be checked, or "".
	unusable string
	// diagnostics are the errors that Parse found, with paths relative to this criterion.
	diagnostics []Diagnostic
	// compiled compiles Pattern and schema compiles Schema, each on its first call. Both
	// are nil if Parse did not create the Criterion.
	compiled func() (*pattern.Pattern, error)
	schema   func() (*schema, error)
}

// Type is the type of a criterion.
type Type string

// The types of criteria.
const (
	Contains Type = "contains"
	Regex    Type = "regex"
	Length   Type = "length"
	Schema   Type = "schema"

	// All is a list of rules: every rule is checked and all issues are reported.
	All Type = "all"
	// And, Or and Not are compositions, written as objects.
	And Type = "and"
	Or  Type = "or"
	Not Type = "not"
)

// isComposition reports whether the criterion is a composition object.
func (c *Criterion) isComposition() bool {
	return c.Type == And || c.Type == Or || c.Type == Not
}

// compiledPattern returns the compiled pattern.
func (c *Criterion) compiledPattern() (*pattern.Pattern, error) {
	if c.compiled != nil {
		return c.compiled()
	}
	return pattern.Compile(c.Pattern, c.Flags)
}

// compiledSchema returns the compiled schema.
func (c *Criterion) compiledSchema() (*schema, error) {
	if c.schema != nil {
		return c.schema()
	}
	return compileSchema(c.Schema)
}
