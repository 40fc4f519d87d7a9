package enginetest

import (
	"slices"
	"strconv"
	"strings"
)

// verdict is the result of a condition; maybe means that it waits for a variable.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// lookup returns a variable; ok is false if it was never set.
type lookup func(name string) (value any, ok bool)

// lookupPath follows a dotted path. set reports whether the variable at its root was ever
// set, found whether there is a value at its end.
func (vars lookup) lookupPath(path string) (value any, found, set bool) {
	if value, set = vars(path); set {
		return value, true, true
	}
	parts := strings.Split(path, ".")
	if value, set = vars(parts[0]); !set {
		return nil, false, false
	}
	for _, name := range parts[1:] {
		found = false
		switch v := value.(type) {
		case map[string]any:
			value, found = v[name]
		case []any:
			n, err := strconv.Atoi(name)
			switch {
			case name == "length":
				value, found = float64(len(v)), true
			case err == nil && n >= 0 && n < len(v) && strconv.Itoa(n) == name:
				value, found = v[n], true
			}
		}
		if !found {
			return nil, false, true
		}
	}
	return value, true, true
}

// evaluate returns the verdict of the condition. A condition that reads a variable that was
// never set is undecided, unless the other operands decide it. A nil condition always
// holds.
func (t *conditionSpec) evaluate(vars lookup) verdict {
	if t == nil {
		return yes
	}
	switch t.op {
	case "not":
		return yes - t.of[0].evaluate(vars)
	case "and":
		return slices.Min(t.evaluateAll(vars))
	case "or":
		return slices.Max(t.evaluateAll(vars))
	}
	value, found, set := vars.lookupPath(t.variable)
	if !set && t.op != "exists" && t.op != "notExists" {
		return maybe
	}
	if t.compareValue(value, found) {
		return yes
	}
	return no
}

func (t *conditionSpec) evaluateAll(vars lookup) []verdict {
	var list []verdict
	for _, part := range t.of {
		list = append(list, part.evaluate(vars))
	}
	return list
}

// missingVars returns the variables that the condition waits for.
func (t *conditionSpec) missingVars(vars lookup) []string {
	if t.evaluate(vars) != maybe {
		return nil
	}
	if t.variable != "" {
		return []string{t.variable}
	}
	var names []string
	for _, part := range t.of {
		names = appendMissing(names, part.missingVars(vars))
	}
	return names
}

// rootName returns the variable at the root of a path.
func rootName(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return name
}

// variablesRead returns the variables that the condition reads, sorted.
func (t *conditionSpec) variablesRead() []string {
	if t == nil {
		return nil
	}
	if t.variable != "" {
		return []string{t.variable}
	}
	var names []string
	for _, part := range t.of {
		names = appendMissing(names, part.variablesRead())
	}
	slices.Sort(names)
	return names
}

// appendMissing appends the names that are not in the list yet.
func appendMissing(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// compareValue compares without conversion: a missing value is not null, and only numbers
// have an order.
func (t *conditionSpec) compareValue(value any, found bool) bool {
	switch t.op {
	case "exists":
		return found && value != nil
	case "notExists":
		return !found || value == nil
	case "==":
		return found && isScalar(value) && value == t.value
	case "!=":
		return !found || !isScalar(value) || value != t.value
	}
	a, ok := value.(float64)
	b, other := t.value.(float64)
	switch {
	case !found || !ok || !other:
		return false
	case t.op == ">":
		return a > b
	case t.op == ">=":
		return a >= b
	case t.op == "<":
		return a < b
	default:
		return a <= b
	}
}

// isScalar reports whether a value is neither a list nor an object. Lists and objects equal
// nothing.
func isScalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}
