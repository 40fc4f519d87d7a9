package checksfile

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
	"github.com/guideway-dev/guideway/internal/workflow/shape"
	"github.com/guideway-dev/guideway/internal/workflow/template"
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

// maxValue is the maximum number of bytes of the value of a parameter.
const maxValue = 1000

func (p *parser) readParameters(at shape.Place) []Parameter {
	if !p.Open(at) {
		return nil
	}
	if n := len(at.Node.Members); n > maxListed {
		p.Errorf(at, shape.CodeRange, "remove parameters", "Field '%s' %s has %d parameters; at most %d are allowed.", at.Name, at.Where, n, maxListed)
		return nil
	}
	var out []Parameter
	for i := range at.Node.Members {
		key := at.Member(i)
		if !parameterName().MatchString(key.Name) {
			p.Errorf(key, CodeName, "use letters, digits and underscores, and begin with a lower-case letter", "%s is not a valid parameter name.", shape.Quote(key.Name))
		}
		out = append(out, p.readParameter(at.Key(key.Name).In("in the parameter "+shape.Quote(key.Name)), key.Name))
	}
	return out
}

func (p *parser) readParameter(at shape.Place, name string) Parameter {
	out := Parameter{Name: name}
	if !p.Object(at, "description", "default", "pattern") {
		return out
	}
	out.Description = p.Text(at.Key("description"), 0, maxDescription)
	out.Pattern = p.readPattern(at.Key("pattern"))
	if value := at.Key("default"); value.Node != nil {
		text := p.Text(value, 0, 0)
		out.Default = &text
		if err := out.checkValue(text); err != nil && value.Node.Kind == doc.String {
			p.Errorf(value, CodeDefault, guideway.ErrorFix(err), "Field 'default' %s cannot be used: %s.", at.Where, err.Error())
		}
	}
	return out
}

// checkPlaceholders reports placeholders without a parameter, and parameters that no
// argument uses.
func (p *parser) checkPlaceholders(at shape.Place, c *Check) {
	names := lists.Map(c.Parameters, func(p Parameter) string { return p.Name })
	used := map[string]bool{}
	for i, argument := range c.Command.Argv {
		item := at.Key("argv").Index(i)
		for _, part := range template.Parse(argument) {
			name := ""
			if len(part.Path) == 1 && !part.Added {
				name = part.Path[0]
			}
			switch {
			case !part.Expr || isLiteral(part.Text):
			case i == 0:
				p.Errorf(item, CodePlaceholder, "name the program, and pass values only as its arguments", "Field '%s' %s is the program; it cannot be a parameter.", item.Name, at.Where)
			case !slices.Contains(names, name):
				p.Errorf(item, CodePlaceholder, p.Suggest(name, names, "declare the parameter below \"parameters\""), "Field '%s' %s uses %s, which is not a parameter of the check.", item.Name, at.Where, shape.Quote(part.Text))
			}
			used[name] = true
		}
	}
	p.checkScript(at.Key("argv"), c.Command.Argv)
	for _, name := range names {
		if !used[name] {
			p.Warnf(at.Key("parameters").Key(name), CodeUnused, "use {{"+name+"}} in an argument, or remove the parameter", "No argument %s uses the parameter %s.", at.Where, shape.Quote(name))
		}
	}
}

// checkScript reports a parameter in the script of an interpreter or in the name of an
// option.
func (p *parser) checkScript(argv shape.Place, words []string) {
	if i, caller := criteria.VariableInProgram(words); caller != "" {
		p.Errorf(argv.Index(i), CodePlaceholder, criteria.FixForCaller(caller),
			"Field '%s' %s contains a parameter, but %s can run its arguments as commands.", argv.Index(i).Name, argv.Where, caller)
	} else if i > 0 {
		p.Errorf(argv.Index(i), CodePlaceholder, "write the script out, and pass the value as an argument of the script",
			"Field '%s' %s would let a parameter decide which script runs.", argv.Index(i).Name, argv.Where)
	} else if i := criteria.VariableInOption(words); i > 0 {
		p.Errorf(argv.Index(i), CodePlaceholder, "write the name of the option out, such as --run={{name}}",
			"Field '%s' %s would let a parameter decide which option the program gets.", argv.Index(i).Name, argv.Where)
	}
}

