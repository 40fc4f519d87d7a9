package compress

import (
	"encoding/json"
	"strings"
	"unicode/utf8"
)

// The functions in this file split JSON one level at a time, without a copy and without
// parsing nested values, since a context is read at every call. They expect valid JSON. For
// invalid JSON they return false or only some of the parts, and never read past the end.

// objectField is a member of an object.
type objectField struct{ key, value string }

// readArray returns the elements of an array. ok is false if the text is not an array.
func readArray(text string) (out []string, ok bool) {
	ok = readMembers(text, '[', ']', func(at int) int {
		end := valueEnd(text, at)
		if end >= 0 {
			out = append(out, text[at:end])
		}
		return end
	})
	return out, ok
}

// readObject returns the members of an object in their order. ok is false if the text is
// not an object.
func readObject(text string) (out []objectField, ok bool) {
	ok = readMembers(text, '{', '}', func(at int) int {
		end := valueEnd(text, at)
		if end < 0 || text[at] != '"' {
			return -1
		}
		key, ok := unquoteText(text[at:end])
		colon := skipSpace(text, end)
		if !ok || colon >= len(text) || text[colon] != ':' {
			return -1
		}
		at = skipSpace(text, colon+1)
		if end = valueEnd(text, at); end >= 0 {
			out = append(out, objectField{key, text[at:end]})
		}
		return end
	})
	return out, ok
}

// SplitObject returns the members of a JSON object. ok is false if it is another value.
func SplitObject(text string) (members Context, ok bool) {
	fields, ok := readObject(text)
	members = Context{}
	for _, f := range fields {
		members[f.key] = json.RawMessage(f.value)
	}
	return members, ok
}

// readMembers reads the members between two brackets, separated by commas. read reads the
// member at an index and returns its end, or -1.
func readMembers(text string, opening, closing byte, read func(at int) int) bool {
	at := skipSpace(text, 0)
	if at >= len(text) || text[at] != opening {
		return false
	}
	if at = skipSpace(text, at+1); at < len(text) && text[at] == closing {
		return true
	}
	for {
		if at = read(at); at < 0 {
			return false
		}
		if at = skipSpace(text, at); at >= len(text) {
			return false
		}
		switch text[at] {
		case closing:
			return true
		case ',':
			at = skipSpace(text, at+1)
		default:
			return false
		}
	}
}

func skipSpace(text string, at int) int {
	for at < len(text) && isBlank(text[at]) {
		at++
	}
	return at
}

// valueEnd returns the end of the value that begins at the index, or -1.
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

// stringEnd returns the index after the closing quote of a string, or -1.
func stringEnd(text string, at int) int {
	for i := at + 1; ; {
		n := strings.IndexByte(text[i:], '"')
		if n < 0 {
			return -1
		}
		// A quote after an odd number of backslashes is escaped.
		end, slashes := i+n, 0
		for text[end-1-slashes] == '\\' {
			slashes++
		}
		if i = end + 1; slashes%2 == 0 {
			return i
		}
	}
}

// scalarEnd returns the end of a number or a literal.
func scalarEnd(text string, at int) int {
	n := strings.IndexAny(text[at+1:], ",:]} \t\r\n")
	if n < 0 {
		return len(text)
	}
	return at + 1 + n
}

// unquoteText decodes a JSON string. It returns false if raw is not a string.
func unquoteText(raw string) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || raw[len(raw)-1] != '"' {
		return "", false
	}
	inner := raw[1 : len(raw)-1]
	if strings.IndexByte(inner, '\\') < 0 && utf8.ValidString(inner) {
		return inner, true
	}
	if text, ok := unescapeText(inner); ok {
		return text, true
	}
	var text string
	err := json.Unmarshal([]byte(raw), &text)
	return text, err == nil
}

// unescapeText decodes the common escapes of a string. It returns false if the string
// contains other escapes.
func unescapeText(inner string) (string, bool) {
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
