package shape

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// Describe says what a value is: "the number 1.0", "a list".
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
		return "the text " + Quote(n.Text)
	case doc.Array:
		return "a list"
	default:
		return "an object"
	}
}

// plainText is a scalar as the document writes it.
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

// Quote puts a text in single quotes, cut short.
func Quote(text string) string {
	const limit = 60
	if utf8.RuneCountInString(text) > limit {
		text = string([]rune(text)[:limit]) + "..."
	}
	return "'" + strings.ReplaceAll(text, "\n", `\n`) + "'"
}

// Quoted writes names for a sentence, each in quotes: 'a', 'b' or 'c'.
func Quoted(names []string) string { return List(inQuotes(names)) }

// QuotedAll is Quoted with an and.
func QuotedAll(names []string) string { return joined(inQuotes(names), " and ") }

func inQuotes(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = "'" + name + "'"
	}
	return out
}

// List joins names for a sentence: a, b or c.
func List(names []string) string { return joined(names, " or ") }

func joined(names []string, last string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + last + names[len(names)-1]
}

// WithArticle puts an article before a type.
func WithArticle(kind string) string {
	if kind == "array" || kind == "object" {
		return "an " + kind
	}
	return "a " + kind
}

// Capital makes the first letter a capital.
func Capital(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

// characters counts them in words.
func characters(n int) string {
	if n == 1 {
		return "1 character"
	}
	return fmt.Sprintf("%d characters", n)
}

// typeFix says how to mend a wrong type.
func typeFix(at Place, want string) string {
	if want == "a string" && (at.Node.Kind == doc.Number || at.Node.Kind == doc.Bool) {
		return fmt.Sprintf("put it in quotes: %q", plainText(at.Node))
	}
	if want == "a list of texts" && at.Node.Kind == doc.String {
		return "put it in brackets: [\"...\"]"
	}
	if at.Node.Kind == doc.String && unquoted(at.Node.Text, want) {
		return "leave out the quotes"
	}
	return "replace it with " + want
}

// unquoted says whether a text without its quotes is what is wanted.
func unquoted(text, want string) bool {
	if strings.HasPrefix(want, "true") {
		return text == "true" || text == "false"
	}
	_, err := strconv.ParseFloat(text, 64)
	return want == "a number" && err == nil
}
