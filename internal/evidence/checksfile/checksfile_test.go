package checksfile_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/shape/shapetest"
)

// writeFiles writes files below a new directory and returns it.
func writeFiles(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		writeFile(t, root, name, text)
	}
	return root
}

func writeFile(t *testing.T, root, name, text string) {
	t.Helper()
	at := filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// parse parses a checks file that must have no diagnostics.
func parse(t *testing.T, text string) *checksfile.File {
	t.Helper()
	f := checksfile.Parse("checks.yaml", []byte(text))
	if len(f.Diagnostics) > 0 {
		t.Fatal(f.Diagnostics)
	}
	return f
}

// All fields of a check are read.
func TestParse(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	f := parse(t, string(text))
	if diff := cmp.Diff([]string{"test", "lint-2", "protected-tests"}, f.Names()); diff != "" {
		t.Fatal(diff)
	}
	all, two := "./...", 2
	c := f.Checks[0]
	want := criteria.CheckRule{
		Type: criteria.Command, Argv: []string{"go", "test", "{{package}}", "-run={{name}}", "{{.Dir}}"}, Dir: "sub/dir", Env: []string{"GOFLAGS", "_X1"},
		Timeout: "1m30s", ExitCode: &two, Matches: "^ok", Excludes: "no test files",
	}
	if diff := cmp.Diff(want, c.Command); diff != "" {
		t.Error(diff)
	}
	parameters := []checksfile.Parameter{{Name: "package", Description: "the package", Default: &all, Pattern: "[./A-Za-z0-9_-]+"}, {Name: "name"}}
	if diff := cmp.Diff(parameters, c.Parameters); diff != "" {
		t.Error(diff)
	}
	if c.Line != 4 || c.Description != "run the tests" || !c.CacheTree || !c.Sandbox || !c.Network || !slices.Equal(c.Files, []string{"Makefile", "scripts/test.sh"}) {
		t.Errorf("%+v", c)
	}
	protected := criteria.CheckRule{Type: criteria.Protect, Paths: []string{"**/*_test.go"}, AllowNew: true}
	if diff := cmp.Diff(protected, f.Checks[2].Command); diff != "" {
		t.Error(diff)
	}
}

// Every error is reported at once, with its line, its JSON pointer and a fix. The other
// checks of the file remain usable.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	const file = `checks:
  good: {argv: [make]}
  shell: {argv: make test}
  Bad_Name: {argv: [x]}
  fields: {argv: [x], timeot: 5m, cache: commit, sandbox: "true", exitCode: 256}
  paths: {argv: [x], dir: ../x, files: [/etc/passwd, "a\\b"]}
  env: {argv: [x], env: [GOFLAGS=-v]}
  time: {argv: [x], timeout: 2h}
  time2: {argv: [x], timeout: soon}
  none: {}
  empty: {argv: []}
  program: {argv: ["{{tool}}"], parameters: {tool: {}}}
  typo: {argv: [x, "{{packag}}"], parameters: {package: {}}}
  default: {argv: [x, "{{p}}"], parameters: {p: {default: -x}}}
  default2: {argv: [x, "{{p}}"], parameters: {p: {default: B, pattern: "[a-z]"}}}
  regexp: {argv: [x], matches: "("}
  twice: {argv: [x]}
  twice: {argv: [y]}
  "no/slash": {argv: [x]}
  script: {argv: [sh, -c, "go test {{p}}"], parameters: {p: {}}}
  option: {argv: [x, "--{{p}}"], parameters: {p: {}}}
  caller: {argv: [find, ., -name, "{{p}}"], parameters: {p: {}}}
chekcs: {}
`
	f := checksfile.Parse("checks.yaml", []byte(file))
	var got []string
	for _, d := range f.Diagnostics {
		if d.Fix == "" || d.Line == 0 || d.File == "" {
			t.Errorf("incomplete: %v", d)
		}
		got = append(got, fmt.Sprintf("%d %s %s | %s", d.Line, d.Pointer, d.Code, d.Fix))
	}
	want := []string{
		`3 /checks/shell/argv field-type | write the command as a list: ["make", "test"]`,
		`4 /checks/Bad_Name check-name | use lower-case letters, digits and hyphens, and begin with a letter`,
		`5 /checks/fields/timeot field-unknown | did you mean 'timeout'?`,
		`5 /checks/fields/cache value-unknown | write one of: tree`,
		`5 /checks/fields/sandbox field-type | remove the quotes`,
		`5 /checks/fields/exitCode number-bounds | write the expected exit code; 0 is success`,
		`6 /checks/paths/dir check-path | use a relative path without ..`,
		`6 /checks/paths/files/0 check-path | use a relative path without ..`,
		`6 /checks/paths/files/1 check-path | use a relative path with slashes and without colons`,
		`7 /checks/env/env/0 text-pattern | write only the name, "GOFLAGS"; the value is that of the Guideway process`,
		`8 /checks/time/timeout check-timeout | write a duration such as "90s" or "5m"`,
		`9 /checks/time2/timeout text-pattern | write a duration such as "90s" or "5m"`,
		`10 /checks/none field-missing | add "argv": ["go", "test", "./..."]`,
		`11 /checks/empty/argv list-empty | name the program and its arguments`,
		`12 /checks/program/argv/0 check-placeholder | name the program, and pass values only as its arguments`,
		`13 /checks/typo/argv/1 check-placeholder | did you mean 'package'?`,
		`13 /checks/typo/parameters/package check-parameter-unused | use {{package}} in an argument, or remove the parameter`,
		`14 /checks/default/parameters/p/default check-default | pass a value without a leading hyphen`,
		`15 /checks/default2/parameters/p/default check-default | pass a value that matches [a-z]`,
		`16 /checks/regexp/matches check-pattern | correct the pattern; it is a JavaScript regular expression`,
		`18 /checks/twice key-duplicate | keep one of the two members`,
		`19 /checks/no~1slash check-name | use lower-case letters, digits and hyphens, and begin with a letter`,
		`20 /checks/script/argv/2 check-placeholder | write the script out, and pass the value as an argument of the script`,
		`21 /checks/option/argv/1 check-placeholder | write the name of the option out, such as --run={{name}}`,
		`22 /checks/caller/argv/3 check-placeholder | call a script that takes the variable as an argument, such as ["sh", "find.sh", "{{name}}"]`,
		`23 /chekcs field-unknown | did you mean 'checks'?`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"good"}, f.Names()); diff != "" {
		t.Errorf("usable checks: %s", diff)
	}
	for _, name := range []string{"twice", "none", "shell"} {
		if c, err := f.Find(name); c != nil || guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || guideway.ErrorFix(err) == "" {
			t.Errorf("Find(%s) returns %v, %v; a check with errors must not count as undefined", name, c, err)
		}
	}
	if c, err := f.Find("unknown"); c != nil || err != nil {
		t.Errorf("an undefined check: %v, %v", c, err)
	}
}

// In a file whose checks are unknown, no check counts as undefined, because then a broken
// file would turn evidence into a claim.
func TestUnreadableFile(t *testing.T) {
	t.Parallel()
	huge := "checks:\n  a: {argv: [x]}\n" + strings.Repeat("# padding\n", 30_000)
	for name, text := range map[string]string{
		"empty": "", "syntax": "checks: [", "a list": "- x", "no checks": "{}", "checks as a list": "checks: [x]", "checks twice": "checks: {a: {argv: [x]}}\nchecks: {}",
		"huge": huge, "NUL": "checks: {a: {argv: [x]}}\x00", "many": "checks:\n" + manyChecks(101), "merge": "checks: {<<: {a: {argv: [x]}}}",
	} {
		f := checksfile.Load(writeFiles(t, map[string]string{checksfile.Path: text}))
		if !f.Exists || len(f.Diagnostics) == 0 || len(f.Checks) > 0 {
			t.Errorf("%s: %+v", name, f)
		}
		if name == "merge" {
			continue // only a check named << is affected
		}
		if c, err := f.Find("a"); c != nil || guideway.ErrorCode(err) != guideway.CodeInvalidDefinition {
			t.Errorf("%s: Find returns %v, %v", name, c, err)
		}
	}
}

func manyChecks(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  a%d: {argv: [x]}\n", i)
	}
	return b.String()
}

// A checks file outside the workspace, or one that is not a regular file, is refused. A link
// inside the workspace is allowed.
func TestLinkedFile(t *testing.T) {
	t.Parallel()
	outside := writeFiles(t, map[string]string{"checks.yaml": "checks: {a: {argv: [x]}}"})
	for name, link := range map[string]func(root string) error{
		"file": func(root string) error {
			return os.Symlink(filepath.Join(outside, "checks.yaml"), filepath.Join(root, checksfile.Path))
		},
		"relative": func(root string) error {
			return os.Symlink("../../x/checks.yaml", filepath.Join(root, checksfile.Path))
		},
		"missing":   func(root string) error { return os.Symlink("none.yaml", filepath.Join(root, checksfile.Path)) },
		"directory": func(root string) error { return os.Mkdir(filepath.Join(root, checksfile.Path), 0o700) },
		"parent": func(root string) error {
			if err := os.Remove(filepath.Join(root, ".guideway")); err != nil {
				return err
			}
			return os.Symlink(outside, filepath.Join(root, ".guideway"))
		},
	} {
		root := t.TempDir()
		if err := os.Mkdir(filepath.Join(root, ".guideway"), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := link(root); err != nil {
			t.Fatal(err)
		}
		f := checksfile.Load(root)
		c, err := f.Find("a")
		if c != nil || guideway.ErrorCode(err) != guideway.CodeInvalidDefinition || len(f.Diagnostics) != 1 || f.Diagnostics[0].Code != checksfile.CodeUnreadable {
			t.Errorf("%s: Find returns %v, %v with %v", name, c, err, f.Diagnostics)
		}
	}
	root := writeFiles(t, map[string]string{".guideway/x": "", "real.yaml": "checks: {a: {argv: [x]}}"})
	if err := os.Symlink("../real.yaml", filepath.Join(root, checksfile.Path)); err != nil {
		t.Fatal(err)
	}
	if c, err := checksfile.Load(root).Find("a"); c == nil || err != nil {
		t.Errorf("a link inside the workspace: %v, %v", c, err)
	}
	if f := checksfile.Load(t.TempDir()); f.Exists || len(f.Diagnostics) > 0 {
		t.Errorf("without a file: %+v", f)
	}
}

// A name that the file does not define is reported with a fix.
func TestGet(t *testing.T) {
	t.Parallel()
	f := parse(t, "checks: {test: {argv: [x]}, lint: {argv: [x]}}")
	for name, fix := range map[string]string{"tset": "did you mean test?", "zzz": "use one of: test, lint"} {
		if _, err := f.Get(name); guideway.ErrorCode(err) != guideway.CodeNotFound || guideway.ErrorFix(err) != fix {
			t.Errorf("%s: %v, fix %q", name, err, guideway.ErrorFix(err))
		}
	}
	if _, err := checksfile.Load(t.TempDir()).Get("test"); guideway.ErrorFix(err) != "guideway init" {
		t.Errorf("without a file: %v", err)
	}
	if c, err := f.Get("lint"); err != nil || c.Name != "lint" {
		t.Error(c, err)
	}
}

// The value of a parameter is a single argument and only data: it cannot be an option, add
// a line or violate its pattern.
func TestFillParameters(t *testing.T) {
	t.Parallel()
	f := parse(t, `checks:
  test:
    argv: [go, test, "{{package}}", "-run={{name}}", "{{package}}{{name}}", "{{.Dir}}"]
    parameters: {package: {default: "./...", pattern: "[./a-z]+|x y"}, name: {}}
`)
	c := &f.Checks[0]
	fill := func(with map[string]string) ([]string, error) {
		rule, err := c.FillParameters(with)
		if err != nil {
			return nil, err
		}
		return rule.Argv, nil
	}
	const hostile = `x; rm -rf / $(id) "{{package}}" ' | tee`
	got, err := fill(map[string]string{"name": hostile})
	if diff := cmp.Diff([]string{"go", "test", "./...", "-run=" + hostile, "./..." + hostile, "{{.Dir}}"}, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if got, err := fill(map[string]string{"name": "", "package": "x y"}); err != nil || got[2] != "x y" || got[3] != "-run=" {
		t.Errorf("%q, %v", got, err)
	}
	for name, with := range map[string]map[string]string{
		"no value": {}, "option": {"name": "-exec=sh"}, "long option": {"name": "--x"}, "line break": {"name": "a\nb"}, "carriage return": {"name": "a\r"},
		"NUL": {"name": "a\x00"}, "escape": {"name": "\x1b[2J"}, "line separator": {"name": "a\u2028b"}, "invalid": {"name": "\xff"}, "long": {"name": strings.Repeat("x", 1001)},
		"pattern": {"name": "x", "package": "A"}, "part of a pattern": {"name": "x", "package": "a;b"}, "pattern with alternatives": {"name": "x", "package": "x yz"},
		"unknown": {"name": "x", "nam": "x"},
	} {
		if got, err := fill(with); guideway.ErrorCode(err) != guideway.CodeInvalid || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if diff := cmp.Diff("{{package}}", c.Command.Argv[2]); diff != "" {
		t.Errorf("the check was changed: %s", diff)
	}
}

// The parser and the published schema agree on valid files and on thousands of mutated ones.
func TestAgreement(t *testing.T) {
	t.Parallel()
	a := &shapetest.Agreement{
		Schema: shapetest.Compile(t, checksfile.Schema()),
		Parse: func(root *doc.Node) []guideway.Diagnostic {
			return checksfile.Parse("x.json", doc.Canonical(root)).Diagnostics
		},
		Beyond: func(code string) bool {
			return slices.Contains([]string{
				checksfile.CodePath, checksfile.CodeTimeout, checksfile.CodePatternText, checksfile.CodePlaceholder, checksfile.CodeUnused,
				checksfile.CodeDefault, checksfile.CodeNetwork, shape.CodeHidden, doc.CodeDuplicateKey,
			}, code)
		},
		Values: append(shapetest.Numbers(255, 256), shapetest.Texts(
			"", "x", "tree", "5m", "1h30m", "5", "-5m", "A=b", "a b", "é", strings.Repeat("é", 500), strings.Repeat("é", 501), strings.Repeat("x", 1001), strings.Repeat("x", 4097), "(", "-x",
		)...),
		Keys:  []string{"extra", "argv", "env", "Bad", "a_b", "checks"},
		Value: &doc.Node{Kind: doc.String, Text: "x"},
	}
	a.Check(t, shapetest.Load(t, "testdata/full.yaml"), 2000)
	shapetest.Explained(t, checksfile.Schema())
}
