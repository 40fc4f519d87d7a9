package bypasstest

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf16"
)

// shape is a JSON Schema, and the same in Go.
type shape struct {
	schema map[string]any
	fits   func(v any) bool
}

// shapes are the schemas that random criteria use.
func shapes() []shape {
	field := func(v any, name string) (any, bool) {
		m, _ := v.(map[string]any)
		found, ok := m[name]
		return found, ok
	}
	object := func(v any) bool { _, ok := v.(map[string]any); return ok }
	return []shape{
		{
			map[string]any{"type": "object", "required": []any{"ok"}, "properties": map[string]any{"ok": map[string]any{"type": "boolean"}}},
			func(v any) bool { f, _ := field(v, "ok"); _, ok := f.(bool); return ok },
		},
		{
			map[string]any{"type": "object", "required": []any{"note"}, "properties": map[string]any{"note": map[string]any{"type": "string"}}},
			func(v any) bool { f, _ := field(v, "note"); _, ok := f.(string); return ok },
		},
		{
			map[string]any{"type": "object", "properties": map[string]any{"n": map[string]any{"type": "number", "minimum": 1}}},
			func(v any) bool {
				f, ok := field(v, "n")
				n, number := f.(float64)
				return object(v) && (!ok || number && n >= 1)
			},
		},
		{
			map[string]any{"type": "array", "minItems": 1},
			func(v any) bool { list, _ := v.([]any); return len(list) > 0 },
		},
	}
}

// accepts says whether an output meets the criteria (docs/steps.md, "Criteria").
// A step without criteria takes anything.
func (r *rule) accepts(output string, vars lookup) bool {
	return r == nil || r.judge(output, vars) != no
}

// judge gives yes or no, or maybe for a rule that does not count, because its
// condition does not hold, and for a composition of such rules alone.
func (r *rule) judge(output string, vars lookup) verdict {
	if !r.when.holds(vars) {
		return maybe
	}
	counted := false
	every, some := true, false
	for _, part := range r.of {
		v := part.judge(output, vars)
		counted = counted || v != maybe
		every = every && v != no
		some = some || v == yes
	}
	switch r.kind {
	case "list", "and":
		return counts(counted, every)
	case "or":
		return counts(counted, some)
	case "not":
		return counts(counted, !some)
	case "contains":
		return counts(true, strings.Contains(output, r.text))
	case "regex":
		return counts(true, regexp.MustCompile("(?"+or(r.flags, "s")+")"+r.text).MatchString(output))
	case "length":
		n := len(utf16.Encode([]rune(output)))
		return counts(true, n >= r.min && n <= r.max)
	default:
		var v any
		return counts(true, json.Unmarshal([]byte(output), &v) == nil && r.shape.fits(v))
	}
}

func counts(counted, holds bool) verdict {
	switch {
	case !counted:
		return maybe
	case holds:
		return yes
	default:
		return no
	}
}
