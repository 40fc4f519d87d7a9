package doc

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// fail reports a finding at the offset, which lies on the current line, and
// ends the reading.
func (j *jsonReader) fail(code string, offset int, message, fix string) {
	j.report(Diagnostic{
		Code: code, Line: j.line, Column: offset - j.start + 1, Pointer: j.path.pointer(),
		Message: message, Fix: fix,
	})
	panic(stop{})
}

// parent is the pointer to the array or object that is being read.
func (j *jsonReader) parent() string {
	if len(j.path) == 0 {
		return ""
	}
	return j.path[:len(j.path)-1].pointer()
}

// found describes what is next.
func (j *jsonReader) foundHere() string {
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

// unexpected stops where a value should stand.
func (j *jsonReader) unexpected(expected string) {
	if len(j.path) == 0 && j.pos < len(j.text) {
		j.notJSON()
	}
	j.slip()
	message := fmt.Sprintf("expected %s, found %s", expected, j.foundHere())
	j.fail(CodeJSONSyntax, j.pos, message, "write a string in double quotes, a number, true, false, null, an array or an object")
}

// notJSON stops where the text does not begin as JSON does.
func (j *jsonReader) notJSON() {
	if wordLength(j.text[j.pos:]) == 0 {
		j.slip()
	}
	j.fail(CodeJSONSyntax, j.pos, "expected '{' at the beginning, found "+j.foundHere(),
		"a definition in JSON is one object in braces; name the file .yaml if it is YAML")
}

// slip stops with a better message where what is next is a common slip.
func (j *jsonReader) slip() {
	if j.pos >= len(j.text) {
		if len(j.path) > 0 {
			j.fail(CodeJSONSyntax, j.pos, "the text ends too early: an object or array is not closed", "add what is missing and close every '{' and '['")
		}
		return
	}
	rest := j.text[j.pos:]
	switch {
	case rest[0] == '\'':
		j.fail(CodeJSONSyntax, j.pos, "a string stands in single quotes", "use double quotes")
	case strings.HasPrefix(rest, "“") || strings.HasPrefix(rest, "”") || strings.HasPrefix(rest, "‘") || strings.HasPrefix(rest, "’"):
		j.fail(CodeJSONSyntax, j.pos, "a string stands in typographic quotes", `use plain double quotes: "`)
	case rest[0] == '`':
		j.fail(CodeJSONSyntax, j.pos, "a string stands in backquotes", "use double quotes")
	case strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") || rest[0] == '#':
		j.fail(CodeJSONSyntax, j.pos, "JSON has no comments", "remove the comment, or write the definition in YAML (.yaml), which has them")
	case rest[0] == ',':
		j.fail(CodeJSONSyntax, j.pos, "there is a comma with nothing before it", "remove the comma, or write what is missing")
	case rest[0] == '+' || rest[0] == '.':
		j.fail(CodeJSONSyntax, j.pos, fmt.Sprintf("a number cannot begin with '%c'", rest[0]), "write a number such as 0.5")
	}
	if n := wordLength(rest); n > 0 {
		j.badWord(rest[:n])
	}
}

// badWord stops at a word that is no JSON literal.
func (j *jsonReader) badWord(word string) {
	message := fmt.Sprintf("expected a value, found %s", excerpt(word))
	switch strings.ToLower(word) {
	case "true", "false", "null":
		j.fail(CodeJSONSyntax, j.pos, message, "write "+strings.ToLower(word)+" in small letters")
	case "none", "nil", "undefined":
		j.fail(CodeJSONSyntax, j.pos, message, "write null")
	case "nan", "infinity", "inf":
		j.fail(CodeJSONSyntax, j.pos, message, "JSON knows finite numbers only: write a number or null")
	}
	j.fail(CodeJSONSyntax, j.pos, message, "put a text in double quotes")
}

// badKey stops where a key should stand.
func (j *jsonReader) badKey(n *Node) {
	if j.pos >= len(j.text) {
		j.unclosed(n, '}')
	}
	rest := j.text[j.pos:]
	if length := wordLength(rest); length > 0 {
		j.fail(CodeJSONSyntax, j.pos, fmt.Sprintf("the key %s is not in quotes", rest[:length]), fmt.Sprintf(`write "%s"`, rest[:length]))
	}
	j.slip()
	j.fail(CodeJSONSyntax, j.pos, "expected a key in double quotes or '}', found "+j.foundHere(), `write a member as "key": value`)
}

// badColon stops where a colon should follow a key.
func (j *jsonReader) badColon(key string) {
	message := fmt.Sprintf("expected ':' after the key %s, found %s", excerpt(key), j.foundHere())
	fix := `write a member as "key": value`
	if j.pos < len(j.text) && j.text[j.pos] == '=' {
		fix = "write ':' in place of '='"
	}
	j.fail(CodeJSONSyntax, j.pos, message, fix)
}

// unclosed stops at the end of the text inside an array or object.
func (j *jsonReader) unclosed(n *Node, closing byte) {
	j.fail(CodeJSONSyntax, j.pos,
		fmt.Sprintf("the text ends too early: the %s that begins on line %d is not closed", n.Kind, n.Line),
		fmt.Sprintf("add '%c'; is part of the file missing?", closing))
}

// badSeparator stops where a comma or the closing bracket should stand.
func (j *jsonReader) badSeparator(n *Node, closing byte) {
	if j.pos >= len(j.text) {
		j.unclosed(n, closing)
	}
	rest := j.text[j.pos:]
	if strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") || rest[0] == '#' {
		j.slip()
	}
	message := fmt.Sprintf("expected ',' or '%c', found %s", closing, j.foundHere())
	switch rest[0] {
	case '"', '{', '[':
		j.fail(CodeJSONSyntax, j.pos, message, "put a comma between this and what stands before it")
	case '}', ']':
		j.fail(CodeJSONSyntax, j.pos, message, fmt.Sprintf("close the %s that begins on line %d with '%c'", n.Kind, n.Line, closing))
	default:
		if n.Kind == Object && len(n.Members) > 0 && n.Members[len(n.Members)-1].Value.Kind == String {
			j.fail(CodeJSONSyntax, j.pos, message, `put a comma here; a double quote inside a string is written \"`)
		}
		j.fail(CodeJSONSyntax, j.pos, message, "put a comma here, or close the "+n.Kind.String())
	}
}

// trailing reports what follows the document.
func (j *jsonReader) trailing() {
	fix := "remove it: a file holds one definition"
	if c := j.text[j.pos]; c == '}' || c == ']' {
		fix = "remove the bracket, or look for one that closes too early above"
	}
	j.path = nil
	j.fail(CodeJSONSyntax, j.pos, "there is more after the end of the document: "+j.foundHere(), fix)
}
