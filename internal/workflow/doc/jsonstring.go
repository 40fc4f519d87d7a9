package doc

import (
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// readString reads a string at the next byte. A string without escapes shares the memory of
// the text.
func (j *jsonReader) readString() string {
	open := j.pos
	j.pos++
	run := j.pos
	out, escaped := j.scratch[:0], false
	for j.pos < len(j.text) {
		c := j.text[j.pos]
		if c >= ' ' && c != '"' && c != '\\' {
			j.pos++
			continue
		}
		switch {
		case c == '"':
			text := j.text[run:j.pos]
			j.pos++
			if !escaped {
				return text
			}
			out = append(out, text...)
			j.scratch = out
			return string(out)
		case c == '\\':
			escaped = true
			out = append(out, j.text[run:j.pos]...)
			out = j.readEscape(out)
			run = j.pos
		default:
			j.failControl(open, c)
		}
	}
	j.failAt(CodeJSONSyntax, open, "the string is not closed", "end the string with a double quote")
	return ""
}

// failControl fails at a byte that must be escaped.
func (j *jsonReader) failControl(open int, c byte) {
	switch c {
	case '\n', '\r':
		j.failAt(CodeJSONSyntax, open, "the string is not closed on its line",
			`end the string with a double quote; write a line break inside a string as \n`)
	case '\t':
		j.failAt(CodeJSONSyntax, j.pos, "there is a tab inside a string", `write the tab as \t`)
	default:
		j.failAt(CodeJSONSyntax, j.pos, fmt.Sprintf("there is a control character (0x%02x) inside a string", c),
			fmt.Sprintf(`remove the character, or write it as \u%04x`, c))
	}
}

// readEscape reads an escape at the next byte.
func (j *jsonReader) readEscape(out []byte) []byte {
	begin := j.pos
	j.pos++
	if j.pos >= len(j.text) {
		j.failAt(CodeJSONSyntax, begin, "the text ends inside an escape", `complete the escape, or write \\ for a backslash; then close the string with a double quote`)
	}
	c := j.text[j.pos]
	j.pos++
	switch c {
	case 'n':
		return append(out, '\n')
	case '"', '\\', '/':
		return append(out, c)
	case 't':
		return append(out, '\t')
	case 'r':
		return append(out, '\r')
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'u':
		return utf8.AppendRune(out, j.readUnicode(begin))
	}
	j.pos--
	char, _ := utf8.DecodeRuneInString(j.text[j.pos:])
	j.failAt(CodeJSONSyntax, begin, fmt.Sprintf(`JSON does not support the escape \%c`, char),
		`write \\ for a backslash; the escapes are \" \\ \/ \b \f \n \r \t \uXXXX`)
	return nil
}

// readUnicode reads the digits of \uXXXX, and the second half of a surrogate pair.
func (j *jsonReader) readUnicode(begin int) rune {
	first, ok := j.readHex()
	if !ok {
		j.failAt(CodeJSONSyntax, begin, `\u is not followed by four hexadecimal digits`, `write \u and four of 0-9, a-f, such as \u00e9`)
	}
	if first == 0 {
		j.addDiagnostic(Diagnostic{
			Code: CodeNUL, Line: j.line, Column: begin - j.start + 1, Pointer: j.path.toPointer(),
			Message: `\u0000 is not allowed: text must not contain a NUL character`,
			Fix:     "remove the escape",
		})
	}
	if !utf16.IsSurrogate(first) {
		return first
	}
	second := j.pos
	if j.skipByte('\\') && j.skipByte('u') {
		if low, ok := j.readHex(); ok {
			if pair := utf16.DecodeRune(first, low); pair != utf8.RuneError {
				return pair
			}
		}
	}
	j.pos = second
	j.addDiagnostic(Diagnostic{
		Code: CodeSurrogate, Line: j.line, Column: begin - j.start + 1, Pointer: j.path.toPointer(),
		Message: fmt.Sprintf(`\u%04x is half of a surrogate pair: the other half is missing`, first),
		Fix:     "write the character itself, or both halves",
	})
	return utf8.RuneError
}

// readHex reads four hexadecimal digits.
func (j *jsonReader) readHex() (rune, bool) {
	if j.pos+4 > len(j.text) {
		return 0, false
	}
	value, err := strconv.ParseUint(j.text[j.pos:j.pos+4], 16, 16)
	if err != nil {
		return 0, false
	}
	j.pos += 4
	return rune(value), true
}
