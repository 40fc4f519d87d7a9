// Package jsontext writes JSON that is the same wherever the product writes it:
// nothing is escaped that need not be. Answers for agents stay short and readable
// (scripts and prompts are full of < and &), and the same value always has the same
// bytes, which hashes rely on.
package jsontext

import (
	"bytes"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// Marshal writes a value on one line, maps sorted by their keys, without escaping what
// HTML would want escaped. It is encoding/json that writes, with its escapes of U+2028
// and U+2029: hashes of what is stored were made of these bytes.
func Marshal(value any) ([]byte, error) { return write(value, "") }

// Indent is Marshal for people to read: on lines of their own, with two spaces for each
// level, and without a line break at the end.
func Indent(value any) ([]byte, error) { return write(value, "  ") }

func write(value any, indent string) ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// AppendString writes a text as RFC 8785 wants it: quotes, backslashes and what is below
// U+0020 are escaped, all else stands for itself, U+2028 and U+2029 too: their escapes
// are for readers that take JSON for a script of before 2019, and nothing of ours is
// read so. Bytes that are no UTF-8 become U+FFFD, one for each.
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

// AppendNumber writes a finite number as ECMAScript does: digits from 1e-6 up to 1e21,
// an exponent without leading zeros beyond, and no negative zero.
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
