package bypasstest

import (
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf16"
)

// testSchema is a JSON Schema with the same check in Go.
type testSchema struct {
	schema map[string]any
	fits   func(v any) bool
}

// testSchemas returns the schemas that random criteria use.
func testSchemas() []testSchema {
	field := func(v any, name string) (any, bool) {
		m, _ := v.(map[string]any)
		found, ok := m[name]
		return found, ok
	}
	object := func(v any) bool { _, ok := v.(map[string]any); return ok }
	return []testSchema{
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

// acceptsOutput reports whether an output meets the criteria (docs/steps.md, "Criteria"). A
// step without criteria accepts any output.
func (r *rule) acceptsOutput(output string, vars lookup) bool {
	return r == nil || r.judgeOutput(output, vars) != no
}

// judgeOutput returns yes or no, or maybe for a rule that is ignored because its condition
// is false, and for a composition of only such rules.
func (r *rule) judgeOutput(output string, vars lookup) verdict {
	if !r.when.evalBool(vars) {
		return maybe
	}
	counted := false
	every, some := true, false
	for _, part := range r.of {
		v := part.judgeOutput(output, vars)
		counted = counted || v != maybe
		every = every && v != no
		some = some || v == yes
	}
	switch r.kind {
	case "list", "and":
		return verdictOf(counted, every)
	case "or":
		return verdictOf(counted, some)
	case "not":
		return verdictOf(counted, !some)
	case "contains":
		return verdictOf(true, strings.Contains(output, r.text))
	case "regex":
		return verdictOf(true, regexp.MustCompile("(?"+orDefault(r.flags, "s")+")"+r.text).MatchString(output))
	case "length":
		n := len(utf16.Encode([]rune(output)))
		return verdictOf(true, n >= r.min && n <= r.max)
	default:
		var v any
		return verdictOf(true, json.Unmarshal([]byte(output), &v) == nil && r.shape.fits(v))
	}
}

func verdictOf(counted, holds bool) verdict {
	switch {
	case !counted:
		return maybe
	case holds:
		return yes
	default:
		return no
	}
}
