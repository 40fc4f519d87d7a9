package shape

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Describe describes a value: "the number 1.0", "a list".
func Describe(n *doc.Node) string {
	if n == nil {
		return "nothing"
	}
	switch n.Kind {
	case doc.Null:
		return "null"
	case doc.Bool, doc.Number:
		return "the " + n.Kind.String() + " " + plainText(n)
	case doc.String:
		return "the string " + Quote(n.Text)
	case doc.Array:
		return "a list"
	default:
		return "an object"
	}
}

// plainText returns a scalar as written in the document.
func plainText(n *doc.Node) string {
	switch {
	case n.Kind == doc.Bool && n.Flag:
		return "true"
	case n.Kind == doc.Bool:
		return "false"
	default:
		return n.Text
	}
}

// Quote returns a text in single quotes, truncated.
func Quote(text string) string {
	const limit = 60
	if utf8.RuneCountInString(text) > limit {
		text = string([]rune(text)[:limit]) + "..."
	}
	return "'" + strings.ReplaceAll(text, "\n", `\n`) + "'"
}

// Quoted joins names in quotes: 'a', 'b' or 'c'.
func Quoted(names []string) string { return List(quoteAll(names)) }

// QuotedAll joins names in quotes: 'a', 'b' and 'c'.
func QuotedAll(names []string) string { return joinNames(quoteAll(names), " and ") }

func quoteAll(names []string) []string {
	return lists.Map(names, func(name string) string { return "'" + name + "'" })
}

// List joins names: a, b or c.
func List(names []string) string { return joinNames(names, " or ") }

func joinNames(names []string, last string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}

// WithArticle adds an indefinite article to the name of a type.
func WithArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// Capital capitalizes the first letter.
func Capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// CapitalWhere turns the text for a location, "in step 2", into the subject of a sentence.
func CapitalWhere(where string) string {
	if rest, ok := strings.CutPrefix(where, "in "); ok && rest != "" {
		return Capital(rest)
	}
	return where
}

// IsIdentifier reports whether the text consists of ASCII letters, digits and underscores,
// and does not start with a digit.
func IsIdentifier(text string) bool {
	for i := 0; i < len(text); i++ {
		c := text[i]
		letter := c == '_' || c|0x20 >= 'a' && c|0x20 <= 'z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}

// SimilarVersion returns the valid version that an invalid one probably means, or "".
func SimilarVersion(text string, isVersion func(string) bool) string {
	text = strings.TrimLeft(text, "vV=")
	for _, better := range []string{text, text + ".0", text + ".0.0"} {
		if isVersion(better) {
			return better
		}
	}
	return ""
}

// Count returns a number with its noun, such as "1 round" or "2 rounds".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// typeFix returns the fix for a wrong type.
func typeFix(at Place, want string) string {
	if want == "a string" && (at.Node.Kind == doc.Number || at.Node.Kind == doc.Bool) {
		return fmt.Sprintf("put the value in quotes: %q", plainText(at.Node))
	}
	if want == "a list of strings" && at.Node.Kind == doc.String {
		return "put the string in brackets: [\"...\"]"
	}
	if at.Node.Kind == doc.String && fitsUnquoted(at.Node.Text, want) {
		return "remove the quotes"
	}
	return "replace the value with " + want
}

// fitsUnquoted reports whether a text without its quotes has the wanted type.
func fitsUnquoted(text, want string) bool {
	if strings.HasPrefix(want, "true") {
		return text == "true" || text == "false"
	}
	_, err := strconv.ParseFloat(text, 64)
	return want == "a number" && err == nil
}

// CodeHidden reports a text with a character that a reviewer does not see.
const CodeHidden = "hidden-character"

// scriptMember is the member of a hook or a module that contains its script.
const scriptMember = "script"

// LintHidden reports each text and member name of a document with a character that a
// reviewer does not see, because an agent or an engine reads it. Some variation selectors
// and joiners are allowed in prose, but not in a script.
func (r *Report) LintHidden(at Place) {
	switch n := at.Node; {
	case n == nil:
	case n.Kind == doc.String:
		find := visible.FindHiddenInProse
		if at.Name == scriptMember {
			find = visible.FindHidden
		}
		r.reportHidden(at, "text", n.Text, find)
	case n.Kind == doc.Array:
		for i := range n.Items {
			r.LintHidden(at.Index(i))
		}
	case n.Kind == doc.Object:
		for i := range n.Members {
			member := at.Member(i)
			r.reportHidden(member, "name", member.Name, visible.FindHiddenInProse)
			member.setNode(member.Node)
			r.LintHidden(member)
		}
	}
}

// reportHidden reports the first hidden character of a text.
func (r *Report) reportHidden(at Place, what, text string, find func(string) (char rune, line, column int, ok bool)) {
	char, line, _, ok := find(text)
	if !ok {
		return
	}
	where := ""
	if strings.Contains(text, "\n") {
		where = fmt.Sprintf(" on line %d", line)
	}
	r.Warnf(at, CodeHidden, hiddenFix(char), "The %s of '%s' has the character U+%04X%s, which a reviewer cannot see.", what, at.Name, char, where)
}

// HiddenCharacter returns the diagnostic for a script with a character that a reviewer does
// not see, or nil. A line separator, for example, ends a comment, but a terminal shows the
// code after it as a part of the comment.
func HiddenCharacter(file, script string) *guideway.Diagnostic {
	char, line, column, ok := visible.FindHidden(script)
	if !ok {
		return nil
	}
	return &guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: CodeHidden, File: file, Line: line, Column: column,
		Message: fmt.Sprintf("The script has the character U+%04X, which a reviewer cannot see.", char), Fix: hiddenFix(char),
	}
}

func hiddenFix(char rune) string {
	if char == '\r' {
		return "end lines with a line feed, or with a carriage return and a line feed"
	}
	return fmt.Sprintf(`remove the character; in a script, write it in a string as \u{%X}`, char)
}
