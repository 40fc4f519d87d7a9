// Package template parses and renders placeholders in texts for agents: {{name}},
// {{a.b[0].c}}, {{items.length}}, and {{n + 1}} or {{n - 1}} for a number. Any other text
// in braces stays as written, and so does a placeholder without a value. Nothing else is
// evaluated.
package template

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Part is a piece of a text: literal text or a placeholder.
type Part struct {
	// Text is the piece as written, braces included.
	Text string
	// Expr is set if the piece is in braces.
	Expr bool
	// Path is the variable's name followed by members and indices; nil if the piece is
	// text, or not a valid path in braces.
	Path []string
	// Offset is the integer to add to the value.
	Offset int
	// Added is set if an integer is added, including zero.
	Added bool
}

// maxDigits is the maximum number of digits of the integer to add.
const maxDigits = 9

// Parse splits a text into parts. The texts of the parts, joined, equal the original text.
func Parse(text string) []Part {
	var parts []Part
	for text != "" {
		open, end := findPlaceholder(text)
		if end == 0 {
			return append(parts, Part{Text: text})
		}
		if open > 0 {
			parts = append(parts, Part{Text: text[:open]})
		}
		part := Part{Text: text[open:end], Expr: true}
		part.Path, part.Offset, part.Added = parseExpression(text[open+2 : end-2])
		parts = append(parts, part)
		text = text[end:]
	}
	return parts
}

// findPlaceholder returns the range of the first {{...}}; end is zero if there is no
// placeholder. If several openings precede the closing, the last one is used.
func findPlaceholder(text string) (open, end int) {
	from := strings.Index(text, "{{")
	if from < 0 {
		return 0, 0
	}
	length := strings.Index(text[from+2:], "}}")
	if length < 0 {
		return 0, 0
	}
	end = from + 2 + length + 2
	return strings.LastIndex(text[:end-2], "{{"), end
}

// parseExpression parses a path with an optional integer to add. The path is nil for any
// other text.
func parseExpression(text string) (path []string, offset int, added bool) {
	text = strings.Trim(text, " \t\r\n")
	end := strings.IndexAny(text, " \t\r\n+-")
	if end < 0 {
		return parsePath(text), 0, false
	}
	path = parsePath(text[:end])
	offset, ok := parseOffset(text[end:])
	if path == nil || !ok {
		return nil, 0, false
	}
	return path, offset, true
}

// parseOffset parses + or - and an integer, with optional spaces.
func parseOffset(text string) (int, bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	if text == "" || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	digits := strings.TrimLeft(text[1:], " \t\r\n")
	if digits == "" || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if text[0] == '-' {
		n = -n
	}
	return n, err == nil
}

// parsePath parses a name followed by .member or [index].
func parsePath(text string) []string {
	size := nameLength(text)
	if size == 0 {
		return nil
	}
	path := []string{text[:size]}
	for text = text[size:]; text != ""; text = text[size:] {
		switch text[0] {
		case '.':
			size = 1 + nameLength(text[1:])
			if size == 1 {
				return nil
			}
			path = append(path, text[1:size])
		case '[':
			size = strings.IndexByte(text, ']') + 1
			if size < 3 || size > maxDigits+2 || strings.Trim(text[1:size-1], "0123456789") != "" {
				return nil
			}
			path = append(path, text[1:size-1])
		default:
			return nil
		}
	}
	return path
}

// nameLength returns the length of the name at the start of a text.
func nameLength(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}

// Render joins the parts and replaces placeholders with the values of variables: strings
// unchanged, other values as compact JSON. A placeholder
// without a value, or with an offset for a value that is not a number, is kept as written.
// Values are not searched for placeholders.
func Render(parts []Part, lookup func(name string) (any, bool)) string {
	if len(parts) == 1 && parts[0].Path == nil {
		return parts[0].Text
	}
	var b strings.Builder
	for i := range parts {
		part := &parts[i]
		if part.Path == nil {
			b.WriteString(part.Text)
			continue
		}
		text, ok := part.renderValue(lookup)
		if !ok {
			text = part.Text
		}
		b.WriteString(text)
	}
	return b.String()
}

// renderValue returns the value of one placeholder as text.
func (p *Part) renderValue(lookup func(name string) (any, bool)) (string, bool) {
	value, ok := lookup(p.Path[0])
	for _, key := range p.Path[1:] {
		if !ok {
			return "", false
		}
		value, ok = getMember(value, key)
	}
	if !ok {
		return "", false
	}
	if p.Added {
		n, isNumber := toNumber(value)
		if !isNumber {
			return "", false
		}
		return formatNumber(n + float64(p.Offset)), true
	}
	return formatValue(value)
}

// getMember returns a member of an object, an element of a list, or the length of a list or
// text.
func getMember(value any, key string) (any, bool) {
	switch v := value.(type) {
	case map[string]any:
		found, ok := v[key]
		return found, ok
	case []any:
		if key == "length" {
			return len(v), true
		}
		i, err := strconv.Atoi(key)
		if err != nil || i < 0 || i >= len(v) {
			return nil, false
		}
		return v[i], true
	case string:
		if key == "length" {
			return jsontext.CountUTF16(v), true
		}
	}
	return nil, false
}

// toNumber converts any numeric type that JSON or the engine produces.
func toNumber(value any) (float64, bool) {
	switch v := value.(type) {
	case float64:
		return v, true
	case int:
		return float64(v), true
	case int64:
		return float64(v), true
	case json.Number:
		n, err := v.Float64()
		return n, err == nil
	default:
		return 0, false
	}
}

// formatNumber formats a number as JavaScript does. It returns "" for NaN and infinities.
func formatNumber(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return ""
	}
	return string(jsontext.AppendNumber(nil, n))
}

// formatValue formats a value.
func formatValue(value any) (string, bool) {
	if text, ok := value.(string); ok {
		return text, true
	}
	if n, ok := value.(json.Number); ok {
		return n.String(), true // unchanged, because conversion to a float would round it
	}
	if n, ok := toNumber(value); ok {
		return formatNumber(n), true
	}
	text, err := jsontext.Marshal(value)
	return string(text), err == nil
}
