package guideway_test

import (
	"testing"

	"github.com/guideway-dev/guideway"
)

func TestDiagnosticString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		in   guideway.Diagnostic
		want string
	}{
		{"all", guideway.Diagnostic{
			Severity: guideway.SeverityError, Code: "text-length", File: "a.json", Line: 3, Column: 9,
			Pointer: "/id", Message: "too short", Fix: "write more",
		}, "a.json:3:9: error: too short [text-length] (/id)\n  fix: write more"},
		{"a file as a whole", guideway.Diagnostic{
			Severity: guideway.SeverityError, Code: "file-empty", File: "a.json", Message: "the file is empty",
		}, "a.json: error: the file is empty [file-empty]"},
		{"no file", guideway.Diagnostic{Severity: guideway.SeverityWarning, Line: 2, Message: "look"}, "2: warning: look"},
		{"message alone", guideway.Diagnostic{Message: "look"}, "look"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got := c.in.String(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
