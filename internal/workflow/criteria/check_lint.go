package criteria

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// compileOnce returns a function that compiles a pattern at its first call, so that the start
// of the program does not pay for it.
func compileOnce(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}

// checkName is the form of the name of a check.
var checkName = compileOnce(`^[a-z][a-z0-9-]{0,63}$`)

// IsCheckName reports whether a text can be the name of a check.
func IsCheckName(text string) bool { return checkName().MatchString(text) }

// variable is a placeholder of a variable; see package template.
var variable = compileOnce(`\{\{\s*[A-Za-z_$][\w$]*([.\[][^{}\s]*)?\s*([+-]\s*\d+\s*)?\}\}`)

// MaxTimeout is the longest time limit of a check.
const MaxTimeout = time.Hour

// The ranges of numbers of a check.
const (
	MaxExitCode = 255
	MinStatus   = 100
	MaxStatus   = 599
)

// validateCheck reports the errors in the fields of a check. It compiles no patterns and
// schemas; see deepDiagnostics.
func (c *Criterion) validateCheck(r *CheckRule) {
	c.validateRequired(r)
	if d, err := time.ParseDuration(r.Timeout); r.Timeout != "" && (err != nil || d <= 0 || d > MaxTimeout) {
		c.addCheckError("/timeout", "criterion-timeout", fmt.Sprintf("the timeout %q is not a duration above 0s and at most %v", r.Timeout, MaxTimeout), `write a duration such as "90s" or "5m"`)
	}
	c.validateNumbers(r)
	c.validatePaths(r)
	c.validateLiterals(r)
	if i, caller := VariableInProgram(r.Argv); caller != "" {
		c.addCheckError("/argv/"+strconv.Itoa(i), "criterion-command-variable",
			caller+" can run its arguments as commands, so none may contain a variable", FixForCaller(caller))
	} else if i >= 0 {
		c.addCheckError("/argv/"+strconv.Itoa(i), "criterion-command-variable",
			fmt.Sprintf("a variable in %q would decide which program or script runs", r.Argv[i]),
			"write the program and its script out, and pass the variable as an argument of the script")
	} else if i := VariableInOption(r.Argv); i >= 0 {
		c.addCheckError("/argv/"+strconv.Itoa(i), "criterion-command-variable",
			fmt.Sprintf("a variable in %q would decide which option the program gets", r.Argv[i]),
			"write the name of the option out, such as --run={{name}}")
	}
	if r.Exists == nil || *r.Exists {
		return
	}
	for _, f := range []struct {
		name string
		set  bool
	}{{"matches", r.Matches != ""}, {"excludes", r.Excludes != ""}, {"minBytes", r.MinBytes != nil}, {"maxBytes", r.MaxBytes != nil}, {"schema", r.Schema != nil}} {
		if f.set {
			c.addCheckError("/"+f.name, "criterion-file-absent", fmt.Sprintf("%q has no effect: a file that must not exist has no content", f.name),
				fmt.Sprintf(`remove %q, or "exists": false`, f.name))
		}
	}
}

// validateRequired reports a missing field and an invalid name.
func (c *Criterion) validateRequired(r *CheckRule) {
	missing := map[Type]bool{
		NamedCheck: r.Check == "", Command: len(r.Argv) == 0 || r.Argv[0] == "", File: r.Path == "", HTTP: r.URL == "", Tool: r.Tool == "", Protect: len(r.Paths) == 0,
		Git: !r.Clean && r.Commit == "" && len(r.Inside) == 0 && len(r.Outside) == 0,
	}[r.Type]
	switch {
	case missing && r.Type == Git:
		c.unusable = "the rule of type git checks nothing: it has none of clean, commit, inside and outside"
		c.addCheckError("", "criterion-field-missing", c.unusable, `add "clean": true, "commit", "inside" or "outside"`)
	case missing:
		c.addMissingField(checkFields()[r.Type][0], map[Type]string{
			NamedCheck: "the name of a check in .guideway/checks.yaml", Command: `the command and its arguments, such as ["go", "test", "./..."]`,
			File: "the path of a file below the workspace", HTTP: "the URL to request", Tool: "the name of a tool of the gateway",
			Protect: `globs of the files that must not change, such as ["**/*_test.go"]`,
		}[r.Type])
	case r.Check != "" && !IsCheckName(r.Check):
		c.addCheckError("/check", "criterion-check-name", fmt.Sprintf("%q is not a valid check name", r.Check), "use lower-case letters, digits and hyphens, such as unit-test")
	}
}

