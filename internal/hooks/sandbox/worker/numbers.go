package worker

import (
	"bytes"
	"slices"
	"strconv"
)

// A script sees numbers as JavaScript values: an integer beyond 2^53 loses its last digits.
// A number that a script only passes on must not change, so the output gets the digits of
// the input again.

// maxDigits is the length from which a literal may have digits that JavaScript loses.
const maxDigits = 16

// numbers maps the JavaScript form of a number to the literals in the input that have it, in
// their order. It lacks the forms of which every literal keeps its digits.
type numbers map[string][]string

// collectLiterals returns the literals of JSON texts.
func collectLiterals(texts ...[]byte) numbers {
	n := numbers{}
	for _, text := range texts {
		eachNumber(text, func(start, end int) {
			if end-start < maxDigits {
				return
			}
			literal := string(text[start:end])
			if written := asWritten(literal); written != literal {
				n[written] = nil
			}
		})
	}
	if len(n) == 0 {
		return n
	}
	for _, text := range texts {
		eachNumber(text, func(start, end int) {
			literal := string(text[start:end])
			if written := asWritten(literal); n.has(written) {
				n[written] = append(n[written], literal)
			}
		})
	}
	return n
}

func (n numbers) has(written string) bool {
	_, ok := n[written]
	return ok
}

// restoreLiterals replaces JavaScript's forms in a text with the original literals. If
// different literals have the same form, they are replaced in their order, but only if the
// text has as many numbers of that form as the input had.
func (n numbers) restoreLiterals(text []byte) []byte {
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
		case allEqual(literals):
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

func allEqual(literals []string) bool {
	return !slices.ContainsFunc(literals[1:], func(l string) bool { return l != literals[0] })
}

// asWritten returns JavaScript's form of a number; a number beyond its range stays
// unchanged.
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
	if format == 'e' { // JavaScript writes e-9 instead of e-09
		if i := len(b) - 4; i > 0 && b[i] == 'e' && b[i+2] == '0' {
			b = append(b[:i+2], b[i+3])
		}
	}
	return string(b)
}

// eachNumber calls f with the position of every number in a JSON text.
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

// afterString returns the index after the string that starts at i.
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
