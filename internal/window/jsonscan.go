package window

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// What follows takes JSON apart one level at a time, without a copy and without looking
// at what it does not need: a context is read through at every call. It is meant for
// JSON that is known to be some; of anything else it says that it is not what it was
// taken for, or gives parts of it, and never looks beyond its end.

// field is a member of an object.
type field struct{ key, value string }

// readArray gives the elements of a list; false if the text is none.
func readArray(text string) ([]string, bool) {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != '[' {
		return nil, false
	}
	if at = skipSpace(text, at+1); at < len(text) && text[at] == ']' {
		return nil, true
	}
	var out []string
	for {
		end := valueEnd(text, at)
		if end < 0 {
			return nil, false
		}
		out = append(out, text[at:end])
		if at = skipSpace(text, end); at >= len(text) {
			return nil, false
		}
		switch text[at] {
		case ']':
			return out, true
		case ',':
			at = skipSpace(text, at+1)
		default:
			return nil, false
		}
	}
}

// readObject reads the members of an object in their order; false if the text
// is none.
func readObject(text string) ([]field, bool) {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != '{' {
		return nil, false
	}
	if at = skipSpace(text, at+1); at < len(text) && text[at] == '}' {
		return nil, true
	}
	var out []field
	for {
		end := valueEnd(text, at)
		if end < 0 || text[at] != '"' {
			return nil, false
		}
		key, ok := unquote(text[at:end])
		colon := skipSpace(text, end)
		if !ok || colon >= len(text) || text[colon] != ':' {
			return nil, false
		}
		at = skipSpace(text, colon+1)
		if end = valueEnd(text, at); end < 0 {
			return nil, false
		}
		out = append(out, field{key, text[at:end]})
		if at = skipSpace(text, end); at >= len(text) {
			return nil, false
		}
		switch text[at] {
		case '}':
			return out, true
		case ',':
			at = skipSpace(text, at+1)
		default:
			return nil, false
		}
	}
}

func skipSpace(text string, at int) int {
	for at < len(text) && isBlank(text[at]) {
		at++
	}
	return at
}

// valueEnd gives where the value ends that begins at a place; -1 where none does.
func valueEnd(text string, at int) int {
	depth := 0
	for i := at; i < len(text); {
		switch c := text[i]; c {
		case '"':
			if i = stringEnd(text, i); i < 0 {
				return -1
			}
		case '[', '{':
			depth++
			i++
		case ']', '}':
			depth--
			i++
		case ',', ':', ' ', '\t', '\n', '\r':
			i++
			continue
		default:
			i = scalarEnd(text, i)
		}
		if depth < 0 {
			return -1
		}
		if depth == 0 {
			return i
		}
	}
	return -1
}

// stringEnd gives what is behind the quote that ends a text; -1 where none does.
func stringEnd(text string, at int) int {
	for i := at + 1; ; {
		n := strings.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		// A quote behind an odd number of backslashes belongs to the text.
		end, slashes := i+n, 0
		for text[end-1-slashes] == '\\' {
			slashes++
		}
		if i = end + 1; slashes%2 == 0 {
			return i
		}
	}
}

// scalarEnd gives the end of a number or a word.
func scalarEnd(text string, at int) int {
	n := strings.IndexAny(text[at+1:], ",:]} \t\r\n")
	if n < 0 {
		return len(text)
	}
	return at + 1 + n
}

// unquote reads a text; false if it is none.
func unquote(raw string) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if strings.IndexByte(inner, '\\') < 0 && utf8.ValidString(inner) {
		return inner, true
	}
	if text, ok := unescape(inner); ok {
		return text, true
	}
	var text string
	err := json.Unmarshal([]byte(raw), &text)
	return text, err == nil
}

// unescape reads a text with the escapes that are usual in it; false if there are
// others.
func unescape(inner string) (string, bool) {
	if !utf8.ValidString(inner) {
		return "", false
	}
	var out strings.Builder
	out.Grow(len(inner))
	for {
		n := strings.IndexByte(inner, '\\')
		if n < 0 {
			out.WriteString(inner)
			return out.String(), true
		}
		out.WriteString(inner[:n])
		if n+1 >= len(inner) {
			return "", false
		}
		switch c := inner[n+1]; c {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case '"', '\\', '/':
			out.WriteByte(c)
		default:
			return "", false
		}
		inner = inner[n+2:]
	}
}