// validateNumbers reports numbers out of their range.
func (c *Criterion) validateNumbers(r *CheckRule) {
	outside := func(name string, value, low, high int64) {
		if value < low || value > high {
			c.addCheckError("/"+name, "criterion-number-range", fmt.Sprintf("%q is %d; it must be from %d to %d", name, value, low, high),
				fmt.Sprintf("write a whole number from %d to %d", low, high))
		}
	}
	if r.ExitCode != nil {
		outside("exitCode", int64(*r.ExitCode), 0, MaxExitCode)
	}
	if r.Status != 0 {
		outside("status", int64(r.Status), MinStatus, MaxStatus)
	}
	for _, f := range []struct {
		name  string
		value *int64
	}{{"minBytes", r.MinBytes}, {"maxBytes", r.MaxBytes}} {
		if f.value != nil && *f.value < 0 {
			c.addCheckError("/"+f.name, "criterion-number-range", fmt.Sprintf("%q is %d; a file has at least 0 bytes", f.name, *f.value), "write 0 or more")
		}
	}
	if r.MinBytes != nil && r.MaxBytes != nil && *r.MinBytes > *r.MaxBytes {
		c.addCheckError("/minBytes", "criterion-bounds-crossed", fmt.Sprintf("minBytes %d is above maxBytes %d, which no file can meet", *r.MinBytes, *r.MaxBytes), "swap minBytes and maxBytes")
	}
}

// validatePaths reports paths that leave the workspace and globs that match no path of a
// file in it.
func (c *Criterion) validatePaths(r *CheckRule) {
	for _, f := range []struct{ name, path string }{{"dir", r.Dir}, {"path", r.Path}} {
		if reason, fix := ExplainPath(f.path); reason != "" {
			c.addCheckError("/"+f.name, "criterion-path", fmt.Sprintf("the path %q %s", f.path, reason), fix)
		}
	}
	for _, f := range []struct {
		name  string
		globs []string
	}{{"inside", r.Inside}, {"outside", r.Outside}, {"paths", r.Paths}} {
		for i, glob := range f.globs {
			if reason, fix := ExplainGlob(glob); reason != "" {
				c.addCheckError("/"+f.name+"/"+strconv.Itoa(i), "criterion-glob", fmt.Sprintf("the glob %q matches no file: %s", glob, reason), fix)
			}
		}
	}
}

