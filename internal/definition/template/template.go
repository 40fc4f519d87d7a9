// Package template is the small language of placeholders in texts for the agent:
// {{name}}, {{a.b[0].c}}, {{items.length}}, and {{n + 1}} or {{n - 1}} for a
// number. Everything else between braces is text, and so is a placeholder whose
// value is not known: nothing is ever evaluated.
package template

import (
	"strconv"
	"strings"
)

// Part is a piece of a text: literal, or what stands between {{ and }}.
type Part struct {
	// Text is the piece as it was written, braces included.
	Text string
	// Expr says that the piece stands in braces.
	Expr bool
	// Path is the variable's name and the members and indices to go through; nil
	// where the piece is text, or braces with something that is no path.
	Path []string
	// Offset is the integer that is added to the value; zero for none.
	Offset int
	// Added says that an integer is added, be it zero.
	Added bool
}

// maxDigits bounds the integer that is added.
const maxDigits = 9

// Parse splits a text. The parts' texts joined are the text.
func Parse(text string) []Part {
	var parts []Part
	for text != "" {
		open, end := placeholder(text)
		if end == 0 {
			return append(parts, Part{Text: text})
		}
		if open > 0 {
			parts = append(parts, Part{Text: text[:open]})
		}
		part := Part{Text: text[open:end], Expr: true}
		part.Path, part.Offset, part.Added = expression(text[open+2 : end-2])
		parts = append(parts, part)
		text = text[end:]
	}
	return parts
}

// placeholder finds the first {{...}}; end is zero if there is none. Of several
// openings the last before the closing counts.
func placeholder(text string) (open, end int) {
	from := strings.Index(text, "{{")
	if from < 0 {
		return 0, 0
	}
	length := strings.Index(text[from+2:], "}}")
	if length < 0 {
		return 0, 0
	}
	end = from + 2 + length + 2
	return strings.LastIndex(text[:end-2], "{{"), end
}

// expression reads a path, and an integer that is added to it. The path is nil
// for anything else.
func expression(text string) (path []string, offset int, added bool) {
	text = strings.Trim(text, " \t\r\n")
	end := strings.IndexAny(text, " \t\r\n+-")
	if end < 0 {
		return parsePath(text), 0, false
	}
	path = parsePath(text[:end])
	offset, ok := addition(text[end:])
	if path == nil || !ok {
		return nil, 0, false
	}
	return path, offset, true
}

// addition reads + or - and an integer, spaces around them.
func addition(text string) (int, bool) {
	text = strings.TrimLeft(text, " \t\r\n")
	if text == "" || text[0] != '+' && text[0] != '-' {
		return 0, false
	}
	digits := strings.TrimLeft(text[1:], " \t\r\n")
	if digits == "" || len(digits) > maxDigits || strings.Trim(digits, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	if text[0] == '-' {
		n = -n
	}
	return n, err == nil
}

// parsePath reads a name and what follows it: .member or [index].
func parsePath(text string) []string {
	size := nameLength(text)
	if size == 0 {
		return nil
	}
	path := []string{text[:size]}
	for text = text[size:]; text != ""; text = text[size:] {
		switch text[0] {
		case '.':
			size = 1 + nameLength(text[1:])
			if size == 1 {
				return nil
			}
			path = append(path, text[1:size])
		case '[':
			size = strings.IndexByte(text, ']') + 1
			if size < 3 || size > maxDigits+2 || strings.Trim(text[1:size-1], "0123456789") != "" {
				return nil
			}
			path = append(path, text[1:size-1])
		default:
			return nil
		}
	}
	return path
}

// nameLength is the length of the name that a text begins with.
func nameLength(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c == '_' || c == '$' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return i
		}
	}
	return len(text)
}
