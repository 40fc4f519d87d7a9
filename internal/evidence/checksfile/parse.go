package checksfile

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
)

// The codes of diagnostics in addition to those of package shape.
const (
	CodeName        = "check-name"
	CodePath        = "check-path"
	CodeTimeout     = "check-timeout"
	CodePatternText = "check-pattern"
	CodePlaceholder = "check-placeholder"
	CodeUnused      = "check-parameter-unused"
	CodeDefault     = "check-default"
	CodeNetwork     = "check-network"
)

// The limits of the fields of a check.
const (
	maxArguments   = 100
	maxArgument    = 4096
	maxDescription = 500
	maxListed      = 50
	maxPattern     = 1000
	maxExitCode    = 255
)

var (
	variableName  = compileOnce(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	parameterName = compileOnce(`^[a-z][A-Za-z0-9_]{0,63}$`)
	durationText  = compileOnce(`^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`)
)

// parser collects the diagnostics of one file.
type parser struct{ shape.Report }

// Parse parses a checks file.
func Parse(name string, data []byte) *File {
	root, found := doc.Parse(name, data, doc.Limits{MaxBytes: maxBytes})
	f := &File{Path: name, Exists: true, Diagnostics: found, unreadable: root == nil}
	if root == nil {
		return f
	}
	p := &parser{shape.Report{File: name, Dialect: shape.Dialect{Name: "checks", Sample: sampleValue}, Found: found}}
	p.Canonical = doc.Mark(root)
	at := shape.Root(root, "checks file")
	p.LintHidden(at)
	f.unreadable = !p.Document(at, "A checks file", `write "checks:" and the checks below it`)
	var checks []Check
	if !f.unreadable {
		p.Object(at, "$schema", "checks")
		p.Text(at.Key("$schema"), 0, 0)
		p.Require(at, "checks")
		checks, f.unreadable = p.readChecks(at.Key("checks"))
	}
	f.Diagnostics = p.Findings(guideway.SeverityError)
	for _, c := range checks {
		isBroken := func(d guideway.Diagnostic) bool {
			return d.Code == shape.CodeMore || d.Severity == guideway.SeverityError && concerns(d.Pointer, c.Name)
		}
		if slices.ContainsFunc(f.Diagnostics, isBroken) {
			f.Broken = append(f.Broken, c.Name)
		} else {
			f.Checks = append(f.Checks, c)
		}
	}
	return f
}

// sampleValue returns an example value of a required member.
func sampleValue(key string) string {
	switch key {
	case "checks":
		return "{...}"
	case "argv":
		return `["go", "test", "./..."]`
	default:
		return ""
	}
}

// readChecks reads all checks, also those with errors. unreadable is set if their names are
// unknown.
func (p *parser) readChecks(at shape.Place) (checks []Check, unreadable bool) {
	if !p.Open(at) {
		return nil, true
	}
	if n := len(at.Node.Members); n > maxChecks {
		p.Errorf(at, shape.CodeRange, "remove checks that no workflow uses", "The file has %d checks; at most %d are allowed.", n, maxChecks)
		return nil, true
	}
	for i := range at.Node.Members {
		key := at.Member(i)
		if !criteria.IsCheckName(key.Name) {
			p.Errorf(key, CodeName, "use lower-case letters, digits and hyphens, and begin with a letter", "%s is not a valid check name.", shape.Quote(key.Name))
		}
		c := p.readCheck(at.Key(key.Name).In("in the check " + shape.Quote(key.Name)))
		c.Name, c.Line = key.Name, key.Line
		checks = append(checks, c)
	}
	return checks, false
}

func (p *parser) readCheck(at shape.Place) Check {
	if at.Node != nil && at.Node.Get("protect") != nil {
		return p.readProtect(at)
	}
	if !p.Object(at, "description", "argv", "protect", "parameters", "dir", "env", "timeout", "exitCode", "matches", "excludes", "files", "cache", "sandbox", "network") {
		return Check{}
	}
	p.Require(at, "argv")
	c := Check{
		Description: p.Text(at.Key("description"), 0, maxDescription),
		Command: criteria.CheckRule{
			Type: criteria.Command, Argv: p.readArgv(at.Key("argv")), Dir: p.readPath(at.Key("dir")), Env: p.readEnv(at.Key("env")),
			Timeout: p.readTimeout(at.Key("timeout")), ExitCode: p.readExitCode(at.Key("exitCode")),
			Matches: p.readPattern(at.Key("matches")), Excludes: p.readPattern(at.Key("excludes")),
		},
		CacheTree:  p.Choice(at.Key("cache"), shape.CodeEnum, "tree") != "",
		Sandbox:    p.Flag(at.Key("sandbox")),
		Network:    p.Flag(at.Key("network")),
		definition: p.Source(at),
	}
	files := at.Key("files")
	if p.Array(files, "a list of paths") {
		p.checkCount(files, maxListed)
		for i := range files.Node.Items {
			c.Files = append(c.Files, p.readPath(files.Index(i)))
		}
	}
	if network := at.Key("network"); c.Network && !c.Sandbox {
		p.Warnf(network, CodeNetwork, `add "sandbox: true", or remove "network"`, "Field 'network' %s has no effect without a sandbox.", at.Where)
	}
	c.Parameters = p.readParameters(at.Key("parameters"))
	p.checkPlaceholders(at, &c)
	return c
}

// readProtect reads a check that protects files instead of executing a command.
func (p *parser) readProtect(at shape.Place) Check {
	if !p.Object(at, "description", "protect", "allowNew") {
		return Check{}
	}
	globs := at.Key("protect")
	c := Check{
		Description: p.Text(at.Key("description"), 0, maxDescription),
		Command:     criteria.CheckRule{Type: criteria.Protect, AllowNew: p.Flag(at.Key("allowNew"))},
		definition:  p.Source(at),
	}
	if !p.Array(globs, "a list of globs") {
		return c
	}
	p.NotEmpty(globs, `add a glob, such as "**/*_test.go"`)
	p.checkCount(globs, maxListed)
	c.Command.Paths = p.Texts(globs, 1, maxArgument)
	for i, glob := range c.Command.Paths {
		if reason, fix := criteria.ExplainGlob(glob); glob != "" && reason != "" {
			p.Errorf(globs.Index(i), CodePath, fix, "Field '%s' %s has the glob %s, which matches no file: %s.", globs.Index(i).Name, at.Where, shape.Quote(glob), reason)
		}
	}
	return c
}

// checkCount reports a list with too many elements.
func (p *parser) checkCount(at shape.Place, most int) {
	if n := len(at.Node.Items); n > most {
		p.Errorf(at, shape.CodeRange, "shorten the list", "Field '%s' %s has %d elements; at most %d are allowed.", at.Name, at.Where, n, most)
	}
}

func (p *parser) readArgv(at shape.Place) []string {
	if at.Node != nil && at.Node.Kind == doc.String {
		p.Errorf(at, shape.CodeType, "write the command as a list: "+quoteWords(at.Node.Text), "Field '%s' %s must be a list of the program and its arguments, but it is %s: the command runs without a shell.", at.Name, at.Where, shape.Describe(at.Node))
		return nil
	}
	if !p.Array(at, "a list of strings") {
		return nil
	}
	p.NotEmpty(at, "name the program and its arguments")
	p.checkCount(at, maxArguments)
	argv := p.Texts(at, 0, maxArgument)
	if len(argv) > 0 && argv[0] == "" && at.Node.Items[0].Kind == doc.String {
		p.Errorf(at.Index(0), shape.CodeLength, "name the program", "Field 'argv[0]' %s is empty.", at.Where)
	}
	return argv
}

// quoteWords returns the words of a text as a YAML list.
func quoteWords(text string) string {
	words := strings.Fields(text)
	for i, word := range words {
		words[i] = fmt.Sprintf("%q", word)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// readPath reads a path below the workspace.
func (p *parser) readPath(at shape.Place) string {
	text := p.Text(at, 1, maxArgument)
	if reason, fix := criteria.ExplainPath(text); reason != "" {
		p.Errorf(at, CodePath, fix, "Field '%s' %s has the path %s, which %s.", at.Name, at.Where, shape.Quote(text), reason)
	}
	return text
}

func (p *parser) readEnv(at shape.Place) []string {
	if !p.Array(at, "a list of names of variables") {
		return nil
	}
	p.checkCount(at, maxListed)
	names := p.Texts(at, 0, 0)
	for i, name := range names {
		if at.Node.Items[i].Kind != doc.String || variableName().MatchString(name) {
			continue
		}
		fix := "use at most 100 letters, digits and underscores, and begin with no digit"
		if before, _, ok := strings.Cut(name, "="); ok {
			fix = fmt.Sprintf("write only the name, %q; the value is that of the Guideway process", before)
		}
		p.Errorf(at.Index(i), shape.CodePattern, fix, "Field '%s' %s is %s, which is not a valid variable name.", at.Index(i).Name, at.Where, shape.Quote(name))
	}
	return names
}

func (p *parser) readTimeout(at shape.Place) string {
	text := p.Text(at, 0, 0)
	if at.Node == nil || at.Node.Kind != doc.String {
		return ""
	}
	const fix = `write a duration such as "90s" or "5m"`
	d, err := time.ParseDuration(text)
	switch {
	case !durationText().MatchString(text):
		p.Errorf(at, shape.CodePattern, fix, "Field '%s' %s has the value %s, which is not a duration.", at.Name, at.Where, shape.Quote(text))
	case err != nil || d <= 0 || d > criteria.MaxTimeout:
		p.Errorf(at, CodeTimeout, fix, "Field '%s' %s is %s; a time limit is more than zero and at most %v.", at.Name, at.Where, text, criteria.MaxTimeout)
	}
	return text
}

func (p *parser) readExitCode(at shape.Place) *int {
	if at.Node == nil {
		return nil
	}
	if at.Node.Kind != doc.Number {
		p.WrongType(at, "a number")
		return nil
	}
	code := int(at.Node.Num)
	if float64(code) != at.Node.Num || code < 0 || code > maxExitCode {
		p.Errorf(at, shape.CodeRange, "write the expected exit code; 0 is success", "Field '%s' %s is %s; an exit code is an integer from 0 to %d.", at.Name, at.Where, at.Node.Text, maxExitCode)
	}
	return &code
}

// readPattern reads a regular expression.
func (p *parser) readPattern(at shape.Place) string {
	text := p.Text(at, 1, maxPattern)
	if text == "" {
		return ""
	}
	if _, err := pattern.Compile(text, ""); err != nil {
		p.Errorf(at, CodePatternText, "correct the pattern; it is a JavaScript regular expression", "Field '%s' %s is an invalid pattern: %v.", at.Name, at.Where, err)
	}
	return text
}
