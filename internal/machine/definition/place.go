package definition

import (
	"strings"
	"unicode/utf8"
)

// FunctionPlace returns the 1-based line and column of the definition of a script function,
// for diagnostics without their own position. Both are 0 if it is not found.
func FunctionPlace(source, name string) (line, column int) {
	list := tokenize(source)
	for i, w := range list {
		if w.text != name || w.kind == tokenOther || w.at < 0 || !isDefinition(list, i) {
			continue
		}
		before := source[:w.at]
		begin := strings.LastIndexByte(before, '\n') + 1
		return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
	}
	return 0, 0
}

// isDefinition reports whether the name at i is the name of a function definition: a
// method, a declaration, or a member or variable with a value. A call has arguments, but no
// body.
func isDefinition(list []token, i int) bool {
	if i > 0 && list[i-1].text == "." || i+1 >= len(list) {
		return false
	}
	switch list[i+1].text {
	case ":", "=":
		return true
	case "(":
	default:
		return false
	}
	depth := 0
	for j := i + 1; j < len(list); j++ {
		if list[j].kind != tokenOther {
			continue
		}
		switch list[j].text {
		case "(":
			depth++
		case ")":
			depth--
		}
		if depth == 0 {
			return j+1 < len(list) && list[j+1].text == "{"
		}
	}
	return false
}
