package checksfile

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
	"github.com/pelletier/go-toml/v2"
)

// ProposedCheck is a check that a project probably has.
type ProposedCheck struct {
	Name string `json:"name"`
	// Ecosystem is the ecosystem of the command, and From the file that it was found in.
	Ecosystem   string   `json:"ecosystem"`
	From        string   `json:"from"`
	Description string   `json:"description"`
	Argv        []string `json:"argv,omitempty"`
	// Protect are globs of files that must not change, in place of a command.
	Protect  []string `json:"protect,omitempty"`
	Timeout  string   `json:"timeout,omitempty"`
	Excludes string   `json:"excludes,omitempty"`
	// Parameter is the parameter that replaces the last argument, which is its default. If
	// the last argument is empty, the parameter is required.
	Parameter string `json:"parameter,omitempty"`
	Pattern   string `json:"pattern,omitempty"`
}

// Proposal is a proposed checks file.
type Proposal struct {
	Checks []ProposedCheck `json:"checks"`
	// Notes are remarks on commands that are not proposed.
	Notes []string `json:"notes,omitempty"`
	// Elsewhere are the project files in subdirectories.
	Elsewhere []string `json:"elsewhere,omitempty"`
}

// The names of checks that the bundled workflows use.
const (
	nameTest   = "test"
	nameLint   = "lint"
	nameBuild  = "build"
	nameFormat = "format"
	nameTests  = "protected-tests"
	nameOne    = "one-test"
)

// detector reads the files of a workspace.
type detector struct {
	dir *os.Root
	Proposal
}

