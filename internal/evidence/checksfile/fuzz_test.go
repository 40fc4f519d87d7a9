package checksfile_test

import (
	"os"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// FuzzParse checks that no text makes the parser panic, that every diagnostic has a fix, and
// that a usable check has a command or protects files.
func FuzzParse(f *testing.F) {
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte("checks: {a: {argv: [x, '{{b}}'], parameters: {b: {default: '-'}}}, a: {}}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file := checksfile.Parse("checks.yaml", text)
		for _, d := range file.Diagnostics {
			if d.Message == "" || d.Fix == "" || d.Code == "" {
				t.Fatalf("incomplete diagnostic %+v", d)
			}
		}
		for i := range file.Checks {
			c := &file.Checks[i]
			isProtect := c.Command.Type == criteria.Protect
			if !criteria.IsCheckName(c.Name) || slices.Contains(file.Broken, c.Name) || isProtect != (len(c.Command.Argv) == 0) || isProtect && len(c.Command.Paths) == 0 {
				t.Fatalf("unusable check %+v", c)
			}
			if rule, err := c.FillParameters(nil); err == nil && !isProtect && rule.Argv[0] != c.Command.Argv[0] {
				t.Fatalf("a parameter changed the program of %+v", c)
			}
		}
	})
}
