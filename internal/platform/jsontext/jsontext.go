// Package jsontext encodes JSON without HTML escapes. Answers for agents stay short and
// readable (scripts and prompts often contain < and &), and the same value always has the
// same bytes, as hashes require.
package jsontext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	fastjson "github.com/segmentio/encoding/json"
)

// Marshal encodes a value on one line, maps sorted by key, without HTML escapes. It uses
// encoding/json, which escapes U+2028 and U+2029: stored hashes depend on these bytes.
func Marshal(value any) ([]byte, error) { return encodeValue(value, "") }

// Indent encodes a value like Marshal, but indented by two spaces, without a final line
// break.
func Indent(value any) ([]byte, error) { return encodeValue(value, "  ") }

func encodeValue(value any, indent string) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// Decode decodes the first JSON value of a text. Numbers in values of the type any are
// json.Number, because a float would round them.
func Decode(text []byte, value any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	return decoder.Decode(value)
}

// Normalize encodes JSON again, with sorted members and without white space. It returns other
// text unchanged.
func Normalize(text json.RawMessage) json.RawMessage {
	var value any
	if Decode(text, &value) != nil {
		return text
	}
	out, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return out
}

// Equal reports whether two values have the same JSON encoding.
func Equal(a, b any) bool {
	x, err := Marshal(a)
	if err != nil {
		return false
	}
	y, err := Marshal(b)
	return err == nil && bytes.Equal(x, y)
}

// TypeName returns the name of the JSON type of a decoded value, as schemas write it.
func TypeName(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64, int, json.Number:
		return "number"
	case []any:
		return "array"
	default:
		return "object"
	}
}

// DescribeType returns the type of a decoded value with its article, for an error.
func DescribeType(value any) string {
	switch name := TypeName(value); name {
	case "null":
		return name
	case "string":
		return "a string"
	case "array":
		return "a list"
	case "object":
		return "an object"
	default:
		return "a " + name
	}
}

// IsNumber reports whether a text is a JSON number.
func IsNumber(text string) bool {
	return text != "" && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') && json.Valid([]byte(text))
}

// CountUTF16 returns the length of a text in UTF-16 units, as in JavaScript.
func CountUTF16(text string) int {
	n := 0
	for _, r := range text {
		n += utf16.RuneLen(r)
	}
	return n
}

// AppendString appends a string as RFC 8785 requires: quotes, backslashes and characters
// below U+0020 are escaped, all others are not. U+2028 and U+2029 are not escaped either:
// only readers that evaluate JSON as JavaScript from before 2019 need that. Each invalid
// UTF-8 byte becomes U+FFFD.
func AppendString(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	if !utf8.ValidString(text) {
		text = string([]rune(text))
	}
	out = append(out, '"')
	from := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	out = append(out, text[from:]...)
	return append(out, '"')
}

// AppendNumber appends a finite number as ECMAScript does: plain digits from 1e-6 up to
// 1e21, otherwise an exponent without leading zeros; negative zero is written as 0.
func AppendNumber(out []byte, value float64) []byte {
	if value == 0 {
		return append(out, '0')
	}
	size := max(value, -value)
	if size >= 1e-6 && size < 1e21 {
		return strconv.AppendFloat(out, value, 'f', -1, 64)
	}
	out = strconv.AppendFloat(out, value, 'e', -1, 64)
	if end := len(out); out[end-4] == 'e' && out[end-2] == '0' {
		out[end-2] = out[end-1]
		out = out[:end-1]
	}
	return out
}

// maxDepth is the maximum nesting of JSON, as in encoding/json.
const maxDepth = 10000

// Valid reports whether text is valid JSON. It agrees with json.Valid of the standard
// library, and is several times faster.
func Valid(text []byte) bool {
	return Within(text, maxDepth) && fastjson.Valid(text) // it recurses at each level
}

// Parse decodes JSON in half the time of encoding/json. Numbers are json.Number.
func Parse(text []byte) (value any, err error) {
	if !Valid(text) {
		return nil, cmp.Or(json.Unmarshal(text, new(any)), errors.New("the text is not JSON"))
	}
	_, err = fastjson.Parse(text, &value, fastjson.UseNumber)
	return value, err
}

// Within reports whether JSON is nested at most depth levels deep.
func Within(text []byte, depth int) bool {
	open := 0
	for pos := 0; pos < len(text); {
		c := text[pos]
		pos++
		switch c {
		case '"':
			pos = SkipString(text, pos)
		case '{', '[':
			if open++; open > depth {
				return false
			}
		case '}', ']':
			open--
		}
	}
	return true
}

// SkipString returns the position after the string whose first quote is before pos.
func SkipString(text []byte, pos int) int {
	for {
		n := bytes.IndexByte(text[pos:], '"')
		if n < 0 {
			return len(text)
		}
		pos += n + 1
		slashes := 0
		for i := pos - 2; i >= 0 && text[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 0 {
			return pos
		}
	}
}
