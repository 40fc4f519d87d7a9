package phasetest

import (
	"slices"
	"strconv"
	"strings"
)

// verdict is what a condition says; maybe is one that waits for a variable.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// lookup finds a variable; ok is false for one that was never set.
type lookup func(name string) (value any, ok bool)

// path follows a dotted path. set says whether the variable that it begins with
// was ever set, found whether there is a value at its end.
func (vars lookup) path(path string) (value any, found, set bool) {
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

// decide says whether the condition holds, as far as the variables that are set
// tell (DESIGN 4): one that reads a variable never set is undecided, unless the
// rest decides without it. A nil condition always holds.
func (t *test) decide(vars lookup) verdict {
	if t == nil {
		return yes
	}
	switch t.op {
	case "not":
		return yes - t.of[0].decide(vars)
	case "and":
		return slices.Min(t.verdicts(vars))
	case "or":
		return slices.Max(t.verdicts(vars))
	}
	value, found, set := vars.path(t.variable)
	if !set && t.op != "exists" && t.op != "notExists" {
		return maybe
	}
	if t.compare(value, found) {
		return yes
	}
	return no
}

func (t *test) verdicts(vars lookup) []verdict {
	var list []verdict
	for _, part := range t.of {
		list = append(list, part.decide(vars))
	}
	return list
}

// needs are the variables that the condition waits for.
func (t *test) needs(vars lookup) []string {
	if t.decide(vars) != maybe {
		return nil
	}
	if t.variable != "" {
		return []string{t.variable}
	}
	var names []string
	for _, part := range t.of {
		names = join(names, part.needs(vars))
	}
	return names
}

// root is the variable that a path begins with.
func root(path string) string {
	name, _, _ := strings.Cut(path, ".")
	return name
}

// reads are the variables that the condition reads, sorted.
func (t *test) reads() []string {
	if t == nil {
		return nil
	}
	if t.variable != "" {
		return []string{t.variable}
	}
	var names []string
	for _, part := range t.of {
		names = join(names, part.reads())
	}
	slices.Sort(names)
	return names
}

// join adds what is not there yet.
func join(names, more []string) []string {
	for _, name := range more {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// compare is the comparison of facts/phases.md 2: nothing is converted, what is
// missing is not null, only numbers have an order.
func (t *test) compare(value any, found bool) bool {
	switch t.op {
	case "exists":
		return found && value != nil
	case "notExists":
		return !found || value == nil
	case "==":
		return found && scalar(value) && value == t.value
	case "!=":
		return !found || !scalar(value) || value != t.value
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

// scalar says whether a value is no list and no object: those equal nothing.
func scalar(v any) bool {
	switch v.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}
