package guideway

import (
	"fmt"
	"strings"
)

// String returns the diagnostic in the form of compilers, with the fix on a separate line:
//
//	flow.json:3:9: error: Field 'id' at root level is empty. [text-length] (/id)
//	  fix: write it
//
// Unknown parts are omitted.
func (d Diagnostic) String() string {
	var b strings.Builder
	if d.File != "" {
		b.WriteString(d.File + ":")
	}
	if d.Line > 0 {
		fmt.Fprintf(&b, "%d:", d.Line)
		if d.Column > 0 {
			fmt.Fprintf(&b, "%d:", d.Column)
		}
	}
	if b.Len() > 0 {
		b.WriteByte(' ')
	}
	if d.Severity != "" {
		b.WriteString(string(d.Severity) + ": ")
	}
	b.WriteString(d.Message)
	if d.Code != "" {
		b.WriteString(" [" + d.Code + "]")
	}
	if d.Pointer != "" {
		b.WriteString(" (" + d.Pointer + ")")
	}
	if d.Fix != "" {
		b.WriteString("\n  fix: " + strings.ReplaceAll(d.Fix, "\n", "\n       "))
	}
	return b.String()
}
