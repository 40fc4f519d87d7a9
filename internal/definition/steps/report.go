package steps

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// place is a value and how to speak of where it stands.
type place struct {
	node *doc.Node
	// line and column are the value's, or the object's where the value is
	// missing.
	line, column int
	// ptr leads here, by last in the end if it is keyed: most places are passed
	// without a need for the whole pointer.
	ptr   doc.Pointer
	last  string
	keyed bool
	// name is the member's key or the list it is in, such as "prompt".
	name string
	// where ends a sentence: "at root level", "in step 2 ('plan')".
	where string
}

// key goes to a member of the object at p; its node is nil if it is missing.
func (p place) key(key string) place {
	to := place{line: p.line, column: p.column, ptr: p.pointer(), last: key, keyed: true, name: key, where: p.where}
	to.at(p.node.Get(key))
	return to
}

// index goes to an element of the array at p; its node is nil if it is missing.
func (p place) index(i int) place {
	to := place{line: p.line, column: p.column, ptr: p.pointer().Index(i), name: p.name + "[" + strconv.Itoa(i) + "]", where: p.where}
	if p.node != nil && i < len(p.node.Items) {
		to.at(p.node.Items[i])
	}
	return to
}

// pointer is the JSON pointer to the place.
func (p place) pointer() doc.Pointer {
	if p.keyed {
		return p.ptr.Key(p.last)
	}
	return p.ptr
}

// in is the same place with other words for where it stands.
func (p place) in(where string) place {
	p.where = where
	return p
}

// at points p at a node.
func (p *place) at(node *doc.Node) {
	if node != nil {
		p.node, p.line, p.column = node, node.Line, node.Column
	}
}

// parser collects the findings of one document.
type parser struct {
	file  string
	found []guideway.Diagnostic
	// dropped counts the findings beyond maxFindings.
	dropped int
	// canonical is the document as doc.Mark gave it.
	canonical string
	// judged are the criteria that were read.
	judged []judged
}

// maxFindings bounds what is said of one document: nobody reads more, and a
// hostile one could make as many as it has values.
const maxFindings = 100

// full says that no more findings are kept.
func (p *parser) full() bool { return len(p.found) >= maxFindings }

// findings are those collected, in the order of the document.
func (p *parser) findings(severity guideway.Severity) []guideway.Diagnostic {
	doc.Sort(p.found)
	if p.dropped == 0 {
		return p.found
	}
	last := p.found[len(p.found)-1]
	return append(p.found, guideway.Diagnostic{
		Severity: severity, Code: CodeMore, File: p.file, Line: last.Line, Column: last.Column,
		Message: fmt.Sprintf("There are %d more findings.", p.dropped), Fix: "mend those above first",
	})
}

// errorf reports what keeps the definition from loading.
func (p *parser) errorf(at place, code, fix, format string, args ...any) {
	p.add(guideway.SeverityError, at, code, fix, format, args...)
}

// add reports a finding at a place.
func (p *parser) add(severity guideway.Severity, at place, code, fix, format string, args ...any) {
	if p.full() {
		p.dropped++
		return
	}
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	p.found = append(p.found, guideway.Diagnostic{
		Severity: severity, Code: code, File: p.file,
		Line: at.line, Column: at.column, Pointer: string(at.pointer()),
		Message: message, Fix: fix,
	})
}

// wrongType reports a value of another kind than wanted.
func (p *parser) wrongType(at place, want string) {
	p.errorf(at, CodeType, typeFix(at, want), "Field '%s' %s must be %s, but it is %s.", at.name, at.where, want, describe(at.node))
}

// typeFix says how to mend a wrong type.
func typeFix(at place, want string) string {
	if want == "a string" && (at.node.Kind == doc.Number || at.node.Kind == doc.Bool) {
		return fmt.Sprintf("put it in quotes: %q", plainText(at.node))
	}
	if want == "a list of texts" && at.node.Kind == doc.String {
		return "put it in brackets: [\"...\"]"
	}
	if at.node.Kind == doc.String && unquoted(at.node.Text, want) {
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

// describe says what a value is: "the number 1.0", "a list".
func describe(n *doc.Node) string {
	switch n.Kind {
	case doc.Null:
		return "null"
	case doc.Bool, doc.Number:
		return "the " + n.Kind.String() + " " + plainText(n)
	case doc.String:
		return "the text " + quote(n.Text)
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

// quote puts a text in single quotes, cut short.
func quote(text string) string {
	const limit = 60
	if utf8.RuneCountInString(text) > limit {
		text = string([]rune(text)[:limit]) + "..."
	}
	return "'" + strings.ReplaceAll(text, "\n", `\n`) + "'"
}

// list joins names for a sentence: a, b or c.
func list(names []string) string {
	switch len(names) {
	case 0:
		return "none"
	case 1:
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}
