package doc

import (
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Canonical writes the value as RFC 8785 wants it: keys sorted by UTF-16 units,
// numbers as ECMAScript writes them, nothing escaped that need not be. A JSON
// and a YAML text that mean the same have the same canonical form.
func Canonical(n *Node) []byte {
	return appendValue(make([]byte, 0, 4096), n)
}

// appendValue writes one value.
func appendValue(out []byte, n *Node) []byte {
	if n == nil {
		return append(out, "null"...)
	}
	switch n.Kind {
	case Bool:
		return strconv.AppendBool(out, n.Flag)
	case Number:
		return appendNumber(out, n.Num)
	case String:
		return appendString(out, n.Text)
	case Array:
		out = append(out, '[')
		for i, item := range n.Items {
			if i > 0 {
				out = append(out, ',')
			}
			out = appendValue(out, item)
		}
		return append(out, ']')
	case Object:
		return appendObject(out, n)
	default:
		return append(out, "null"...)
	}
}

// appendObject writes an object's members in the order of their keys.
func appendObject(out []byte, n *Node) []byte {
	members := slices.Clone(n.Members)
	slices.SortFunc(members, func(a, b Member) int { return compareUTF16(a.Key, b.Key) })
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, m.Key)
		out = append(out, ':')
		out = appendValue(out, m.Value)
	}
	return append(out, '}')
}

// compareUTF16 orders by UTF-16 code units. It differs from the order of bytes
// only above U+FFFF, whose surrogates come before U+E000.
func compareUTF16(a, b string) int {
	for a != "" && b != "" {
		ra, sa := utf8.DecodeRuneInString(a)
		rb, sb := utf8.DecodeRuneInString(b)
		if ra != rb {
			return int(leadingUnit(ra)) - int(leadingUnit(rb)) + sameLead(ra, rb)
		}
		a, b = a[sa:], b[sb:]
	}
	return len(a) - len(b)
}

// leadingUnit is the first UTF-16 unit of a character.
func leadingUnit(r rune) rune {
	if high, _ := utf16.EncodeRune(r); high != utf8.RuneError {
		return high
	}
	return r
}

// sameLead orders two characters that share their first unit.
func sameLead(a, b rune) int {
	if leadingUnit(a) != leadingUnit(b) {
		return 0
	}
	return int(a - b)
}

// formatNumber writes a number as ECMAScript does.
func formatNumber(value float64) string { return string(appendNumber(nil, value)) }

// appendNumber writes a number as ECMAScript does: digits up to 1e21, an
// exponent without leading zeros beyond, and no negative zero.
func appendNumber(out []byte, value float64) []byte {
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

// appendString writes a string with the escapes that JSON requires.
func appendString(out []byte, text string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	run := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		out = append(out, text[run:i]...)
		run = i + 1
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
	out = append(out, text[run:]...)
	return append(out, '"')
}
