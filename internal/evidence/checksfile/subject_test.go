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
	"github.com/guideway-dev/guideway/internal/hooks/approval"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// newSubject returns the subject of a check of a workspace.
func newSubject(t *testing.T, root, name string) *checksfile.Subject {
	t.Helper()
	c, err := checksfile.Load(root).Get(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := checksfile.NewSubject(root, c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// approve returns the records after the approval of subjects.
func approve(t *testing.T, subjects ...*checksfile.Subject) approval.Records {
	t.Helper()
	var records approval.Records
	for _, s := range subjects {
		r, err := s.Record("me")
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, r)
	}
	return records
}

func filePaths(s *checksfile.Subject) []string {
	var names []string
	for _, f := range s.Files {
		names = append(names, f.Path)
	}
	return names
}

// A change of the check or of a file that defines its command needs a new approval, and the
// review shows the difference. A change of any other file needs none.
func TestChangesAskAgain(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		checksfile.Path: "checks:\n  make: {argv: [make, test]}\n  npm: {argv: [npm, test]}\n  script: {argv: [bash, scripts/run.sh, x]}\n" +
			"  listed: {argv: [mytool], files: [tool.cfg, none.cfg]}\n  pytest: {argv: [python3, -m, pytest]}\n  cargo: {argv: [cargo, test]}\n",
		"Makefile":         "SCRIPT = tools/check.sh\ninclude common.mk\ntest: deps\n\t@bash $(SCRIPT)\nother:\n\tbash tools/other.sh\n",
		"common.mk":        "deps:\n\t./tools/deps\n",
		"tools/check.sh":   "exit 1\n",
		"tools/other.sh":   "exit 1\n",
		"tools/deps":       "#!/bin/sh\n",
		"package.json":     `{"name": "a", "version": "1.0.0", "scripts": {"test": "npm run unit && echo ok", "unit": "node test/run.js", "start": "node src/main.js"}, "dependencies": {"x": "1"}, "jest": {}}`,
		"test/run.js":      "run()\n",
		"src/main.js":      "main()\n",
		"scripts/run.sh":   "go test ./...\n",
		"tool.cfg":         "strict = true\n",
		"pyproject.toml":   "[project]\nname = 'a'\nversion = '1'\n[tool.pytest.ini_options]\naddopts = '-q'\n",
		"Cargo.toml":       "[package]\nname = 'a'\nversion = '1.0.0'\nedition = '2024'\n[dependencies]\nserde = '1'\n",
		"other.txt":        "x\n",
		".npmrc":           "fund=false\n",
		"src/package.json": "{}",
	}
	root := writeFiles(t, files)
	for name, want := range map[string][]string{
		"make": {"Makefile", "common.mk", "tools/check.sh", "tools/deps"}, "npm": {".npmrc", "package.json", "test/run.js"},
		"script": {"scripts/run.sh"}, "listed": {"none.cfg", "tool.cfg"}, "pytest": {"pyproject.toml"}, "cargo": {"Cargo.toml"},
	} {
		if diff := cmp.Diff(want, filePaths(newSubject(t, root, name))); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	for _, tt := range []struct{ check, file, before, after, shown string }{
		{"make", checksfile.Path, "[make, test]", "[make, -k, test]", `+command:      ["make","-k","test"]`},
		{"make", "Makefile", "@bash $(SCRIPT)", "@true", "+  | \t@true"},
		{"make", "Makefile", "SCRIPT = tools", "SCRIPT = none", "+  | SCRIPT = none/check.sh"},
		{"make", "GNUmakefile", "", "test:\n\ttrue\n", "+file:         GNUmakefile"},
		{"make", "common.mk", "./tools", "true ./tools", "+  | \ttrue ./tools/deps"},
		{"make", "tools/check.sh", "exit 1", "exit 0", "+  | exit 0"},
		{"make", "tools/deps", "#!/bin/sh", "#!/bin/true", "+  | #!/bin/true"},
		{"make", "tools/other.sh", "exit 1", "exit 0", ""},
		{"npm", "package.json", "npm run unit && echo ok", "echo ok", `+  |     "test": "echo ok",`},
		{"npm", "package.json", `"jest": {}`, `"jest": {"passWithNoTests": true}`, "+  |     \"passWithNoTests\": true"},
		{"npm", "package.json", `"1.0.0"`, `"1.1.0"`, ""},
		{"npm", "package.json", `{"x": "1"}`, `{"y": "2"}`, ""},
		{"npm", "test/run.js", "run()", "", "-  | run()"},
		{"npm", "src/main.js", "main()", "", ""},
		{"npm", ".npmrc", "fund=false", "script-shell=./fake", "+  | script-shell=./fake"},
		{"script", "scripts/run.sh", "go test ./...", "true", "+  | true"},
		{"script", "Makefile", "SCRIPT", "OTHER", ""},
		{"listed", "tool.cfg", "true", "false", "+  | strict = false"},
		{"listed", "none.cfg", "", "new\n", "+  | new"},
		{"pytest", "pyproject.toml", "-q", "--collect-only", "+  | addopts = '--collect-only'"},
		{"pytest", "pyproject.toml", "'1'", "'2'", ""},
		{"pytest", "pytest.ini", "", "[pytest]\n", "+file:         pytest.ini"},
		{"cargo", "Cargo.toml", "serde = '1'", "serde = '2'", ""},
		{"cargo", "Cargo.toml", "edition = '2024'", "edition = '2024'\nautotests = false", "+  | autotests = false"},
		{"cargo", ".cargo/config.toml", "", "[alias]\ntest = 'check'\n", "+  | [alias]"},
		{"listed", "other.txt", "x", "y", ""},
		{"script", checksfile.Path, "checks:\n", "# a comment\nchecks:\n\n", ""},
		{"make", checksfile.Path, "[make, test]", "[make, \"test\\u200b\"]", `["make","test\u{200B}"]`},
		{"make", "Makefile", "@bash", "@bash \u202e", `\u{202E}`},
		{"make", "Makefile", "deps\n", "deps\r\n", "sha256"},
	} {
		root := writeFiles(t, files)
		before := newSubject(t, root, tt.check)
		approved := approve(t, before)
		if err := before.CheckApproved(approved); err != nil {
			t.Fatalf("%s: %v", tt.check, err)
		}
		if text := files[tt.file]; text != "" && !strings.Contains(text, tt.before) {
			t.Fatalf("%s does not contain %s", tt.file, tt.before)
		}
		if tt.before == "" {
			writeFile(t, root, tt.file, tt.after)
		} else {
			writeFile(t, root, tt.file, strings.Replace(files[tt.file], tt.before, tt.after, 1))
		}
		after := newSubject(t, root, tt.check)
		err := after.CheckApproved(approved)
		if tt.shown == "" {
			if err != nil {
				t.Errorf("%s: %s with %q: %v", tt.check, tt.file, tt.after, err)
			}
			continue
		}
		if guideway.ErrorCode(err) != guideway.CodeForbidden || !strings.Contains(guideway.ErrorFix(err), "guideway checks approve "+tt.check) || after.State(approved) != checksfile.StateChanged {
			t.Errorf("%s: %s with %q: %v, fix %q", tt.check, tt.file, tt.after, err, guideway.ErrorFix(err))
		}
		if text, isDiff := after.Review(approved); !isDiff || !strings.Contains(text, tt.shown) {
			t.Errorf("%s: %s with %q: the review does not contain %q:\n%s", tt.check, tt.file, tt.after, tt.shown, text)
		}
	}
}

// An approval of one workspace or of one check is not valid for another.
func TestApprovalBelongsToOneWorkspace(t *testing.T) {
	t.Parallel()
	files := map[string]string{checksfile.Path: "checks: {a: {argv: [x]}, b: {argv: [x]}}"}
	first, second := writeFiles(t, files), writeFiles(t, files)
	approved := approve(t, newSubject(t, first, "a"))
	if err := newSubject(t, first, "a").CheckApproved(approved); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]*checksfile.Subject{"another workspace": newSubject(t, second, "a"), "another check": newSubject(t, first, "b")} {
		if err := s.CheckApproved(approved); guideway.ErrorCode(err) != guideway.CodeForbidden || s.State(approved) != checksfile.StateWaiting {
			t.Errorf("%s: %v", what, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(first, link); err != nil {
		t.Fatal(err)
	}
	if err := newSubject(t, link, "a").CheckApproved(approved); err != nil {
		t.Errorf("the same workspace by a link: %v", err)
	}
}

// Removing an approved check does not turn its evidence into a claim.
func TestRemovedCheck(t *testing.T) {
	t.Parallel()
	root := writeFiles(t, map[string]string{checksfile.Path: "checks: {a: {argv: [x]}}"})
	approved := approve(t, newSubject(t, root, "a"))
	rule := &criteria.CheckRule{Type: criteria.NamedCheck, Check: "a"}
	if r, err := checksfile.Resolve(root, rule, rule, approved); err != nil || r.Check.Name != "a" || r.Subject.CheckApproved(approved) != nil || r.Rule.Argv[0] != "x" {
		t.Fatal(r, err)
	}
	for name, text := range map[string]string{"removed": "checks: {b: {argv: [x]}}", "deleted": "", "broken": "checks: {a: {}}"} {
		writeFile(t, root, checksfile.Path, text)
		if text == "" {
			if err := os.Remove(filepath.Join(root, checksfile.Path)); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := checksfile.Resolve(root, rule, rule, approved); r != nil || err == nil || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: Resolve returns %+v, %v", name, r, err)
		}
		if removed := checksfile.Load(root).Removed(root, approved); (len(removed) == 1) != (name != "broken") {
			t.Errorf("%s: Removed returns %q", name, removed)
		}
	}
	if r, err := checksfile.Resolve(t.TempDir(), rule, rule, approved); r != nil || err != nil {
		t.Errorf("a check that was never approved and is undefined: %v, %v", r, err)
	}
}

// Rules of workflows need an approval if they run a command, call a tool or send a request
// to this machine.
func TestRuleSubjects(t *testing.T) {
	t.Parallel()
	root := writeFiles(t, map[string]string{"scripts/x.sh": "exit 1\n"})
	command := &criteria.CheckRule{Type: criteria.Command, Argv: []string{"bash", "scripts/x.sh", "{{name}}"}}
	filled := command.FillTemplates(func(s string) string { return strings.ReplaceAll(s, "{{name}}", "me") })
	r, err := checksfile.Resolve(root, command, filled, nil)
	if err != nil || r.Rule.Argv[2] != "me" || r.Subject.Rule.Argv[2] != "{{name}}" || !strings.HasPrefix(r.Subject.Name, "command:") {
		t.Fatalf("%+v, %v", r, err)
	}
	approved := approve(t, r.Subject)
	if err := r.Subject.CheckApproved(approved); err != nil {
		t.Error(err)
	}
	writeFile(t, root, "scripts/x.sh", "exit 0\n")
	if r, err = checksfile.Resolve(root, command, filled, approved); err != nil || r.Subject.State(approved) != checksfile.StateChanged {
		t.Errorf("after a change of the script: %+v, %v", r, err)
	}
	other := *command
	other.Timeout = "1s"
	if r, err = checksfile.Resolve(root, &other, filled, approved); err != nil || r.Subject.State(approved) != checksfile.StateWaiting {
		t.Errorf("another rule: %+v, %v", r, err)
	}
	tool := &criteria.CheckRule{Type: criteria.Tool, Tool: "ci__status", Arguments: map[string]any{"b": 1.0}}
	if r, err = checksfile.Resolve(root, tool, tool, nil); err != nil || r.Subject == nil || !strings.Contains(r.Subject.Text(0), `{"b":1}`) {
		t.Errorf("a tool: %+v, %v", r, err)
	}
	for _, free := range []criteria.Type{criteria.File, criteria.Git, criteria.Protect} {
		rule := &criteria.CheckRule{Type: free}
		if r, err = checksfile.Resolve(root, rule, rule, nil); err != nil || r.Subject != nil || r.Rule != rule {
			t.Errorf("%s: %+v, %v", free, r, err)
		}
	}
}

// The approval of a loopback address is for its scheme, host and port, not for a template
// whose variables select another port.
func TestLoopbackAddress(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"http://localhost:8080/x?y": "http://localhost:8080", "HTTP://LOCALHOST./": "http://localhost:80", "https://127.0.0.1": "https://127.0.0.1:443",
		"http://127.9.9.9:1": "http://127.9.9.9:1", "http://[::1]:2/": "http://[::1]:2", "http://[::ffff:127.0.0.1]:3": "http://[::ffff:127.0.0.1]:3", "http://a.localhost:4": "http://a.localhost:4",
		"http://example.com": "", "http://localhost.example.com": "", "file:///etc/passwd": "", "http://10.0.0.1": "", "http://user@localhost:5/": "http://localhost:5", "::": "",
	} {
		if got, ok := checksfile.LoopbackAddress(text); got != want || ok != (want != "") {
			t.Errorf("%s: %q, %t", text, got, ok)
		}
	}
	root := t.TempDir()
	template := &criteria.CheckRule{Type: criteria.HTTP, URL: "http://localhost:{{port}}/"}
	resolve := func(address string) *checksfile.Subject {
		r, err := checksfile.Resolve(root, template, &criteria.CheckRule{Type: criteria.HTTP, URL: address}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return r.Subject
	}
	approved := approve(t, resolve("http://localhost:1/a"))
	if err := resolve("http://localhost:1/b").CheckApproved(approved); err != nil {
		t.Error(err)
	}
	if err := resolve("http://localhost:2/a").CheckApproved(approved); err == nil {
		t.Error("the approval of port 1 is valid for port 2")
	}
	if resolve("https://example.com/") != nil {
		t.Error("a public address needs an approval")
	}
}

// A file that defines a command must be inside the workspace and of bounded size. A program
// may be a link out of the workspace; a change of its target requires another approval.
func TestUnusableFiles(t *testing.T) {
	t.Parallel()
	outside := writeFiles(t, map[string]string{"x": "x", "y": "y"})
	for name, prepare := range map[string]func(root string) error{
		"link out of the workspace": func(root string) error {
			return os.Symlink(filepath.Join(outside, "x"), filepath.Join(root, "Makefile"))
		},
		"huge": func(root string) error {
			return os.WriteFile(filepath.Join(root, "Makefile"), make([]byte, 2<<20), 0o600)
		},
		"unreadable directory": func(root string) error {
			if err := os.RemoveAll(filepath.Join(root, "sub")); err != nil {
				return err
			}
			return os.Symlink(outside, filepath.Join(root, "sub"))
		},
	} {
		root := writeFiles(t, map[string]string{checksfile.Path: "checks: {a: {argv: [make], dir: sub}}", "sub/x": ""})
		if err := prepare(root); err != nil {
			t.Fatal(err)
		}
		c, err := checksfile.Load(root).Get("a")
		if err != nil {
			t.Fatal(err)
		}
		if s, err := checksfile.NewSubject(root, c); guideway.ErrorCode(err) != guideway.CodeForbidden || guideway.ErrorFix(err) == "" {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	root := writeFiles(t, map[string]string{checksfile.Path: "checks: {a: {argv: [bin/python, -m, tests.run, ../outside.sh, /etc/hosts]}}", "tests/run.py": "run()", "bin/x": ""})
	link := filepath.Join(root, "bin", "python")
	if err := os.Symlink(filepath.Join(outside, "x"), link); err != nil {
		t.Fatal(err)
	}
	s := newSubject(t, root, "a")
	if diff := cmp.Diff([]string{"bin/python", "tests/run.py"}, filePaths(s)); diff != "" || !strings.Contains(s.Text(0), "a link to "+outside) {
		t.Errorf("%s\n%s", diff, s.Text(0))
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "y"), link); err != nil {
		t.Fatal(err)
	}
	if newSubject(t, root, "a").State(approve(t, s)) != checksfile.StateChanged {
		t.Error("a new target of the program does not ask again")
	}
}

// A large file and a program that is not text are approved by their hash. The review of a
// change of a large file shows its whole content, because the approval does not keep it.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("# a long comment\n", 4000)
	root := writeFiles(t, map[string]string{checksfile.Path: "checks: {a: {argv: [./tool, -c, big.mk, --file=small.mk]}}", "tool": "\x7fELF\x00" + strings.Repeat("x", 2<<20), "big.mk": long, "small.mk": "x"})
	s := newSubject(t, root, "a")
	if diff := cmp.Diff([]string{"big.mk", "small.mk", "tool"}, filePaths(s)); diff != "" || !strings.Contains(s.Text(0), "| # a long comment") || strings.Contains(s.Text(0), "ELF") {
		t.Error(diff)
	}
	approved := approve(t, s)
	if len(approved[0].Scope) > 2000 {
		t.Errorf("the approval keeps %d bytes", len(approved[0].Scope))
	}
	writeFile(t, root, "big.mk", long+"new")
	if text, isDiff := newSubject(t, root, "a").Review(approved); !isDiff || !strings.Contains(text, "| new") {
		t.Errorf("the review is %.300s", text)
	}
	writeFile(t, root, "big.mk", long)
	writeFile(t, root, "tool", "\x7fELF\x00"+strings.Repeat("y", 2<<20))
	if newSubject(t, root, "a").State(approved) != checksfile.StateChanged {
		t.Error("a changed program does not ask again")
	}
}

// The review shows everything that influences the command.
func TestText(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	root := writeFiles(t, map[string]string{checksfile.Path: string(text), "Makefile": "a:\n\ttrue\n", "sub/dir/x": ""})
	want := `description:  run the tests
command:      ["go","test","{{package}}","-run={{name}}","{{.Dir}}"]
directory:    sub/dir
environment:  GOFLAGS, _X1
time limit:   1m30s
exit code:    2
matches:      ^ok
excludes:     no test files
parameter:    package: default "./...", pattern [./A-Za-z0-9_-]+
parameter:    name: required
cache:        a result is reused while the files are the same
sandbox:      writes only to the workspace and caches; the network is allowed
file:         Makefile (sha256 `
	got := newSubject(t, root, "test").Text(0)
	if !strings.HasPrefix(got, want) {
		t.Error(cmp.Diff(want, got))
	}
	for _, line := range []string{"  | a:", "  | \ttrue", "file:         scripts/test.sh (does not exist)"} {
		if !slices.Contains(strings.Split(got, "\n"), line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
}

// The search for files ends, even if Makefiles and scripts include or call themselves, or
// their variables grow without bound.
func TestHostileRecipes(t *testing.T) {
	t.Parallel()
	checks := "checks: {a: {argv: [make, -f, x.mk, a]}, b: {argv: [npm, test]}}"
	for name, files := range map[string]map[string]string{
		"growing variables": {"Makefile": "A = $(B)\nB = " + strings.Repeat("$(A)$(A)", 50_000) + "\na: $(A)\n\t$(A)\n"},
		"own include":       {"x.mk": "include x.mk Makefile\na: a b\n\t$(MAKE) -f x.mk a b\nb: a\n", "Makefile": "include x.mk\n"},
		"own script":        {"package.json": `{"scripts": {"test": "npm test && make a && npm run pretest", "pretest": "npm t", "posttest": 1}}`, "Makefile": "a:\n\tnpm test\n"},
		"long line":         {"Makefile": "a: " + strings.Repeat("b ", 200_000) + "\n", "package.json": strings.Repeat("[", 200_000)},
		"no text":           {"Makefile": "a:\n\t\x00\xff ./\x00\n", "package.json": "\x00"},
	} {
		files[checksfile.Path] = checks
		root := writeFiles(t, files)
		for _, check := range []string{"a", "b"} {
			if s := newSubject(t, root, check); s.Hash == "" {
				t.Errorf("%s: the check %s has no hash", name, check)
			}
		}
	}
	many := map[string]string{checksfile.Path: checks, "Makefile": "a:\n"}
	for i := range 120 {
		many["Makefile"] += fmt.Sprintf("\tbash s%d\n", i)
		many[fmt.Sprintf("s%d", i)] = ""
	}
	root := writeFiles(t, many)
	c, err := checksfile.Load(root).Get("a")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checksfile.NewSubject(root, c); guideway.ErrorCode(err) != guideway.CodeTooLarge || guideway.ErrorFix(err) == "" {
		t.Errorf("with too many scripts: %v", err)
	}
}
