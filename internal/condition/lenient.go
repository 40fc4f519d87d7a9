package condition

import (
	"encoding/json"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"

	"github.com/guideway-dev/guideway/internal/jsontext"
)

// testLenient compares a value by the rules of step workflows (seed 000).
// Missing is nil.
func testLenient(e *Expr, value any) bool {
	switch e.Op {
	case Truthy:
		return truthy(value)
	case Equals:
		return equal(value, plain(e.Value))
	case NotEquals:
		return !equal(value, plain(e.Value))
	case Gt, Gte, Lt, Lte:
		return ordered(e.Op, value, plain(e.Value))
	case Contains, StartsWith, EndsWith:
		return testText(e.Op, value, plain(e.Value))
	case Matches:
		return testPattern(e, value)
	default:
		return false
	}
}

// truthy is JavaScript's: null, false, 0 and "" are not, all else is, an empty
// list and the text "false" included.
func truthy(v any) bool {
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

// equal is the lenient equality of seed 000: null equals only null (and what is
// missing); texts are trimmed and their case ignored; a number equals a text by
// JavaScript's Number(), by which a blank text is 0; a boolean equals the texts
// true/1/yes and false/0/no; otherwise like compares with like. A number and a
// boolean are never equal, and neither are lists or objects to anything.
func equal(a, b any) bool {
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		switch b := b.(type) {
		case string:
			return normal(a) == normal(b)
		case float64:
			return number(a) == b
		case bool:
			return means(a, b)
		}
	case float64:
		switch b := b.(type) {
		case float64:
			return a == b
		case string:
			return a == number(b)
		}
	case bool:
		switch b := b.(type) {
		case bool:
			return a == b
		case string:
			return means(b, a)
		}
	}
	return false
}

// means says whether a text stands for a boolean.
func means(text string, b bool) bool {
	switch normal(text) {
	case "true", "1", "yes":
		return b
	case "false", "0", "no":
		return !b
	default:
		return false
	}
}

// ordered compares numbers. A numeric text is a number here as it is in equals,
// which is the documented intent of seed 000; a blank one is none, for an empty
// answer is no measurement. Anything else compares as false.
func ordered(op Op, a, b any) bool {
	x, ok := measure(a)
	if !ok {
		return false
	}
	y, ok := measure(b)
	if !ok {
		return false
	}
	return inOrder(op, x, y)
}

// inOrder compares two numbers.
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

// measure is the number that a value is or spells.
func measure(v any) (float64, bool) {
	switch v := v.(type) {
	case float64:
		return v, !math.IsNaN(v)
	case string:
		if trim(v) == "" {
			return 0, false
		}
		n := number(v)
		return n, !math.IsNaN(n)
	default:
		return 0, false
	}
}

// testText is contains, startsWith and endsWith: both sides trimmed and lower
// case, what is missing is "". On a list, contains asks for an element that is
// leniently equal; seed 000 leaves lists open.
func testText(op Op, value, literal any) bool {
	if list, ok := value.([]any); ok {
		if op != Contains {
			return false
		}
		for _, element := range list {
			if equal(plain(element), literal) {
				return true
			}
		}
		return false
	}
	part, ok := text(literal)
	if !ok || literal == nil {
		return false
	}
	whole, ok := text(value)
	if !ok {
		return false
	}
	part, whole = normal(part), normal(whole)
	switch op {
	case Contains:
		return strings.Contains(whole, part)
	case StartsWith:
		return strings.HasPrefix(whole, part)
	default:
		return strings.HasSuffix(whole, part)
	}
}

// testPattern is matches: on the trimmed text, ignoring case. A pattern that
// does not compile or takes too long does not match.
func testPattern(e *Expr, value any) bool {
	whole, ok := text(value)
	if !ok {
		return false
	}
	p := e.pattern()
	if p == nil {
		return false
	}
	matched, err := p.Match(trim(whole))
	return err == nil && matched
}

// text is a scalar as JavaScript writes it. Lists and objects have no text.
func text(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return spell(v), true
	default:
		return "", false
	}
}

// spell writes a number as JavaScript does: no exponent from 1e-6 to 1e21.
func spell(f float64) string {
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

// number is JavaScript's Number() of a text: blank is 0, what is no number is
// NaN.
func number(s string) float64 {
	s = trim(s)
	if s == "" {
		return 0
	}
	if len(s) > 2 && s[0] == '0' {
		if base := radix(s[1]); base != 0 {
			return integer(s[2:], base)
		}
	}
	switch s {
	case "Infinity", "+Infinity":
		return math.Inf(1)
	case "-Infinity":
		return math.Inf(-1)
	}
	// ParseFloat also reads inf, nan, hexadecimal and underscores.
	if strings.Trim(s, "+-.0123456789eE") != "" {
		return math.NaN()
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil && !math.IsInf(f, 0) {
		return math.NaN()
	}
	return f
}

// radix is the base that a prefix letter announces, or 0.
func radix(letter byte) float64 {
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

// integer reads digits of a base, or gives NaN.
func integer(digits string, base float64) float64 {
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

// normal is a text as equality sees it.
func normal(s string) string { return strings.ToLower(trim(s)) }

// trim removes what JavaScript's trim does.
func trim(s string) string { return strings.TrimFunc(s, IsSpace) }

// IsSpace says whether JavaScript's trim removes r: Go's white space without
// U+0085, with U+FEFF.
func IsSpace(r rune) bool {
	return r == '\uFEFF' || r != '\u0085' && unicode.IsSpace(r)
}

// plain turns a Go value into what JSON decodes to: every number is a float64.
func plain(v any) any {
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
	return reflected(reflect.ValueOf(v))
}

// reflected is plain for values that only Go code makes.
func reflected(v reflect.Value) any {
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
		return plain(v.Elem().Interface())
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