// IsBelow reports whether a slash-separated path stays below its base.
func IsBelow(path string) bool {
	if strings.HasPrefix(path, "/") || strings.Contains(path, `\`) || strings.Contains(path, ":") {
		return false
	}
	return !slices.Contains(strings.Split(path, "/"), "..")
}

// ExplainPath returns the reason why a slash-separated path names no file of a workspace,
// with a fix, or "".
func ExplainPath(path string) (reason, fix string) {
	switch {
	case IsBelow(path):
		return "", ""
	case strings.ContainsAny(path, `\:`):
		return "has a backslash or a colon", "use a relative path with slashes and without colons"
	default:
		return "leaves the workspace", "use a relative path without .."
	}
}

// ExplainGlob returns the reason why a glob can match no file of a workspace, with a fix, or
// "".
func ExplainGlob(glob string) (reason, fix string) {
	segments := strings.Split(glob, "/")
	_, err := path.Match(glob, "")
	switch {
	case glob == "":
		return "it is empty", "write a glob such as **/*_test.go"
	case strings.Contains(glob, `\`):
		return "paths have no backslashes", "separate directories by /"
	case strings.HasPrefix(glob, "/"), slices.Contains(segments, ".."):
		return "it leaves the workspace", "write it relative to the workspace, without .."
	case strings.HasSuffix(glob, "/"):
		return "it matches only a directory", fmt.Sprintf("write %s**", glob)
	case slices.Contains(segments, "."), slices.Contains(segments, ""):
		return "it has an empty segment or a dot as a segment", "write it as git prints a path, such as src/main.go"
	case segments[0] == ".git":
		return "git does not track its own directory", "name files of the work tree"
	case err != nil, strings.Count(glob, "{") != strings.Count(glob, "}"):
		return "it has an unclosed bracket, a bracket that closes none, or an invalid [...]", "pair each [ with ] and each { with }, and write at least one character between [ and ]"
	default:
		return "", ""
	}
}

// validateLiterals reports variables in fields that are not filled in, and a URL without a
// literal host, because a variable must not decide which host answers.
func (c *Criterion) validateLiterals(r *CheckRule) {
	for _, f := range []struct {
		name  string
		texts []string
	}{{"check", []string{r.Check}}, {"dir", []string{r.Dir}}, {"env", r.Env}, {"tool", []string{r.Tool}}, {"inside", r.Inside}, {"outside", r.Outside}, {"paths", r.Paths}} {
		if i := slices.IndexFunc(f.texts, variable().MatchString); i >= 0 {
			c.addCheckError("/"+f.name, "criterion-field-variable", fmt.Sprintf("the variable in %q is not filled in: %q is the same in each run", f.texts[i], f.name), "write the value out")
		}
	}
	scheme, host, _ := strings.Cut(r.URL, "://")
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	if r.URL != "" && (scheme != "http" && scheme != "https" || host == "" || strings.Contains(host, "{{")) {
		c.addCheckError("/url", "criterion-url", fmt.Sprintf("%q does not begin with http:// or https:// and a host without variables", r.URL),
			"write the scheme and the host out, such as http://127.0.0.1:8080/; a variable may follow in the path")
	}
}

// interpreters are programs whose first argument, or the argument after a codeOption, is a
// script. wrappers are programs that run the program in their arguments; a wrapperLimit,
// such as the time limit of timeout, may precede it. shellCallers pass their arguments to a
// shell, or run programs that options name.
var (
	shellCallers = compileOnce(`^(ssh|su|runuser|watch|parallel|script|flock|find|fd|entr|tmux|screen|expect|m4|gdb|vim?|ex|ed)(\.exe)?$`)
	interpreters = compileOnce(`^(sh|bash|dash|ash|zsh|ksh|fish|python[\d.]*|node|nodejs|deno|bun|perl|ruby|php|lua|pwsh|powershell|cmd|tclsh|osascript|Rscript|awk|gawk|sed|eval)(\.exe)?$`)
	wrappers     = compileOnce(`^(env|nice|nohup|timeout|sudo|doas|setsid|stdbuf|time|xargs|busybox|ionice|exec|command)(\.exe)?$`)
	wrapperLimit = compileOnce(`^[\d.]+[smhd]?$`)
	codeOption   = compileOnce(`^(-[A-Za-z]*[cCeEprk]|/[cCkK]|--(eval|print|command)|-(Command|EncodedCommand|command))$`)
)

// VariableInOption returns the index of an argument in which a variable decides which option
// a program gets, or -1: the variable must follow the name of the option.
func VariableInOption(argv []string) int {
	return slices.IndexFunc(argv, func(argument string) bool {
		at := variable().FindStringIndex(argument)
		if at == nil {
			return false
		}
		name := argument[:at[0]]
		return name == "-" || strings.HasPrefix(name, "--") && !strings.Contains(name, "=")
	})
}

// FixForCaller returns the fix for a variable in an argument of a program that can run its
// arguments as commands.
func FixForCaller(caller string) string {
	return fmt.Sprintf(`call a script that takes the variable as an argument, such as ["sh", "%s.sh", "{{name}}"]`, caller)
}

// VariableInProgram returns the index of an argument in which a variable decides which
// program or script a command runs, or -1. caller is the name of the program of this
// argument if that program can run any of its arguments as a command, otherwise "".
func VariableInProgram(argv []string) (at int, caller string) {
	if len(argv) == 0 {
		return -1, ""
	}
	name := path.Base(strings.ReplaceAll(argv[0], `\`, "/"))
	switch {
	case variable().MatchString(argv[0]):
		return 0, ""
	case interpreters().MatchString(name):
		return variableInScript(argv), ""
	case shellCallers().MatchString(name):
		if at = slices.IndexFunc(argv, variable().MatchString); at >= 0 {
			caller = strings.TrimSuffix(name, ".exe")
		}
		return at, caller
	case !wrappers().MatchString(name):
		return -1, ""
	}
	program := false // whether an argument was certainly the program
	for i := 1; i < len(argv); i++ {
		isOption := strings.HasPrefix(argv[i], "-") || strings.Contains(argv[i], "=") || wrapperLimit().MatchString(argv[i])
		if isOption && !program && variable().MatchString(argv[i]) {
			return i, "" // such as a variable of the environment
		}
		afterOption := strings.HasPrefix(argv[i-1], "-") // it may be the value of the option
		if isOption || program && !isRunner(argv[i]) {
			continue
		}
		program = !afterOption
		if at, caller := VariableInProgram(argv[i:]); at >= 0 {
			return i + at, caller
		}
	}
	return -1, ""
}

// isRunner reports whether an argument is the name of a program that runs others. It may
// follow the value of an option.
func isRunner(argument string) bool {
	name := path.Base(argument)
	return interpreters().MatchString(name) || wrappers().MatchString(name) || shellCallers().MatchString(name)
}

// variableInScript returns the index of an argument of an interpreter that is a script, or
// the name of one, and has a variable; -1 if none exists. An interpreter can have several
// scripts, each after a codeOption.
func variableInScript(argv []string) int {
	for i := 1; i < len(argv); i++ {
		isOption := strings.HasPrefix(argv[i], "-") || codeOption().MatchString(argv[i])
		switch {
		case variable().MatchString(argv[i]):
			return i
		case !isOption && (i+1 == len(argv) || !codeOption().MatchString(argv[i-1]) || !codeOption().MatchString(argv[i+1])):
			return -1
		}
	}
	return -1
}

// deepDiagnostics returns the diagnostics found by compiling the patterns and the schema of
// a check.
func (r *CheckRule) deepDiagnostics() []Diagnostic {
	var found []Diagnostic
	for _, f := range []struct{ name, source string }{{"matches", r.Matches}, {"excludes", r.Excludes}} {
		if _, err := pattern.Compile(f.source, ""); f.source != "" && err != nil {
			found = append(found, Diagnostic{
				Path: "/" + f.name, Code: "criterion-pattern-invalid",
				Message: fmt.Sprintf("invalid pattern %s (%v)", f.source, err), Fix: "fix the pattern; it is a JavaScript regular expression",
			})
		}
	}
	if r.Schema != nil {
		found = append(found, (&Criterion{Schema: r.Schema}).schemaDiagnostics()...)
	}
	return found
}

// CodeAvoidable reports a check that cannot refuse an output.
const CodeAvoidable = "check-avoidable"

// avoidableDiagnostics returns a warning for each composition that has a check and that an
// output can meet without it. at is the JSON pointer of the criterion; negated is set below
// an odd number of "not".
func (c *Criterion) avoidableDiagnostics(at string, negated bool) []Diagnostic {
	if !c.HasCheck() {
		return nil
	}
	isAny := c.Type == Or && !negated || (c.Type == And || c.Type == All) && negated
	if isAny && c.canDecide(!negated) {
		both := And
		if negated {
			both = Or
		}
		return []Diagnostic{{
			Path: at, Code: CodeAvoidable, Warning: true,
			Message: "a rule on the text of the output can decide alone, so a claim passes without the check",
			Fix:     fmt.Sprintf("require both: put the rules into an %q, or remove the rule on the text", both),
		}}
	}
	var found []Diagnostic
	for i, part := range c.Of {
		found = append(found, part.avoidableDiagnostics(at+c.pathTo(i), negated != (c.Type == Not))...)
	}
	return found
}

// HasCheck reports whether the criterion is or contains a rule that the server executes.
func (c *Criterion) HasCheck() bool {
	return c != nil && (c.Type.IsCheck() || slices.ContainsFunc(c.Of, (*Criterion).HasCheck))
}

// canDecide reports whether the criterion can have a verdict, passed or not, by rules over
// the output alone.
func (c *Criterion) canDecide(passed bool) bool {
	decides := func(part *Criterion) bool { return part.canDecide(passed) }
	switch {
	case c == nil:
		return passed
	case c.Type.IsCheck():
		return false
	case c.Type == Not:
		return c.Of[0].canDecide(!passed)
	case c.Type != Or && c.Type != And && c.Type != All:
		return true
	case (c.Type == Or) == passed:
		return slices.ContainsFunc(c.Of, decides)
	default:
		return !slices.ContainsFunc(c.Of, func(part *Criterion) bool { return !decides(part) })
	}
}

// requiresChange reports whether each rule of the criterion is a negated protect rule. Then
// an output passes as soon as a protected file differs.
func (c *Criterion) requiresChange() bool {
	switch {
	case c == nil || c.Type.IsCheck():
		return false
	case c.Type == Not:
		return c.Of[0] != nil && c.Of[0].Type == Protect
	default:
		return len(c.Of) > 0 && !slices.ContainsFunc(c.Of, func(part *Criterion) bool { return !part.requiresChange() })
	}
}

// changeDiagnostics returns an error for criteria that require only a change of protected
// files.
func (c *Criterion) changeDiagnostics() []Diagnostic {
	if !c.requiresChange() {
		return nil
	}
	return []Diagnostic{{
		Code: "criterion-not-protect", Message: "the criteria require nothing but a change of protected files, so any edit of them passes",
		Fix: `remove the "not", or add a rule on the change, such as {"type": "check", "check": "test"}`,
	}}
}
