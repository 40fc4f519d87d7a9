package expr

import (
	"maps"
	"slices"
)

// Holds evaluates the condition in two-valued logic. In a Lenient condition a variable that
// was never set counts as null: `not_equals "x"` holds for it, and so does `equals null`.
// In a Strict condition such a variable equals nothing, not even null.
func (e *Expr) Holds(vars Lookup) bool {
	return e.evaluate(func(leaf *Expr) Verdict {
		value, found, _ := leaf.readVariable(vars)
		return verdictOf(leaf.testValue(value, found))
	}) == Yes
}

// Decide evaluates the condition in three-valued (Kleene) logic: a comparison that reads a
// variable never set is Unknown, unless the rest of the condition determines the result. An
// explicit null counts as set. Exists and NotExists are always decided. A path is set if
// its first variable is set.
func (e *Expr) Decide(vars Lookup) Verdict {
	return e.evaluate(func(leaf *Expr) Verdict {
		value, found, set := leaf.readVariable(vars)
		if !set && leaf.Op != Exists && leaf.Op != NotExists {
			return Unknown
		}
		return verdictOf(leaf.testValue(value, found))
	})
}

// HoldsWith evaluates a condition whose comparisons all read the same value; found is
// false if there is no value.
func (e *Expr) HoldsWith(value any, found bool) bool {
	value = toJSONValue(value)
	return e.evaluate(func(leaf *Expr) Verdict { return verdictOf(leaf.testValue(value, found)) }) == Yes
}

// HoldsNoting is like Holds for a Strict condition. It calls note for each comparison of
// different types that it evaluates; see Mismatch.
func (e *Expr) HoldsNoting(vars Lookup, note func(mismatch string)) bool {
	return e.evaluate(func(leaf *Expr) Verdict {
		value, found, _ := leaf.readVariable(vars)
		if mismatch := leaf.Mismatch(value, found); mismatch != "" {
			note(mismatch)
		}
		return verdictOf(leaf.testValue(value, found))
	}) == Yes
}

// Constant returns the value of a condition that does not depend on variables, such as an
// empty one; ok is false for all others.
func (e *Expr) Constant() (value, ok bool) {
	v := e.evaluate(func(*Expr) Verdict { return Unknown })
	return v == Yes, v != Unknown
}

// evaluate folds the tree over the verdicts of its comparisons. An unknown operator never
// holds.
func (e *Expr) evaluate(leaf func(*Expr) Verdict) Verdict {
	if e == nil {
		return Yes
	}
	switch e.Op {
	case Always:
		return Yes
	case And:
		return e.foldOperands(leaf, Yes)
	case Or:
		return e.foldOperands(leaf, No)
	case Not:
		return e.negatedOperand().evaluate(leaf).Negate()
	default:
		if !e.isComparison() {
			return No
		}
		return leaf(e)
	}
}

// foldOperands evaluates "and" (neutral is Yes) and "or" (neutral is No). The first operand
// with the opposite of neutral determines the result; otherwise an Unknown operand makes it
// Unknown.
func (e *Expr) foldOperands(leaf func(*Expr) Verdict, neutral Verdict) Verdict {
	result := neutral
	for _, operand := range e.Of {
		switch v := operand.evaluate(leaf); v {
		case neutral:
		case Unknown:
			result = Unknown
		default:
			return v
		}
	}
	return result
}

// negatedOperand returns the operand of a Not.
func (e *Expr) negatedOperand() *Expr {
	if len(e.Of) == 0 {
		return nil
	}
	return e.Of[0]
}

// isComparison reports whether e reads a variable.
func (e *Expr) isComparison() bool {
	switch e.Op {
	case Equals, NotEquals, Gt, Gte, Lt, Lte:
		return true
	case Truthy, Contains, StartsWith, EndsWith, Matches:
		return e.Mode == Lenient
	case Exists, NotExists:
		return e.Mode == Strict
	default:
		return false
	}
}

// readVariable returns the value that a comparison reads, and whether its variable was ever
// set.
func (e *Expr) readVariable(vars Lookup) (value any, found, set bool) {
	return vars.Path(e.Var)
}

// testValue compares a value converted by toJSONValue; value is nil if it was not found.
func (e *Expr) testValue(value any, found bool) bool {
	if e.Mode == Strict {
		return testStrict(e, value, found)
	}
	return testLenient(e, value)
}

// Variables returns the sorted, unique names of the variables that the condition reads. For
// a Strict condition it returns the paths instead of the names.
func (e *Expr) Variables() []string {
	names := map[string]bool{}
	e.visitComparisons(func(leaf *Expr) { names[leaf.Var] = true })
	return slices.Sorted(maps.Keys(names))
}

// Comparisons returns every comparison in order of appearance.
func (e *Expr) Comparisons() (all []*Expr) {
	e.visitComparisons(func(leaf *Expr) { all = append(all, leaf) })
	return all
}

// visitComparisons visits every comparison in order of appearance.
func (e *Expr) visitComparisons(visit func(leaf *Expr)) {
	if e == nil {
		return
	}
	if e.isComparison() {
		visit(e)
		return
	}
	for _, operand := range e.Of {
		operand.visitComparisons(visit)
	}
}

// Equal reports whether two conditions are structurally equal, so that tests and go-cmp can
// compare trees.
func (e *Expr) Equal(other *Expr) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Op == other.Op && e.Mode == other.Mode && e.Var == other.Var &&
		slices.EqualFunc(e.Of, other.Of, (*Expr).Equal) &&
		formatLiteral(e.Value) == formatLiteral(other.Value)
}
