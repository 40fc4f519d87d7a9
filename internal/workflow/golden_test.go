package workflow_test

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// TestGolden compares the diagnostics of every document in testdata with the golden files.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, file := range sampleFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := formatVerdict(filepath.Base(file), data)
			golden := file + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// sampleFiles returns the documents in testdata.
func sampleFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"testdata/*.json", "testdata/*.yaml", "testdata/*.yml"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	return files
}

// formatVerdict returns the diagnostics of a document, and its ID if it loads.
func formatVerdict(file string, data []byte) string {
	var b strings.Builder
	d, found := workflow.CheckAs(file, data, workflow.As{})
	if d != nil {
		b.WriteString("loads: " + d.ID + " " + d.Version + "\n")
	}
	for _, finding := range found {
		b.WriteString(finding.String() + "\n")
	}
	return b.String()
}

// TestGoldenCoversEveryCode checks that every diagnostic code has a sample.
func TestGoldenCoversEveryCode(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, file := range sampleFiles(t) {
		golden, err := os.ReadFile(file + ".golden")
		if err != nil {
			t.Fatal(err)
		}
		all.Write(golden)
	}
	for _, source := range []string{"doc/parse.go", "shape/report.go", "rules/read.go", "steps/parse.go", "steps/lint.go", "phases/structure.go", "phases/lint.go", "../hooks/definition/graph.go", "../hooks/definition/lint.go"} {
		for _, code := range codesOf(t, source) {
			// Other tests cover these codes, which need a file above the size limit, a
			// layout with guides, or a library of modules.
			if code != "file-too-large" && code != "guide-unknown" && code != "module-unknown" && !strings.Contains(all.String(), "["+code+"]") {
				t.Errorf("no sample in testdata has a diagnostic [%s]", code)
			}
		}
	}
}

// codesOf returns the constants of a source file whose names start with Code.
func codesOf(t *testing.T, source string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), source, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(spec.Names[0].Name, "Code") {
			return true
		}
		if literal, ok := spec.Values[0].(*ast.BasicLit); ok {
			found = append(found, strings.Trim(literal.Value, `"`))
		}
		return true
	})
	if len(found) == 0 {
		t.Errorf("%s has no codes", source)
	}
	return found
}

// TestDiagnosticsAreComplete checks that every diagnostic has a position, a code, a message
// and a fix.
func TestDiagnosticsAreComplete(t *testing.T) {
	t.Parallel()
	for _, file := range sampleFiles(t) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d, found := workflow.CheckAs(file, data, workflow.As{})
		for _, f := range found {
			whole := f.Code == "file-empty" || f.Code == "file-encoding" || f.Code == "yaml-syntax"
			if f.File != file || f.Code == "" || f.Message == "" || f.Fix == "" || f.Line == 0 && !whole {
				t.Errorf("incomplete diagnostic: %+v", f)
			}
			if isError := f.Severity == guideway.SeverityError; isError != (d == nil) && !isLateError(f) {
				t.Errorf("diagnostic with the wrong severity: %+v", f)
			}
		}
	}
}

// isLateError reports whether the linter can report the diagnostic as an error in a
// document that loads. No run of such a document starts.
func isLateError(f guideway.Diagnostic) bool {
	switch f.Code {
	case "criterion-pattern-invalid", "criterion-schema-invalid", "validate-never", "loop-over-type", "phase-stuck", "phase-cycle", "loop-server-variable",
		"condition-operators", "condition-empty":
		return f.Severity == guideway.SeverityError
	default:
		return false
	}
}
