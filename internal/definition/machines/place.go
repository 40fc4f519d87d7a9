package machines

import (
	"strings"
	"unicode/utf8"
)

// FunctionPlace is where a function of a script is written, by line and column from
// 1, for findings that have no place of their own. Both are 0 where it is not found.
func FunctionPlace(source, name string) (line, column int) {
	list := words(source)
	for i, w := range list {
		if w.text != name || w.kind == wordOther || w.at < 0 || !isDefinition(list, i) {
			continue
		}
		before := source[:w.at]
		begin := strings.LastIndexByte(before, '\n') + 1
		return strings.Count(before, "\n") + 1, utf8.RuneCountInString(before[begin:]) + 1
	}
	return 0, 0
}

// isDefinition says whether the name at i is that of a function that is written
// there: a method, a declaration, or a member or variable that gets a value. A call
// is followed by its arguments, and by no body.
func isDefinition(list []word, i int) bool {
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
		if list[j].kind != wordOther {
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
