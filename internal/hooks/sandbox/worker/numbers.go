package worker

import (
	"bytes"
	"strconv"
)

// A script sees numbers as JavaScript has them: of an integer beyond 2^53 the
// last digits are gone. A number that a script only passes on must not change,
// so what comes back has the digits that went in.

// maxDigits is how many digits a number has at least that JavaScript may not
// keep.
const maxDigits = 16

// numbers are the literals that went in and that JavaScript writes differently,
// by how it writes them, in the order in which they stood.
type numbers map[string][]string

// add notes the literals of a JSON text.
func (n numbers) add(text []byte) {
	eachNumber(text, func(start, end int) {
		if end-start < maxDigits {
			return
		}
		literal := string(text[start:end])
		if written := asWritten(literal); written != literal {
			n[written] = append(n[written], literal)
		}
	})
}

// restore puts the literals back where a text has what JavaScript wrote for
// them. Where several have become one, they are told apart by their order, if
// none was added or left out; else they stay as they are.
func (n numbers) restore(text []byte) []byte {
	if len(n) == 0 || text == nil {
		return text
	}
	seen := map[string]int{}
	eachNumber(text, func(start, end int) { seen[string(text[start:end])]++ })
	var out []byte
	last := 0
	at := map[string]int{}
	eachNumber(text, func(start, end int) {
		written := string(text[start:end])
		literals := n[written]
		if len(literals) == 0 {
			return
		}
		i := at[written]
		at[written]++
		switch {
		case same(literals):
			i = 0
		case len(literals) != seen[written]:
			return
		}
		out = append(append(out, text[last:start]...), literals[i]...)
		last = end
	})
	if out == nil {
		return text
	}
	return append(out, text[last:]...)
}

func same(literals []string) bool {
	for _, l := range literals[1:] {
		if l != literals[0] {
			return false
		}
	}
	return true
}

// asWritten is how JavaScript writes a number that it has read; a number that it
// cannot hold stays as it is.
func asWritten(literal string) string {
	f, err := strconv.ParseFloat(literal, 64)
	if err != nil {
		return literal
	}
	format := byte('f')
	if abs := max(f, -f); abs != 0 && (abs < 1e-6 || abs >= 1e21) {
		format = 'e'
	}
	b := strconv.AppendFloat(nil, f, format, -1, 64)
	if format == 'e' { // e-09 is e-9
		if i := len(b) - 4; i > 0 && b[i] == 'e' && b[i+2] == '0' {
			b = append(b[:i+2], b[i+3])
		}
	}
	return string(b)
}

// eachNumber calls f with the place of every number of a JSON text.
func eachNumber(text []byte, f func(start, end int)) {
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '"':
			i = afterString(text, i)
		case c == '-' || '0' <= c && c <= '9':
			start := i
			for i < len(text) && bytes.IndexByte([]byte("+-.eE0123456789"), text[i]) >= 0 {
				i++
			}
			f(start, i)
		default:
			i++
		}
	}
}

// afterString is the place behind the string that begins at i.
func afterString(text []byte, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}
