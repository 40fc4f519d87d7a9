package expr

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// testLenient compares a value by the rules of step workflows. A missing value is nil.
func testLenient(e *Expr, value any) bool {
	switch e.Op {
	case Truthy:
		return isTruthy(value)
	case Equals:
		return equalLenient(value, toJSONValue(e.Value))
	case NotEquals:
		return !equalLenient(value, toJSONValue(e.Value))
	case Gt, Gte, Lt, Lte:
		return compareNumbers(e.Op, value, toJSONValue(e.Value))
	case Contains, StartsWith, EndsWith:
		return testText(e.Op, value, toJSONValue(e.Value))
	case Matches:
		return testPattern(e, value)
	default:
		return false
	}
}

// isTruthy follows JavaScript: null, false, 0 and "" are falsy, everything else is truthy,
// including an empty list and the text "false".
func isTruthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case float64:
		return v != 0 && !math.IsNaN(v)
	case string:
		return v != ""
	default:
		return true
	}
}

// equalLenient is the lenient equality of step workflows: null equals only null or a
// missing value; texts are trimmed and their case is ignored; a number equals a text if
// JavaScript's Number() converts the text to it, which converts a blank text to 0; a
// boolean equals the texts true/1/yes and false/0/no; otherwise only values of the same
// type are equal. A number and a boolean are never equal, and lists and objects equal
// nothing.
func equalLenient(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		switch b := b.(type) {
		case string:
			return normalizeText(a) == normalizeText(b)
		case float64:
			return parseNumber(a) == b
		case bool:
			return meansBool(a, b)
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return a == b
		case string:
			return a == parseNumber(b)
		}
	case bool:
		switch b := b.(type) {
		case bool:
			return a == b
		case string:
			return meansBool(b, a)
		}
	}
	return false
}

// meansBool reports whether a text spells the boolean.
func meansBool(text string, b bool) bool {
	switch normalizeText(text) {
	case "true", "1", "yes":
		return b
	case "false", "0", "no":
		return !b
	default:
		return false
	}
}

// compareNumbers compares numbers. A numeric text counts as a number, as in equals and as
// WorkRail documents it. A blank text does not, because an empty answer is not a number.
// Any other operand compares as false.
func compareNumbers(op Op, a, b any) bool {
	x, ok := toNumber(a)
	if !ok {
		return false
	}
	y, ok := toNumber(b)
	if !ok {
		return false
	}
	return inOrder(op, x, y)
}

// inOrder reports whether two numbers are in the order of op.
func inOrder(op Op, x, y float64) bool {
	switch op {
	case Gt:
		return x > y
	case Gte:
		return x >= y
	case Lt:
		return x < y
	default:
		return x <= y
	}
}

// toNumber returns the value as a number, if it is a number or a text that spells one.
func toNumber(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case string:
		if trimSpace(v) == "" {
			return 0, false
		}
		n := parseNumber(v)
		return n, !math.IsNaN(n)
	default:
		return 0, false
	}
}

// testText evaluates contains, startsWith and endsWith: both sides are trimmed and
// lower-cased, and a missing value is "". On a list, contains searches an element that is
// leniently equal; WorkRail does not define this for lists.
func testText(op Op, value, literal any) bool {
	if list, ok := value.([]any); ok {
		if op != Contains {
			return false
		}
		return slices.ContainsFunc(list, func(element any) bool { return equalLenient(toJSONValue(element), literal) })
	}
	part, ok := toText(literal)
	if !ok || literal == nil {
		return false
	}
	whole, ok := toText(value)
	if !ok {
		return false
	}
	part, whole = normalizeText(part), normalizeText(whole)
	switch op {
	case Contains:
		return strings.Contains(whole, part)
	case StartsWith:
		return strings.HasPrefix(whole, part)
	default:
		return strings.HasSuffix(whole, part)
	}
}

// testPattern evaluates matches on the trimmed text, ignoring case. A pattern that does not
// compile or takes too long does not match.
func testPattern(e *Expr, value any) bool {
	whole, ok := toText(value)
	if !ok {
		return false
	}
	p := e.compiledPattern()
	if p == nil {
		return false
	}
	matched, err := p.Match(trimSpace(whole))
	return err == nil && matched
}

// toText returns a scalar as JavaScript writes it. Lists and objects have no text form.
func toText(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return formatNumber(v), true
	default:
		return "", false
	}
}

// formatNumber writes a number as JavaScript does: no exponent from 1e-6 to 1e21.
func formatNumber(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return string(jsontext.AppendNumber(nil, f))
}

// parseNumber converts a text like JavaScript's Number(): a blank text is 0, and an invalid
// number is NaN.
func parseNumber(s string) float64 {
	s = trimSpace(s)
	if s == "" {
		return 0
	}
	if len(s) > 2 && s[0] == '0' {
		if base := radixOf(s[1]); base != 0 {
			return parseInteger(s[2:], base)
		}
	}
	switch s {
	case "Infinity", "+Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	}
	// ParseFloat also accepts inf, nan, hexadecimal digits and underscores.
	if strings.Trim(s, "+-.0123456789eE") != "" {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// radixOf returns the base for a prefix letter, or 0.
func radixOf(letter byte) float64 {
	switch letter {
	case 'x', 'X':
		return 16
	case 'o', 'O':
		return 8
	case 'b', 'B':
		return 2
	default:
		return 0
	}
}

// parseInteger parses digits of a base, or returns NaN.
func parseInteger(digits string, base float64) float64 {
	var n float64
	for _, r := range digits {
		d := math.NaN()
		switch {
		case r >= '0' && r <= '9':
			d = float64(r - '0')
		case r >= 'a' && r <= 'f':
			d = float64(r-'a') + 10
		case r >= 'A' && r <= 'F':
			d = float64(r-'A') + 10
		}
		if math.IsNaN(d) || d >= base {
			return math.NaN()
		}
		n = n*base + d
	}
	return n
}

// normalizeText returns a text in the form that equality compares.
func normalizeText(s string) string { return strings.ToLower(trimSpace(s)) }

// trimSpace trims a text like JavaScript's trim.
func trimSpace(s string) string { return strings.TrimFunc(s, IsSpace) }

// IsSpace reports whether JavaScript's trim removes r. In contrast to unicode.IsSpace,
// U+FEFF is white space and U+0085 is not.
func IsSpace(r rune) bool {
	return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r)
}

// toJSONValue converts a Go value to the types of decoded JSON: every number is a float64.
func toJSONValue(v any) any {
	switch v := v.(type) {
	case nil, string, bool, float64, []any, map[string]any:
		return v
	case int:
		return float64(v)
	case json.Number:
		f, err := v.Float64()
		if err != nil && !math.IsInf(f, 0) {
			return string(v)
		}
		return f
	}
	return fromReflect(reflect.ValueOf(v))
}

// fromReflect converts values of other Go types.
func fromReflect(v reflect.Value) any {
	switch v.Kind() {
	case reflect.Bool:
		return v.Bool()
	case reflect.String:
		return v.String()
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return float64(v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return float64(v.Uint())
	case reflect.Float32, reflect.Float64:
		return v.Float()
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return nil
		}
		return toJSONValue(v.Elem().Interface())
	case reflect.Slice, reflect.Array:
		list := make([]any, v.Len())
		for i := range list {
			list[i] = v.Index(i).Interface()
		}
		return list
	default:
		return map[string]any{}
	}
}
