package bypasstest

import (
	"encoding/json"
	"regexp"
	"slices"
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

// unsure is the verdict of a check that did not run to its end: neither the rule nor its
// negation passes.
const unsure verdict = -1

// The outcomes of checks. A check without an outcome fails.
const (
	checkPasses       = "passes"
	checkFails        = "fails"
	checkUndefined    = "undefined"
	checkInconclusive = "inconclusive"
)

// acceptsOutput reports whether an output meets the criteria (docs/steps.md, "Criteria").
// checks are the outcomes of checks by their names. A step without criteria accepts any
// output.
func (r *rule) acceptsOutput(output string, vars lookup, checks map[string]string) bool {
	if r == nil {
		return true
	}
	v := r.judgeOutput(output, vars, checks)
	return v == yes || v == maybe
}

// judgeOutput returns yes, no or unsure; or maybe for a rule that is ignored because its
// condition is false or the project does not define its check, and for a composition of only
// such rules.
func (r *rule) judgeOutput(output string, vars lookup, checks map[string]string) verdict {
	if !r.when.evalBool(vars) {
		return maybe
	}
	var parts []verdict
	for _, part := range r.of {
		parts = append(parts, part.judgeOutput(output, vars, checks))
	}
	switch r.kind {
	case "list", "and":
		return firstOf(parts, no, unsure, yes)
	case "or":
		return firstOf(parts, yes, unsure, no)
	case "not":
		return map[verdict]verdict{yes: no, no: yes, maybe: maybe, unsure: unsure}[parts[0]]
	case "check", "command":
		return map[string]verdict{checkPasses: yes, checkUndefined: maybe, checkInconclusive: unsure}[checks[r.text]]
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

// firstOf returns the first verdict of order that is among parts, or maybe.
func firstOf(parts []verdict, order ...verdict) verdict {
	for _, v := range order {
		if slices.Contains(parts, v) {
			return v
		}
	}
	return maybe
}

// needsSize reports whether a check reads the variable size and applies in one of the scopes.
// Only a rule in a list reads it.
func (r *rule) needsSize(scopes []lookup) bool {
	return r != nil && slices.ContainsFunc(r.of, func(part *rule) bool {
		return part.template && slices.ContainsFunc(scopes, func(vars lookup) bool { return part.when.evalBool(vars) })
	})
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
