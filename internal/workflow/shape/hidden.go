package shape

import (
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

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
