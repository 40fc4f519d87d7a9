package bypasstest

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// verdict is the result of a condition. maybe means that it waits for a variable.
type verdict int

const (
	no verdict = iota
	maybe
	yes
)

// lookup finds a variable. ok is false for one that was never set.
type lookup func(name string) (value any, ok bool)

// evalVerdict evaluates the condition with the variables set so far (docs/steps.md,
// "Conditions"). A condition that reads an unset variable is undecided, unless the other
// operands decide it. A nil condition is true.
func (t *test) evalVerdict(vars lookup) verdict {
	if t == nil || t.op == "always" {
		return yes
	}
	switch t.op {
	case "not":
		return yes - t.of[0].evalVerdict(vars)
	case "and":
		return slices.Min(t.operandVerdicts(vars))
	case "or":
		return slices.Max(t.operandVerdicts(vars))
	}
	value, ok := lookUpPath(vars, t.variable)
	if !ok {
		return maybe
	}
	if t.compareValue(value) {
		return yes
	}
	return no
}

// lookUpPath finds the variable with this name, or else the value at a dotted path. ok is
// false if the variable at its root was never set.
func lookUpPath(vars lookup, path string) (value any, ok bool) {
	if value, ok = vars(path); ok {
		return value, true
	}
	parts := strings.Split(path, ".")
	if value, ok = vars(parts[0]); !ok || len(parts) == 1 {
		return nil, false
	}
	for _, name := range parts[1:] {
		switch v := value.(type) {
		case map[string]any:
			value = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			switch {
			case name == "length":
				value = float64(len(v))
			case err == nil && i >= 0 && i < len(v):
				value = v[i]
			default:
				return nil, true
			}
		default:
			return nil, true
		}
	}
	return value, true
}

func (t *test) operandVerdicts(vars lookup) []verdict {
	var list []verdict
	for _, part := range t.of {
		list = append(list, part.evalVerdict(vars))
	}
	return list
}

// evalBool treats an unset variable as null, like conditions of criteria and of a stateless
// walk.
func (t *test) evalBool(vars lookup) bool {
	return t.evalVerdict(func(name string) (any, bool) {
		value, _ := vars(name)
		return value, true
	}) == yes
}

// missingVars returns the variables that the condition waits for.
func (t *test) missingVars(vars lookup) []string {
	if t.evalVerdict(vars) != maybe {
		return nil
	}
	if t.variable != "" {
		return []string{t.variable}
	}
	var names []string
	for _, part := range t.of {
		for _, name := range part.missingVars(vars) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

func (t *test) compareValue(value any) bool {
	switch t.op {
	case "truthy":
		return value != nil && value != false && value != "" && value != float64(0)
	case "equals":
		return lenientEqual(value, t.value)
	case "not_equals":
		return !lenientEqual(value, t.value)
	case "contains":
		return strings.Contains(normalizeText(value), normalizeText(t.value))
	case "startsWith":
		return strings.HasPrefix(normalizeText(value), normalizeText(t.value))
	case "endsWith":
		return strings.HasSuffix(normalizeText(value), normalizeText(t.value))
	case "matches":
		return regexp.MustCompile("(?i)" + t.value.(string)).MatchString(strings.TrimSpace(toText(value)))
	}
	a, ok := toNumber(value)
	b, _ := toNumber(t.value)
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

// lenientEqual compares values as conditions of step workflows do (docs/steps.md,
// "Conditions").
func lenientEqual(a, b any) bool {
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
		return normalizeText(text) == normalizeText(b)
	case float64:
		n, err := strconv.ParseFloat(orDefault(strings.TrimSpace(text), "0"), 64)
		return err == nil && n == b
	case bool:
		return b && slices.Contains([]string{"true", "1", "yes"}, normalizeText(text)) ||
			!b && slices.Contains([]string{"false", "0", "no"}, normalizeText(text))
	}
	return false
}

// toNumber returns a number, or the number that a string contains.
func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		n, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
		return n, err == nil && !math.IsNaN(n)
	}
	return 0, false
}

// toText returns a scalar as a string, and "" for a missing one.
func toText(v any) string {
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

func normalizeText(v any) string { return strings.ToLower(strings.TrimSpace(toText(v))) }

// isBlank reports whether a text consists of characters that JavaScript's trim removes.
func isBlank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool {
		return r == '\uFEFF' || unicode.IsSpace(r) && r != '\u0085'
	}) == ""
}
