package bypasstest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
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

// decide says whether the condition holds, as far as the variables that are set
// tell (docs/steps.md, "Conditions"): one that reads a variable never set is
// undecided, unless the rest decides without it. A nil condition always holds.
func (t *test) decide(vars lookup) verdict {
	if t == nil || t.op == "always" {
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
	value, ok := vars(t.variable)
	if !ok {
		return maybe
	}
	if t.compare(value) {
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

// holds takes a variable that was never set for null, as conditions of criteria
// and of a stateless walk do.
func (t *test) holds(vars lookup) bool {
	return t.decide(func(name string) (any, bool) {
		value, _ := vars(name)
		return value, true
	}) == yes
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
		for _, name := range part.needs(vars) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (t *test) compare(value any) bool {
	switch t.op {
	case "truthy":
		return value != nil && value != false && value != "" && value != float64(0)
	case "equals":
		return same(value, t.value)
	case "not_equals":
		return !same(value, t.value)
	case "contains":
		return strings.Contains(plain(value), plain(t.value))
	case "startsWith":
		return strings.HasPrefix(plain(value), plain(t.value))
	case "endsWith":
		return strings.HasSuffix(plain(value), plain(t.value))
	case "matches":
		return regexp.MustCompile("(?i)" + t.value.(string)).MatchString(strings.TrimSpace(spelled(value)))
	}
	a, ok := measured(value)
	b, _ := measured(t.value)
	switch {
	case !ok:
		return false
	case t.op == "gt":
		return a > b
	case t.op == "gte":
		return a >= b
	case t.op == "lt":
		return a < b
	default:
		return a <= b
	}
}

// same is the lenient equality of facts/steps.md 1.3.
func same(a, b any) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if s, ok := b.(string); ok {
		if _, both := a.(string); !both {
			a, b = s, a
		}
	}
	text, ok := a.(string)
	if !ok {
		switch a.(type) {
		case bool, float64:
			return a == b
		}
		return false // lists and objects equal nothing
	}
	switch b := b.(type) {
	case string:
		return plain(text) == plain(b)
	case float64:
		n, err := strconv.ParseFloat(or(strings.TrimSpace(text), "0"), 64)
		return err == nil && n == b
	case bool:
		return b && slices.Contains([]string{"true", "1", "yes"}, plain(text)) ||
			!b && slices.Contains([]string{"false", "0", "no"}, plain(text))
	}
	return false
}

// measured is the number that a value is or spells.
func measured(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n, err == nil && !math.IsNaN(n)
	}
	return 0, false
}

// spelled is a scalar as a text; what is missing is "".
func spelled(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	}
	return ""
}

func plain(v any) string { return strings.ToLower(strings.TrimSpace(spelled(v))) }

// blank says whether a text has nothing to read, as JavaScript's trim sees it.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		return r == '\uFEFF' || unicode.IsSpace(r) && r != '\u0085'
	}) == ""
}
