package condition

import (
	"maps"
	"slices"
)

// Holds evaluates the condition as the seeds do, with what is set. In a Lenient
// condition a variable that was never set counts as null: `not_equals "x"` holds
// for it, and so does `equals null`. In a Strict one it equals nothing.
func (e *Expr) Holds(vars Lookup) bool {
	return e.eval(func(leaf *Expr) Verdict {
		value, found, _ := leaf.read(vars)
		return verdict(leaf.test(value, found))
	}) == Yes
}

// Decide evaluates the condition in three-valued (Kleene) logic: a comparison
// that reads a variable never set is Unknown, unless the rest of the condition
// decides without it. An explicit null counts as set. Exists and NotExists are
// decided in any case; a path is where the variable that it begins with is set.
func (e *Expr) Decide(vars Lookup) Verdict {
	return e.eval(func(leaf *Expr) Verdict {
		value, found, set := leaf.read(vars)
		if !set && leaf.Op != Exists && leaf.Op != NotExists {
			return Unknown
		}
		return verdict(leaf.test(value, found))
	})
}

// HoldsWith evaluates a condition whose comparisons all read the same value; found is
// false if there is no value.
func (e *Expr) HoldsWith(value any, found bool) bool {
	value = plain(value)
	return e.eval(func(leaf *Expr) Verdict { return verdict(leaf.test(value, found)) }) == Yes
}

// Constant returns the value of a condition that needs no variable to decide, such as
// an empty one; ok is false for all others.
func (e *Expr) Constant() (value, ok bool) {
	v := e.eval(func(*Expr) Verdict { return Unknown })
	return v == Yes, v != Unknown
}

// eval folds the tree over the verdicts of its comparisons. An operator that it
// does not know never holds.
func (e *Expr) eval(leaf func(*Expr) Verdict) Verdict {
	if e == nil {
		return Yes
	}
	switch e.Op {
	case Always:
		return Yes
	case And:
		return e.fold(leaf, Yes)
	case Or:
		return e.fold(leaf, No)
	case Not:
		return e.operand().eval(leaf).not()
	default:
		if !e.compares() {
			return No
		}
		return leaf(e)
	}
}

// fold is and (neutral Yes) and or (neutral No): the first operand that is the
// opposite of neutral decides, else one that is Unknown leaves it open.
func (e *Expr) fold(leaf func(*Expr) Verdict, neutral Verdict) Verdict {
	result := neutral
	for _, operand := range e.Of {
		switch v := operand.eval(leaf); v {
		case neutral:
		case Unknown:
			result = Unknown
		default:
			return v
		}
	}
	return result
}

// operand is what a Not negates.
func (e *Expr) operand() *Expr {
	if len(e.Of) == 0 {
		return nil
	}
	return e.Of[0]
}

// compares says whether e reads a variable.
func (e *Expr) compares() bool {
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

// read finds what a comparison looks at, and says whether its variable was ever
// set.
func (e *Expr) read(vars Lookup) (value any, found, set bool) {
	if e.Mode == Strict {
		return vars.Path(e.Var)
	}
	if vars == nil {
		return nil, false, false
	}
	value, set = vars(e.Var)
	return plain(value), set, set
}

// test compares a value, as plain gives it; it is nil where it was not found.
func (e *Expr) test(value any, found bool) bool {
	if e.Mode == Strict {
		return testStrict(e, value, found)
	}
	return testLenient(e, value)
}

// Variables are the names that the condition reads, sorted, each once; those of
// a Strict condition are paths.
func (e *Expr) Variables() []string {
	names := map[string]bool{}
	e.comparisons(func(leaf *Expr) { names[leaf.Var] = true })
	return slices.Sorted(maps.Keys(names))
}

// comparisons visits every comparison in order of appearance.
func (e *Expr) comparisons(visit func(leaf *Expr)) {
	if e == nil {
		return
	}
	if e.compares() {
		visit(e)
		return
	}
	for _, operand := range e.Of {
		operand.comparisons(visit)
	}
}

// Equal says whether two conditions are written alike, so that tests and
// differs can compare trees.
func (e *Expr) Equal(other *Expr) bool {
	if e == nil || other == nil {
		return e == other
	}
	return e.Op == other.Op && e.Mode == other.Mode && e.Var == other.Var &&
		slices.EqualFunc(e.Of, other.Of, (*Expr).Equal) &&
		literal(e.Value) == literal(other.Value)
}
