// Package visible escapes the characters of untrusted text that a person cannot see, or
// that change how a terminal or a browser shows the other characters.
package visible

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// IsHidden reports whether a person cannot see a character as it is: control and format
// characters such as direction marks, line separators, private-use characters and all
// characters that Unicode lists as Default_Ignorable_Code_Point (zero-width characters,
// fillers, tags, variation selectors and reserved ones). Line breaks and tabs are not
// hidden.
func IsHidden(r rune) bool {
	if r == '\n' || r == '\t' || r == '\r' || r >= ' ' && r <= '~' {
		return false
	}
	return unicode.In(r, unicode.Cf, unicode.Cc, unicode.Co, unicode.Zl, unicode.Zp,
		unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}

// IsHiddenInProse is like IsHidden for the character at byte i of a text for people. A
// selector for the text form or the emoji form of the visible character before it is not
// hidden there, as in "⚠️". In a script it is, because an identifier may contain it.
func IsHiddenInProse(text string, i int) bool {
	r, size := utf8.DecodeRuneInString(text[i:])
	if r != 0xFE0E && r != 0xFE0F {
		return IsHidden(r)
	}
	before, width := utf8.DecodeLastRuneInString(text[:i])
	isKeycap := strings.ContainsRune("0123456789#*", before) && strings.HasPrefix(text[i+size:], "\u20e3")
	return !isKeycap && !isVisible(before, width)
}

// isVisible reports whether a decoded character is visible and not in ASCII, where no
// selector or joiner belongs to a character.
func isVisible(r rune, size int) bool {
	return size > 0 && r > 0x7F && !IsHidden(r) && !unicode.IsSpace(r)
}

// isJoined reports whether the character at byte i of a text joins two visible characters
// outside ASCII to a letter or an emoji.
func isJoined(text string, i int) bool {
	r, size := utf8.DecodeRuneInString(text[i:])
	if r != 0x200C && r != 0x200D || !isVisible(utf8.DecodeRuneInString(text[i+size:])) {
		return false
	}
	before, width := utf8.DecodeLastRuneInString(text[:i])
	return isVisible(before, width) || IsHidden(before) && !IsHiddenInProse(text, i-width)
}

// FindHidden returns the first hidden character of a script with its line and column, which
// start at 1. A carriage return counts as hidden unless a line feed follows it. ok is false
// if no character is hidden.
func FindHidden(script string) (r rune, line, column int, ok bool) {
	return findHidden(script, func(int) bool { return false })
}

// FindHiddenInProse is like FindHidden for a text for people, in which selectors and joiners
// may form letters and emoji.
func FindHiddenInProse(text string) (r rune, line, column int, ok bool) {
	return findHidden(text, func(i int) bool { return !IsHiddenInProse(text, i) || isJoined(text, i) })
}

// findHidden returns the first hidden character that is not exempt at its byte.
func findHidden(text string, isExempt func(i int) bool) (r rune, line, column int, ok bool) {
	line, column = 1, 1
	for i, r := range text {
		switch {
		case IsHidden(r) && !isExempt(i), r == '\r' && !strings.HasPrefix(text[i+1:], "\n"):
			return r, line, column, true
		case r == '\n':
			line, column = line+1, 1
		default:
			column++
		}
	}
	return 0, 0, 0, false
}

// EscapeText returns a text for people with each hidden character as \u{…}. Line breaks
// and tabs stay. A carriage return is escaped, because it would overwrite its line; before
// a line feed it is removed. Invalid bytes become U+FFFD.
func EscapeText(text string) string { return escapeHidden(text, IsHiddenInProse) }

// EscapeScript is like EscapeText for a script, in which no selector is exempt.
func EscapeScript(script string) string {
	return escapeHidden(script, func(text string, i int) bool {
		r, _ := utf8.DecodeRuneInString(text[i:])
		return IsHidden(r)
	})
}

func escapeHidden(text string, isHidden func(text string, i int) bool) string {
	if !strings.ContainsFunc(text, func(r rune) bool { return r == '\r' || r == utf8.RuneError || IsHidden(r) }) {
		return text
	}
	var b strings.Builder
	text = strings.ReplaceAll(text, "\r\n", "\n")
	for i, r := range text {
		if r == '\r' || isHidden(text, i) {
			fmt.Fprintf(&b, `\u{%04X}`, r)
		} else {
			b.WriteRune(r) // WriteRune replaces invalid bytes, which some terminals read as control characters
		}
	}
	return b.String()
}

// EscapeLine returns text as one line with each hidden character as \u{…}. White space
// becomes single spaces.
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
