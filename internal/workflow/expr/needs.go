package expr

import "slices"

// Need is a variable that a condition waits for or that prevents it from holding.
type Need struct {
	// Variable is the name, or the path in a Strict condition.
	Variable string
	// Allowed are the literals for which a comparison has the needed result if the variable
	// equals one of them. It is empty if there is no such literal, as for a comparison with
	// <.
	Allowed []any
	// Tests are the comparisons in words, such as `attempts < 3` or `not (status is
	// "done")`. It is never empty.
	Tests []string
	// Current is the current value; Set is false if the variable was never set.
	Current any
	Set     bool
}

// Needs returns the variables that must be set to decide e if Decide returns Unknown, the
// variables that must be set or changed so that e holds if Decide returns No, and nothing
// if it returns Yes. Parts of e that are already decided have no needs. The needs are in
// order of appearance, with one need per variable. For an "or", one of its needs may be
// enough.
func (e *Expr) Needs(vars Lookup) []Need {
	c := needCollector{vars: vars, at: map[string]int{}, leaves: map[*Expr]Verdict{}}
	switch c.decideExpr(e) {
	case Unknown:
		c.undecided = true
		c.collectNeeds(e, true)
	case No:
		c.collectNeeds(e, true)
	case Yes:
	}
	return c.list
}

// needCollector collects the needs of one condition.
type needCollector struct {
	vars Lookup
	// undecided limits the needs to unset variables.
	undecided bool
	list      []Need
	at        map[string]int
	// leaves caches the verdicts of comparisons, so that each pattern is matched only once.
	leaves map[*Expr]Verdict
}

// decideExpr is like Decide, with cached comparisons.
func (c *needCollector) decideExpr(e *Expr) Verdict {
	return e.evaluate(func(leaf *Expr) Verdict {
		v, ok := c.leaves[leaf]
		if !ok {
			v = leaf.Decide(c.vars)
			c.leaves[leaf] = v
		}
		return v
	})
}

// collectNeeds adds the variables that must change for e to have the value want.
func (c *needCollector) collectNeeds(e *Expr, want bool) {
	switch v := c.decideExpr(e); {
	case v == verdictOf(want), c.undecided && v != Unknown:
		return
	}
	switch e.Op {
	case And, Or:
		for _, operand := range e.Of {
			c.collectNeeds(operand, want)
		}
	case Not:
		c.collectNeeds(e.negatedOperand(), !want)
	default:
		if e.isComparison() {
			c.addNeed(e, want)
		}
	}
}

// addNeed adds the need of one comparison.
func (c *needCollector) addNeed(e *Expr, want bool) {
	at, known := c.at[e.Var]
	if !known {
		at = len(c.list)
		c.at[e.Var] = at
		value, _, set := e.readVariable(c.vars)
		c.list = append(c.list, Need{Variable: e.Var, Current: value, Set: set})
	}
	need := &c.list[at]
	words := e.String()
	if !want {
		words = (&Expr{Op: Not, Of: []*Expr{e}}).String()
	}
	if !slices.Contains(need.Tests, words) {
		need.Tests = append(need.Tests, words)
	}
	if value, ok := e.decidingLiteral(want); ok && !slices.ContainsFunc(need.Allowed, equalTo(value)) {
		need.Allowed = append(need.Allowed, value)
	}
}

// decidingLiteral returns the literal for which a comparison has the value want.
func (e *Expr) decidingLiteral(want bool) (any, bool) {
	switch {
	case e.Op == Equals && want, e.Op == NotEquals && !want:
		value := toJSONValue(e.Value)
		return value, equalLenient(value, value)
	case e.Op == Exists && !want, e.Op == NotExists && want:
		return nil, true
	case e.Op == Truthy:
		return want, true
	default:
		return nil, false
	}
}

// equalTo returns a test for structural equality with a literal.
func equalTo(value any) func(any) bool {
	written := formatLiteral(value)
	return func(other any) bool { return formatLiteral(other) == written }
}

// Literals appends to known the literals that the condition compares a variable with, in
// order of appearance. For a variable that is compared with a boolean or tested without an
// operator, it appends true and false. It omits values that known contains.
func (e *Expr) Literals(name string, known []any) []any {
	add := func(v any) {
		there := equalTo(v)
		if e.Mode == Lenient {
			there = func(other any) bool { return equalLenient(toJSONValue(other), v) }
		}
		if !slices.ContainsFunc(known, there) {
			known = append(known, v)
		}
	}
	e.visitComparisons(func(leaf *Expr) {
		if leaf.Var != name || leaf.Op != Truthy && leaf.Op != Equals && leaf.Op != NotEquals {
			return
		}
		value := toJSONValue(leaf.Value)
		if leaf.Op == Truthy {
			value = true
		}
		if b, ok := value.(bool); ok {
			add(b)
			add(!b)
		} else if equalLenient(value, value) {
			add(value)
		}
	})
	return known
}
