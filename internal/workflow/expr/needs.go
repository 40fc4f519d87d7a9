package expr

import "slices"

// Need is a variable that a condition waits for, or that stands in its way.
type Need struct {
	// Variable is its name, or the path of a Strict condition.
	Variable string
	// Allowed are the literals that would make its comparisons come out as
	// needed. Empty where no literal says it, as for a bound; Tests always
	// does.
	Allowed []any
	// Tests are the comparisons in words, such as `attempts < 3` or
	// `not (status is "done")`.
	Tests []string
	// Current is its value now; Set is false if it was never set.
	Current any
	Set     bool
}

// Needs are the variables that must still be set for e to be decided, where
// Decide is Unknown; those that must be set or changed for it to hold, where it
// is No; none where it is Yes. Parts that are settled already need nothing. They
// come in order of appearance, merged per variable: under an or, any one of them
// may be enough.
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
	// undecided asks for what is unset only.
	undecided bool
	list      []Need
	at        map[string]int
	// leaves are the verdicts of comparisons: a pattern is matched once,
	// however deep it stands.
	leaves map[*Expr]Verdict
}

// decideExpr is Decide with the comparisons remembered.
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

// collectNeeds adds what must change for e to come out as wanted.
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

// addNeed merges the need of one comparison.
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

// decidingLiteral is the literal by which a comparison comes out as wanted.
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

// equalTo reports whether another literal is written alike.
func equalTo(value any) func(any) bool {
	written := formatLiteral(value)
	return func(other any) bool { return formatLiteral(other) == written }
}

// Literals adds to some values those that the condition compares a variable with,
// in order of appearance: each decides its comparison, one way or the other. For one
// that is compared with true or false, or stands alone, they are both. What equals
// one that is there already is left out.
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
	e.walkComparisons(func(leaf *Expr) {
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

// walkComparisons visits the comparisons of a condition.
func (e *Expr) walkComparisons(visit func(*Expr)) {
	switch {
	case e == nil:
	case e.isComparison():
		visit(e)
	default:
		for _, operand := range e.Of {
			operand.walkComparisons(visit)
		}
	}
}