// Propose proposes the checks of a workspace from its files. It executes nothing.
func Propose(root string) (p *Proposal, err error) {
	dir, err := os.OpenRoot(root)
	if err != nil {
		return nil, guideway.Errorf(guideway.CodeUnavailable, "the directory %s cannot be read: %w", root, err).WithFix("check that the directory exists and is readable for this user")
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	d := &detector{dir: dir}
	d.detectGo()
	d.detectNode()
	d.detectPython()
	d.detectRust()
	d.detectMake()
	d.protectTests()
	d.findElsewhere()
	return &d.Proposal, nil
}

// add adds a check. If an earlier ecosystem has a check of the name, the name of the
// ecosystem is appended.
func (d *detector) add(c ProposedCheck) {
	taken := func(name string) bool {
		return slices.ContainsFunc(d.Checks, func(o ProposedCheck) bool { return o.Name == name })
	}
	if taken(c.Name) {
		c.Name += "-" + c.Ecosystem
	}
	if !taken(c.Name) {
		d.Checks = append(d.Checks, c)
	}
}

// read returns the content of a file of the workspace, or "".
func (d *detector) read(name string) string {
	data, err := readIn(d.dir, name, maxDefining)
	if err != nil {
		return ""
	}
	return string(data)
}

// find returns the first of the files that exists, or "".
func (d *detector) find(names ...string) string {
	for _, name := range names {
		if info, err := d.dir.Stat(name); err == nil && info.Mode().IsRegular() {
			return name
		}
	}
	return ""
}

func (d *detector) detectGo() {
	if d.find("go.mod") == "" {
		return
	}
	all := ProposedCheck{Ecosystem: "go", From: "go.mod", Timeout: "10m"}
	add := func(name, description string, argv ...string) {
		c := all
		c.Name, c.Description, c.Argv = name, description, argv
		d.add(c)
	}
	d.add(ProposedCheck{
		Name: nameTest, Ecosystem: "go", From: "go.mod", Description: "run the tests", Argv: []string{"go", "test", "./..."}, Timeout: "10m",
		Parameter: "package", Pattern: `\./[A-Za-z0-9_./-]*`,
	})
	if config := d.find(toolFiles["golangci-lint"]...); config != "" {
		all.From = config
		add(nameLint, "run the linters", "golangci-lint", "run")
		all.From = "go.mod"
	} else {
		add(nameLint, "report suspicious code", "go", "vet", "./...")
	}
	add(nameBuild, "compile all packages", "go", "build", "./...")
	d.addOneTest("go", "go.mod", "go", "test", "./...", "-run")
	d.add(ProposedCheck{
		Name: nameFormat, Ecosystem: "go", From: "go.mod", Description: "gofmt lists no file", Argv: []string{"gofmt", "-l", "."}, Timeout: "2m", Excludes: `\S`,
	})
}

func (d *detector) detectNode() {
	var manifest struct {
		PackageManager string            `json:"packageManager"`
		Scripts        map[string]string `json:"scripts"`
	}
	if json.Unmarshal([]byte(d.read("package.json")), &manifest) != nil {
		return
	}
	manager, _, _ := strings.Cut(manifest.PackageManager, "@")
	switch {
	case slices.Contains([]string{"npm", "pnpm", "yarn", "bun"}, manager):
	case d.find("pnpm-lock.yaml") != "":
		manager = "pnpm"
	case d.find("yarn.lock") != "":
		manager = "yarn"
	case d.find("bun.lock", "bun.lockb") != "":
		manager = "bun"
	default:
		manager = "npm"
	}
	for _, kind := range []struct {
		name, description string
		scripts           []string
	}{
		{nameTest, "run the tests", []string{"test", "test:ci", "test:unit"}},
		{nameLint, "run the linters", []string{"lint", "lint:check", "eslint"}},
		{nameBuild, "build the package", []string{"build", "compile"}},
		{nameFormat, "check the format", []string{"format:check", "check:format", "format-check", "fmt:check", "prettier:check", "format", "fmt"}},
		{"typecheck", "check the types", []string{"typecheck", "type-check", "check:types", "tsc"}},
	} {
		for _, script := range kind.scripts {
			text := manifest.Scripts[script]
			if text == "" || strings.Contains(text, "no test specified") {
				continue
			}
			if reason := unsuitable(kind.name, text); reason != "" {
				d.Notes = append(d.Notes, "The script "+script+" of package.json "+reason+".")
				continue
			}
			argv := []string{manager, "run", script}
			if script == "test" && manager != "bun" {
				argv = []string{manager, "test"}
			}
			d.add(ProposedCheck{Name: kind.name, Ecosystem: "node", From: "package.json", Description: kind.description, Argv: argv, Timeout: "10m"})
			if kind.name == nameTest {
				d.addOneTest("node", "package.json", append(argv, "--")...)
			}
			break
		}
	}
}

// addOneTest adds a check that runs the tests that a workflow names.
func (d *detector) addOneTest(ecosystem, from string, argv ...string) {
	d.add(ProposedCheck{
		Name: nameOne, Ecosystem: ecosystem, From: from, Description: "run the tests with a given name", Argv: append(slices.Clip(argv), ""), Timeout: "10m",
		Parameter: "test", Pattern: `[A-Za-z0-9_./:\[\]-]+`,
	})
}

// protectTests adds a check that protects the existing tests of the ecosystems, and the files
// of CI. An agent that weakens one of them would make the other checks pass.
func (d *detector) protectTests() {
	var globs, from []string
	for _, e := range []struct {
		manifests, globs []string
	}{
		{[]string{"go.mod"}, []string{"**/*_test.go"}},
		{[]string{"package.json"}, []string{"**/*.{test,spec}.{js,jsx,ts,tsx,mjs,cjs,mts,cts}", "**/__tests__/**"}},
		{[]string{"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "noxfile.py", "Pipfile", "pytest.ini"}, []string{"**/test_*.py", "**/*_test.py", "**/conftest.py"}},
		{[]string{"Cargo.toml"}, []string{"**/tests/**/*.rs"}},
	} {
		if found := d.find(e.manifests...); found != "" {
			globs, from = append(globs, e.globs...), append(from, found)
		}
	}
	if len(globs) == 0 {
		return
	}
	d.add(ProposedCheck{
		Name: nameTests, From: strings.Join(from, ", "), Description: "the existing tests and the files of CI are unchanged",
		Protect: append(globs, ".github/workflows/**", ".gitlab-ci.yml"),
	})
}

var (
	watches = compileOnce(`--watch(All)?\b|\bwatch\b`)
	reports = compileOnce(`--(check|list-different|dry-run|diff)\b| -[cl]\b|\bbiome (ci|check)\b`)
)

// unsuitable returns the reason why a command cannot be a check, or "".
func unsuitable(name, text string) string {
	switch {
	case watches().MatchString(text):
		return "watches files and does not end"
	case name == nameFormat && !reports().MatchString(text):
		return "changes files; a check must only report them"
	default:
		return ""
	}
}

func (d *detector) detectPython() {
	var pyproject struct {
		Tool map[string]any `toml:"tool"`
	}
	text := d.read("pyproject.toml")
	_ = toml.Unmarshal([]byte(text), &pyproject) // an invalid file has no tools
	requirements := text
	for _, name := range []string{"requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements/dev.txt", "setup.cfg", "tox.ini", "Pipfile"} {
		requirements += "\n" + d.read(name)
	}
	// uses returns the file that shows the use of a tool, or "".
	uses := func(tool string, files ...string) string {
		if found := d.find(files...); found != "" {
			return found
		}
		if _, ok := pyproject.Tool[tool]; ok {
			return "pyproject.toml"
		}
		if regexp.MustCompile(`(?mi)(^|["'\s])` + tool + `($|["'\s<>=~!;,\[])`).MatchString(requirements) {
			return d.find("pyproject.toml", "requirements.txt", "requirements-dev.txt", "dev-requirements.txt", "requirements/dev.txt", "setup.cfg", "tox.ini", "Pipfile")
		}
		return ""
	}
	if d.find("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "tox.ini", "noxfile.py", "Pipfile", "pytest.ini") == "" {
		return
	}
	module := []string{"python3", "-m"}
	for _, manager := range []struct{ lock, name string }{{"uv.lock", "uv"}, {"poetry.lock", "poetry"}, {"pdm.lock", "pdm"}, {"Pipfile.lock", "pipenv"}} {
		if d.find(manager.lock) != "" {
			module = []string{manager.name, "run"}
			break
		}
	}
	add := func(name, description, from string, argv ...string) {
		d.add(ProposedCheck{Name: name, Ecosystem: "python", From: from, Description: description, Argv: argv, Timeout: "10m"})
	}
	run := func(argv ...string) []string { return append(slices.Clone(module), argv...) }
	switch nox, tox, pytest := d.find("noxfile.py"), uses("tox", "tox.ini", "tox.toml"), uses("pytest", "pytest.ini", "conftest.py"); {
	case pytest != "":
		add(nameTest, "run the tests", pytest, run("pytest")...)
		d.addOneTest("python", pytest, run("pytest")...)
	case nox != "":
		add(nameTest, "run the sessions of nox", nox, run("nox")...)
	case tox != "":
		add(nameTest, "run the environments of tox", tox, run("tox")...)
	case d.hasTests():
		add(nameTest, "run the tests", "tests", "python3", "-m", "unittest", "discover")
		d.addOneTest("python", "tests", "python3", "-m", "unittest")
	}
	if from := uses("ruff", "ruff.toml", ".ruff.toml"); from != "" {
		add(nameLint, "run the linter", from, run("ruff", "check", ".")...)
		add(nameFormat, "check the format", from, run("ruff", "format", "--check", ".")...)
	} else {
		if from := uses("flake8", ".flake8"); from != "" {
			add(nameLint, "run the linter", from, run("flake8")...)
		}
		if from := uses("black"); from != "" {
			add(nameFormat, "check the format", from, run("black", "--check", ".")...)
		}
	}
	if from := uses("mypy", "mypy.ini", ".mypy.ini"); from != "" {
		add("typecheck", "check the types", from, run("mypy", ".")...)
	}
}

// hasTests reports whether there are tests of the package unittest.
func (d *detector) hasTests() bool {
	for _, pattern := range []string{"test_*.py", "tests/test_*.py", "test/test_*.py"} {
		if found, err := fs.Glob(safeopen.In(d.dir), pattern); err == nil && len(found) > 0 {
			return true
		}
	}
	return false
}

func (d *detector) detectRust() {
	if d.find("Cargo.toml") == "" {
		return
	}
	add := func(name, description string, argv ...string) {
		d.add(ProposedCheck{Name: name, Ecosystem: "rust", From: "Cargo.toml", Description: description, Argv: argv, Timeout: "20m"})
	}
	add(nameTest, "run the tests", "cargo", "test")
	d.addOneTest("rust", "Cargo.toml", "cargo", "test")
	add(nameLint, "run clippy", "cargo", "clippy", "--all-targets", "--", "-D", "warnings")
	add(nameBuild, "compile the crate", "cargo", "build")
	add(nameFormat, "check the format", "cargo", "fmt", "--check")
}

func (d *detector) detectMake() {
	from := d.find(toolFiles["make"]...)
	if from == "" {
		return
	}
	m := parseMakefile(d.read(from))
	several := map[string]bool{}
	for _, c := range d.Checks {
		several[c.Ecosystem] = true
	}
	for _, kind := range []struct {
		name, description string
		targets           []string
	}{
		{nameTest, "run the tests", []string{"test", "tests", "check"}},
		{nameLint, "run the linters", []string{"lint", "vet"}},
		{nameBuild, "build the project", []string{"build", "compile"}},
		{nameFormat, "check the format", []string{"format-check", "check-format", "fmt-check", "check-fmt", "format", "fmt"}},
	} {
		for _, name := range kind.targets {
			i := slices.IndexFunc(m.targets, func(t target) bool { return t.name == name })
			if i < 0 {
				continue
			}
			if kind.name == nameFormat && !strings.Contains(name, "check") {
				if reason := unsuitable(kind.name, m.expand(m.targets[i].text)); reason != "" {
					d.Notes = append(d.Notes, "The target "+name+" of "+from+" "+reason+".")
					continue
				}
			}
			d.addMake(ProposedCheck{Name: kind.name, Ecosystem: "make", From: from, Description: kind.description, Argv: []string{"make", name}, Timeout: "10m"}, len(several) > 1)
			break
		}
	}
}

// addMake adds a check that calls make. In a project of several ecosystems, a target
// probably covers all of them and gets the plain name; otherwise the command of the
// ecosystem gets the plain name, because no makefile can change it.
func (d *detector) addMake(c ProposedCheck, several bool) {
	i := slices.IndexFunc(d.Checks, func(o ProposedCheck) bool { return o.Name == c.Name })
	switch {
	case i >= 0 && several:
		first := d.Checks[i]
		d.Checks[i] = c
		d.add(first)
	case i >= 0:
		d.Notes = append(d.Notes, "The check "+c.Name+" could also be `"+strings.Join(c.Argv, " ")+"` of "+c.From+".")
	default:
		d.add(c)
	}
}

// The bounds of the search in subdirectories.
const (
	maxDepth     = 3
	maxElsewhere = 10
	maxVisited   = 5000
)

// findElsewhere finds project files in subdirectories.
func (d *detector) findElsewhere() {
	skipped := []string{"node_modules", "vendor", "target", "testdata", "dist", "build", "third_party", "venv"}
	visited := 0
	_ = fs.WalkDir(safeopen.In(d.dir), ".", func(name string, entry fs.DirEntry, err error) error {
		visited++
		switch {
		case err != nil && entry != nil && entry.IsDir():
			return fs.SkipDir
		case err != nil:
			return nil
		case visited > maxVisited || len(d.Elsewhere) >= maxElsewhere:
			return fs.SkipAll
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || slices.Contains(skipped, entry.Name()) || strings.Count(name, "/") >= maxDepth):
			return fs.SkipDir
		case !entry.IsDir() && path.Dir(name) != "." && slices.Contains([]string{"go.mod", "package.json", "pyproject.toml", "Cargo.toml", "Makefile"}, entry.Name()):
			d.Elsewhere = append(d.Elsewhere, name)
		}
		return nil
	})
}
