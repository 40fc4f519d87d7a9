package template

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

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