// isLiteral reports whether a text in braces is a template of the program, such as
// {{.Version}}.
func isLiteral(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(strings.TrimPrefix(text, "{{"), " "), ".")
}

// FillParameters returns the command of the check with the given values and the defaults of
// its parameters. A value is data: it is one argument or a part of one, and cannot be an
// option.
func (c *Check) FillParameters(with map[string]string) (*criteria.CheckRule, error) {
	values := map[string]any{}
	for i := range c.Parameters {
		one := &c.Parameters[i]
		value, ok := with[one.Name]
		if !ok {
			if one.Default == nil {
				return nil, guideway.Errorf(guideway.CodeInvalid, "the check %s needs the parameter %s", c.Name, one.Name).
					WithFix("set with.%s in the rule of the workflow, or a default in %s", one.Name, Path)
			}
			value = *one.Default
		}
		if err := one.checkValue(value); err != nil {
			return nil, guideway.Errorf(guideway.ErrorCode(err), "the parameter %s of the check %s: %w", one.Name, c.Name, err).WithFix("%s", guideway.ErrorFix(err))
		}
		values[one.Name] = value
	}
	for name := range with {
		if _, ok := values[name]; !ok {
			return nil, c.unknownParameter(name)
		}
	}
	rule := c.Command
	rule.Argv = make([]string, len(c.Command.Argv))
	for i, argument := range c.Command.Argv {
		rule.Argv[i] = template.Render(template.Parse(argument), func(name string) (any, bool) {
			value, ok := values[name]
			return value, ok
		})
	}
	return &rule, nil
}

func (c *Check) unknownParameter(name string) error {
	names := lists.Map(c.Parameters, func(p Parameter) string { return p.Name })
	err := guideway.Errorf(guideway.CodeInvalid, "the check %s has no parameter %q", c.Name, name)
	switch guess := spelling.Closest(name, names); {
	case guess != "":
		return err.WithFix("did you mean %s?", guess)
	case len(names) > 0:
		return err.WithFix("use one of: %s", strings.Join(names, ", "))
	}
	return err.WithFix("remove the parameter from the rule: the check %s has no parameters", c.Name)
}

// checkValue returns an error if a value cannot be passed as the parameter.
func (p *Parameter) checkValue(value string) error {
	invalid := func(format string, args ...any) *guideway.Error {
		return guideway.Errorf(guideway.CodeInvalid, "the value %q "+format, append([]any{shortenValue(value)}, args...)...)
	}
	switch {
	case len(value) > maxValue:
		return invalid("has more than %d bytes", maxValue).WithFix("shorten the value")
	case strings.HasPrefix(value, "-"):
		return invalid(`begins with "-", so that a program could read it as an option`).WithFix("pass a value without a leading hyphen")
	case !utf8.ValidString(value) || strings.ContainsFunc(value, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return invalid("has a line break or another control character").WithFix("pass a value of one line")
	case p.Pattern == "":
		return nil
	}
	compiled, err := pattern.Compile(fmt.Sprintf("^(?:%s)$", p.Pattern), "")
	if err != nil {
		return nil // reported at the pattern
	}
	ok, err := compiled.Match(value)
	if err != nil {
		return invalid("took longer than %v to compare with the pattern %s of the parameter", pattern.Limit, p.Pattern).WithFix("pass a shorter value, or simplify the pattern in %s", Path)
	}
	if !ok {
		return invalid("does not match the pattern %s of the parameter", p.Pattern).WithFix("pass a value that matches %s", p.Pattern)
	}
	return nil
}

func shortenValue(value string) string {
	if len(value) > 100 {
		return value[:100] + "..."
	}
	return value
}
