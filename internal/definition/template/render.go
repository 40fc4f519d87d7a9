package template

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"

	"github.com/guideway-dev/guideway/internal/jsontext"
)

// Render puts the parts together with the values of variables: strings as they
// are, numbers in plain digits, lists and objects as compact JSON. A placeholder
// without a value, or one that adds to what is no number, stays as it was
// written. Values are not looked at for placeholders of their own.
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
		text, ok := part.render(lookup)
		if !ok {
			text = part.Text
		}
		b.WriteString(text)
	}
	return b.String()
}

// render gives the text of one placeholder.
func (p *Part) render(lookup func(name string) (any, bool)) (string, bool) {
	value, ok := lookup(p.Path[0])
	for _, key := range p.Path[1:] {
		if !ok {
			return "", false
		}
		value, ok = member(value, key)
	}
	if !ok {
		return "", false
	}
	if p.Added {
		n, isNumber := number(value)
		if !isNumber {
			return "", false
		}
		return formatNumber(n + float64(p.Offset)), true
	}
	return format(value)
}

// member goes one step down: a member of an object, an element of a list, the
// length of a list or text.
func member(value any, key string) (any, bool) {
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
			return len(utf16.Encode([]rune(v))), true
		}
	}
	return nil, false
}

// number gives the value of any type of number that JSON or the engine makes.
func number(value any) (float64, bool) {
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

// formatNumber writes a number as JavaScript does; what is none is left out.
func formatNumber(n float64) string {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return ""
	}
	return string(jsontext.AppendNumber(nil, n))
}

// format writes a value.
func format(value any) (string, bool) {
	if text, ok := value.(string); ok {
		return text, true
	}
	if n, ok := value.(json.Number); ok {
		return n.String(), true // as it was written: a float would round it
	}
	if n, ok := number(value); ok {
		return formatNumber(n), true
	}
	text, err := jsontext.Marshal(value)
	return string(text), err == nil
}
