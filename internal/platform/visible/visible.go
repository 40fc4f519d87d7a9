// Package visible escapes the characters of untrusted text that a person cannot see, or
// that change how a terminal or a browser shows the other characters.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsHidden reports whether a person cannot see a character as it is: control characters,
// direction marks, zero-width characters, tags, variation selectors, line separators and
// private-use characters. Line breaks and tabs are not hidden.
func IsHidden(r rune) bool {
	switch {
	case r == '\n', r == '\t', r == '\r', r >= ' ' && r <= '~':
		return false
	case r >= 0xFE00 && r <= 0xFE0F: // hidden, except the selectors for the text form and the emoji form of a character
		return r != 0xFE0E && r != 0xFE0F
	case r >= 0xE0100 && r <= 0xE01EF:
		return true
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0: // joiners and fillers that are invisible
		return true
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp)
}

// FindHidden returns the first hidden character of a text with its line and column, which
// start at 1. A carriage return counts as hidden unless a line feed follows it. ok is false
// if no character is hidden.
func FindHidden(text string) (r rune, line, column int, ok bool) {
	line, column = 1, 1
	for i, r := range text {
		switch {
		case IsHidden(r), r == '\r' && !strings.HasPrefix(text[i+1:], "\n"):
			return r, line, column, true
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
	}
	return 0, 0, 0, false
}

// EscapeText returns text with each hidden character as \u{…}. Line breaks and tabs stay.
// A carriage return is escaped unless a line feed follows it, because it would overwrite
// its line.
func EscapeText(text string) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == '\r' || r == utf8.RuneError || IsHidden(r) }) {
		return text
	}
	var b strings.Builder
	for _, r := range strings.ReplaceAll(text, "\r\n", "\n") {
		if r == '\r' || IsHidden(r) {
			fmt.Fprintf(&b, `\u{%04X}`, r)
		} else {
			b.WriteRune(r) // WriteRune replaces invalid bytes, which some terminals read as control characters
		}
	}
	return b.String()
}

// EscapeLine returns text as one line with each hidden character as \u{…}: spaces and line
// breaks become single spaces.
func EscapeLine(text string) string {
	return strings.Join(strings.Fields(EscapeText(text)), " ")
}

// EscapeJSON returns JSON with the hidden characters of its strings as \u escapes, which
// decode to the same value.
func EscapeJSON(text []byte) []byte {
	if !strings.ContainsFunc(string(text), IsHidden) {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case !IsHidden(r):
			b = utf8.AppendRune(b, r)
		case r > 0xFFFF:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xD800+r>>10, 0xDC00+r&0x3FF)
		default:
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
