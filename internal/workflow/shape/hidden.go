package shape

import (
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/visible"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// CodeHidden reports a text with a character that a reviewer does not see.
const CodeHidden = "hidden-character"

// LintHidden reports each text and member name of a document with a character that a
// reviewer does not see, because an agent or an engine reads it.
func (r *Report) LintHidden(at Place) {
	switch n := at.Node; {
	case n == nil:
	case n.Kind == doc.String:
		r.reportHidden(at, "text", n.Text)
	case n.Kind == doc.Array:
		for i := range n.Items {
			r.LintHidden(at.Index(i))
		}
	case n.Kind == doc.Object:
		for i := range n.Members {
			member := at.Member(i)
			r.reportHidden(member, "name", member.Name)
			member.setNode(member.Node)
			r.LintHidden(member)
		}
	}
}

// reportHidden reports the first hidden character of a text.
func (r *Report) reportHidden(at Place, what, text string) {
	char, line, _, ok := visible.FindHidden(withoutJoiners(text))
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

// withoutJoiners returns a text without the joiners between two visible characters outside
// ASCII, where they form a letter or an emoji.
func withoutJoiners(text string) string {
	isJoiner := func(r rune) bool { return r == '\u200c' || r == '\u200d' }
	if !strings.ContainsFunc(text, isJoiner) {
		return text
	}
	runes := []rune(text)
	joins := func(i int) bool { return i >= 0 && i < len(runes) && runes[i] > 0x7F && !visible.IsHidden(runes[i]) }
	kept := slices.Clone(runes[:0])
	for i, r := range runes {
		if !isJoiner(r) || !joins(i-1) || !joins(i+1) {
			kept = append(kept, r)
		}
	}
	return string(kept)
}
