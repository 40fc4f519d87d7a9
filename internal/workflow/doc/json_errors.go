package doc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// failAt reports a diagnostic at an offset on the current line, and ends parsing.
func (j *jsonReader) failAt(code string, offset int, message, fix string) {
	j.addDiagnostic(Diagnostic{
		Code: code, Line: j.line, Column: offset - j.start + 1, Pointer: j.path.toPointer(),
		Message: message, Fix: fix,
	})
	panic(stopReading{})
}

// parentPointer returns the pointer to the open array or object.
func (j *jsonReader) parentPointer() string {
	if len(j.path) == 0 {
		return ""
	}
	return j.path[:len(j.path)-1].toPointer()
}

// describeNext describes the next token.
func (j *jsonReader) describeNext() string {
	if j.pos >= len(j.text) {
		return "the end of the text"
	}
	rest := j.text[j.pos:]
	if n := wordLength(rest); n > 1 {
		return excerpt(rest[:n])
	}
	char, _ := utf8.DecodeRuneInString(rest)
	return fmt.Sprintf("'%c'", char)
}

// failUnexpected fails at a token that is not the expected one.
func (j *jsonReader) failUnexpected(expected string) {
	if len(j.path) == 0 && j.pos < len(j.text) {
		j.failNotJSON()
	}
	j.failCommonMistake()
	message := fmt.Sprintf("expected %s, found %s", expected, j.describeNext())
	j.failAt(CodeJSONSyntax, j.pos, message, "write a string in double quotes, a number, true, false, null, an array or an object")
}

// failNotJSON fails at a start of the text that is not JSON.
func (j *jsonReader) failNotJSON() {
	if wordLength(j.text[j.pos:]) == 0 {
		j.failCommonMistake()
	}
	j.failAt(CodeJSONSyntax, j.pos, "expected '{' at the start, found "+j.describeNext(),
		"a definition in JSON is one object in braces; name the file .yaml if it is YAML")
}

// failCommonMistake fails with a specific message if the next token is a common mistake.
func (j *jsonReader) failCommonMistake() {
	if j.pos >= len(j.text) {
		if len(j.path) > 0 {
			j.failAt(CodeJSONSyntax, j.pos, "the text ends too early: an object or array is not closed", "add the missing part and close every '{' and '['")
		}
		return
	}
	rest := j.text[j.pos:]
	switch {
	case rest[0] == '\'':
		j.failAt(CodeJSONSyntax, j.pos, "a string is in single quotes", "use double quotes")
	case strings.HasPrefix(rest, "“") || strings.HasPrefix(rest, "”") || strings.HasPrefix(rest, "‘") || strings.HasPrefix(rest, "’"):
		j.failAt(CodeJSONSyntax, j.pos, "a string is in typographic quotes", `use plain double quotes: "`)
	case rest[0] == '`':
		j.failAt(CodeJSONSyntax, j.pos, "a string is in backquotes", "use double quotes")
	case strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") || rest[0] == '#':
		j.failAt(CodeJSONSyntax, j.pos, "JSON has no comments", "remove the comment, or write the definition in YAML (.yaml), which supports comments")
	case rest[0] == ',':
		j.failAt(CodeJSONSyntax, j.pos, "there is a comma with nothing before it", "remove the comma, or add the missing value")
	case rest[0] == '+' || rest[0] == '.':
		j.failAt(CodeJSONSyntax, j.pos, fmt.Sprintf("a number cannot start with '%c'", rest[0]), "write a number such as 0.5")
	}
	if n := wordLength(rest); n > 0 {
		j.failWord(rest[:n])
	}
}

// failWord fails at a word that is not a JSON literal.
func (j *jsonReader) failWord(word string) {
	message := fmt.Sprintf("expected a value, found %s", excerpt(word))
	switch strings.ToLower(word) {
	case "true", "false", "null":
		j.failAt(CodeJSONSyntax, j.pos, message, "write "+strings.ToLower(word)+" in lower case")
	case "none", "nil", "undefined":
		j.failAt(CodeJSONSyntax, j.pos, message, "write null")
	case "nan", "infinity", "inf":
		j.failAt(CodeJSONSyntax, j.pos, message, "JSON supports only finite numbers: write a number or null")
	}
	j.failAt(CodeJSONSyntax, j.pos, message, "put a string in double quotes")
}

// failKey fails at a token that is not a key.
func (j *jsonReader) failKey(n *Node) {
	if j.pos >= len(j.text) {
		j.failUnclosed(n, '}')
	}
	rest := j.text[j.pos:]
	if length := wordLength(rest); length > 0 {
		j.failAt(CodeJSONSyntax, j.pos, fmt.Sprintf("the key %s is not in quotes", rest[:length]), fmt.Sprintf(`write "%s"`, rest[:length]))
	}
	j.failCommonMistake()
	j.failAt(CodeJSONSyntax, j.pos, "expected a key in double quotes or '}', found "+j.describeNext(), `write a member as "key": value`)
}

// failColon fails at a token after a key that is not a colon.
func (j *jsonReader) failColon(key string) {
	message := fmt.Sprintf("expected ':' after the key %s, found %s", excerpt(key), j.describeNext())
	fix := `write a member as "key": value`
	if j.pos < len(j.text) && j.text[j.pos] == '=' {
		fix = "write ':' instead of '='"
	}
	j.failAt(CodeJSONSyntax, j.pos, message, fix)
}

// failUnclosed fails at the end of the text inside an array or object.
func (j *jsonReader) failUnclosed(n *Node, closing byte) {
	j.failAt(CodeJSONSyntax, j.pos,
		fmt.Sprintf("the text ends too early: the %s that starts on line %d is not closed", n.Kind, n.Line),
		fmt.Sprintf("add '%c', or the missing part of the file", closing))
}

// failSeparator fails at a token that is neither a comma nor the closing bracket.
func (j *jsonReader) failSeparator(n *Node, closing byte) {
	if j.pos >= len(j.text) {
		j.failUnclosed(n, closing)
	}
	rest := j.text[j.pos:]
	if strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") || rest[0] == '#' {
		j.failCommonMistake()
	}
	message := fmt.Sprintf("expected ',' or '%c', found %s", closing, j.describeNext())
	switch rest[0] {
	case '"', '{', '[':
		j.failAt(CodeJSONSyntax, j.pos, message, "add a comma before "+j.describeNext())
	case '}', ']':
		j.failAt(CodeJSONSyntax, j.pos, message, fmt.Sprintf("close the %s that starts on line %d with '%c'", n.Kind, n.Line, closing))
	default:
		if n.Kind == Object && len(n.Members) > 0 && n.Members[len(n.Members)-1].Value.Kind == String {
			j.failAt(CodeJSONSyntax, j.pos, message, `add the missing comma; write a double quote inside a string as \"`)
		}
		j.failAt(CodeJSONSyntax, j.pos, message, "add the missing comma, or close the "+n.Kind.String())
	}
}

// failTrailing fails at text after the document.
func (j *jsonReader) failTrailing() {
	fix := "remove the text: a file contains one definition"
	if c := j.text[j.pos]; c == '}' || c == ']' {
		fix = "remove the bracket, or the earlier bracket that closes too much"
	}
	j.path = nil
	j.failAt(CodeJSONSyntax, j.pos, "unexpected text after the end of the document: "+j.describeNext(), fix)
}
