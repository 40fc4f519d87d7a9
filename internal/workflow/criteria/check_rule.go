package criteria

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/expr/pattern"
)

// The types of checks: rules that the server executes in the workspace of a run.
const (
	// NamedCheck is a check that the project defines in its checks file.
	NamedCheck Type = "check"
	Command    Type = "command"
	File       Type = "file"
	Git        Type = "git"
	HTTP       Type = "http"
	Tool       Type = "tool"
	// Protect is a rule on files that must equal the commit at the start of the run.
	Protect Type = "protect"
)

// CheckTypes returns the types of checks.
func CheckTypes() []Type { return []Type{NamedCheck, Command, File, Git, HTTP, Tool, Protect} }

// IsCheck reports whether the server executes rules of the type.
func (t Type) IsCheck() bool { return slices.Contains(CheckTypes(), t) }

// CheckRule is the specification of a check. Its type determines which fields are set. Its
// JSON form is the one of definitions.
type CheckRule struct {
	Type Type `json:"type"`

	// Check is the name of a check of the project, With are its parameters.
	Check string            `json:"check,omitempty"`
	With  map[string]string `json:"with,omitempty"`

	// Argv is the command with its arguments; no shell reads it. Dir is its directory below
	// the workspace. Env lists the variables of the environment that it receives.
	Argv []string `json:"argv,omitempty"`
	Dir  string   `json:"dir,omitempty"`
	Env  []string `json:"env,omitempty"`
	// Timeout limits a command or a request, such as "90s".
	Timeout string `json:"timeout,omitempty"`
	// ExitCode is the expected exit code; nil means 0.
	ExitCode *int `json:"exitCode,omitempty"`

	// Matches and Excludes are patterns of the output of a command, of the content of a file
	// or of the body of an answer.
	Matches  string `json:"matches,omitempty"`
	Excludes string `json:"excludes,omitempty"`

	// Path is a file below the workspace. Exists is nil or true if it must exist.
	Path     string         `json:"path,omitempty"`
	Exists   *bool          `json:"exists,omitempty"`
	MinBytes *int64         `json:"minBytes,omitempty"`
	MaxBytes *int64         `json:"maxBytes,omitempty"`
	Schema   map[string]any `json:"schema,omitempty"`

	// Clean requires that no file differs from the commit. Commit must exist. Inside and
	// Outside are globs of the paths that changed since the start of the run: each must
	// match one of Inside and none of Outside.
	Clean   bool     `json:"clean,omitempty"`
	Commit  string   `json:"commit,omitempty"`
	Inside  []string `json:"inside,omitempty"`
	Outside []string `json:"outside,omitempty"`
	// Paths are globs of the files that must not change.
	Paths []string `json:"paths,omitempty"`

	// URL is requested with GET. Status is the expected status; 0 means 200.
	URL    string `json:"url,omitempty"`
	Status int    `json:"status,omitempty"`

	// Tool is a tool of the gateway, called with Arguments. Result is a condition on its
	// structured result.
	Tool      string         `json:"tool,omitempty"`
	Arguments map[string]any `json:"arguments,omitempty"`
	Result    any            `json:"result,omitempty"`
}

// checkFields are the fields of each type of check, apart from type, message and condition.
// The first one is required.
func checkFields() map[Type][]string {
	return map[Type][]string{
		NamedCheck: {"check", "with"},
		Command:    {"argv", "dir", "env", "timeout", "exitCode", "matches", "excludes"},
		File:       {"path", "exists", "matches", "excludes", "minBytes", "maxBytes", "schema"},
		Git:        {"clean", "commit", "inside", "outside"},
		HTTP:       {"url", "status", "timeout", "matches", "excludes"},
		Tool:       {"tool", "arguments", "result"},
		Protect:    {"paths"},
	}
}

// CheckFields returns the fields of a rule of a type of check.
func CheckFields(t Type) []string {
	return append([]string{"type", "message", "condition"}, checkFields()[t]...)
}

func joinTypes(types []Type) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

// checkName is the form of the name of a check.
var checkName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,63}$`)

// IsCheckName reports whether a text can be the name of a check.
func IsCheckName(text string) bool { return checkName.MatchString(text) }

// MaxTimeout is the longest time limit of a check.
const MaxTimeout = time.Hour

// parseCheck reads the fields of a check. It records the fields that cannot be used.
func parseCheck(c *Criterion, object map[string]any) {
	rule := &CheckRule{Type: c.Type}
	kept := map[string]any{"type": string(c.Type)}
	for _, name := range checkFields()[c.Type] {
		if v, ok := object[name]; ok && v != nil {
			kept[name] = v
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(CheckFields(c.Type), name) {
			c.addCheckError("/"+name, "criterion-field-unknown", fmt.Sprintf("a rule of type %s has no field %q", c.Type, name),
				"use "+strings.Join(checkFields()[c.Type], ", "))
		}
	}
	if text, err := jsontext.Marshal(kept); err != nil || jsontext.Decode(text, rule) != nil {
		c.reportCheckTypes(kept)
		c.unusable = fmt.Sprintf("validation rule of type %s has a field of a wrong type", c.Type)
		return
	}
	c.CheckRule = rule
	c.validateCheck(rule)
}

// reportCheckTypes reports each field of a check whose value has a wrong type.
func (c *Criterion) reportCheckTypes(fields map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		text, err := jsontext.Marshal(map[string]any{name: fields[name]})
		if err == nil && jsontext.Decode(text, &CheckRule{}) != nil {
			c.addCheckError("/"+name, "criterion-field-type", fmt.Sprintf("%q cannot be %s", name, jsonKind(fields[name])), "see the JSON schema of the dialect for its type")
		}
	}
}

func (c *Criterion) addCheckError(path, code, message, fix string) {
	c.diagnostics = append(c.diagnostics, Diagnostic{Path: path, Code: code, Message: message, Fix: fix})
}

// validateCheck reports the errors in the fields of a check.
func (c *Criterion) validateCheck(r *CheckRule) {
	required := checkFields()[r.Type][0]
	missing := map[Type]bool{
		NamedCheck: r.Check == "", Command: len(r.Argv) == 0 || r.Argv[0] == "", File: r.Path == "", HTTP: r.URL == "", Tool: r.Tool == "", Protect: len(r.Paths) == 0,
		Git: !r.Clean && r.Commit == "" && len(r.Inside) == 0 && len(r.Outside) == 0,
	}[r.Type]
	switch {
	case missing && r.Type == Git:
		c.unusable = "validation rule of type git requires nothing"
		c.addCheckError("", "criterion-field-missing", c.unusable, `add "clean", "commit", "inside" or "outside"`)
	case missing:
		c.addMissingField(required, map[Type]string{
			NamedCheck: "the name of a check in .guideway/checks.yaml", Command: `the command and its arguments, such as ["go", "test", "./..."]`,
			File: "the path of a file below the workspace", HTTP: "the URL to request", Tool: "the name of a tool of the gateway",
			Protect: `globs of the files that must not change, such as ["**/*_test.go"]`,
		}[r.Type])
	case r.Check != "" && !IsCheckName(r.Check):
		c.addCheckError("/check", "criterion-check-name", fmt.Sprintf("%q is not the name of a check", r.Check), "use lower-case letters, digits and hyphens")
	}
	if d, err := time.ParseDuration(r.Timeout); r.Timeout != "" && (err != nil || d <= 0 || d > MaxTimeout) {
		c.addCheckError("/timeout", "criterion-timeout", fmt.Sprintf("%q is not a time limit of at most %v", r.Timeout, MaxTimeout), `write it as "90s" or "5m"`)
	}
	for field, path := range map[string]string{"path": r.Path, "dir": r.Dir} {
		if path != "" && !IsBelow(path) {
			c.addCheckError("/"+field, "criterion-path", fmt.Sprintf("the path %q leaves the workspace", path), "use a relative path without ..")
		}
	}
	for field, source := range map[string]string{"matches": r.Matches, "excludes": r.Excludes} {
		if _, err := pattern.Compile(source, ""); source != "" && err != nil {
			c.addCheckError("/"+field, "criterion-pattern-invalid", fmt.Sprintf("invalid pattern %s (%v)", source, err), "fix the pattern; it is a JavaScript regular expression")
		}
	}
	if r.MinBytes != nil && r.MaxBytes != nil && *r.MinBytes > *r.MaxBytes {
		c.addCheckError("/minBytes", "criterion-bounds-crossed", fmt.Sprintf("minBytes %d is above maxBytes %d, which no file can meet", *r.MinBytes, *r.MaxBytes), "swap minBytes and maxBytes")
	}
}

// IsBelow reports whether a slash-separated path stays below its base.
func IsBelow(path string) bool {
	if strings.HasPrefix(path, "/") || strings.Contains(path, `\`) || strings.Contains(path, ":") {
		return false
	}
	return !slices.Contains(strings.Split(path, "/"), "..")
}

// FillTemplates returns the rule with the variables in its texts filled in. Each argument of
// a command stays one argument: a value is data and never read by a shell.
func (r *CheckRule) FillTemplates(fill func(string) string) *CheckRule {
	out := *r
	out.Argv = slices.Clone(r.Argv)
	for i := range out.Argv {
		out.Argv[i] = fill(out.Argv[i])
	}
	out.With = maps.Clone(r.With)
	for name, value := range out.With {
		out.With[name] = fill(value)
	}
	out.Path, out.Commit, out.URL = fill(r.Path), fill(r.Commit), fill(r.URL)
	return &out
}

// describe describes the check in a few words.
func (r *CheckRule) describe() string {
	switch r.Type {
	case NamedCheck:
		return "the check " + r.Check + " of the project passes"
	case Command:
		exit := 0
		if r.ExitCode != nil {
			exit = *r.ExitCode
		}
		return fmt.Sprintf("the command `%s` exits with %d%s", strings.Join(r.Argv, " "), exit, r.describePatterns("its output"))
	case File:
		if r.Exists != nil && !*r.Exists {
			return "the file " + r.Path + " does not exist"
		}
		return "the file " + r.Path + " exists" + r.describePatterns("it")
	case Git:
		return r.describeGit()
	case HTTP:
		status := r.Status
		if status == 0 {
			status = 200
		}
		return fmt.Sprintf("%s answers with the status %d%s", r.URL, status, r.describePatterns("its answer"))
	case Protect:
		return "no file in " + strings.Join(r.Paths, ", ") + " differs from the start of the run"
	default:
		words := "the tool " + r.Tool + " succeeds"
		if r.Result != nil {
			words += " with " + expr.Parse(r.Result).String()
		}
		return words
	}
}

func (r *CheckRule) describePatterns(what string) string {
	words := ""
	if r.Matches != "" {
		words += ", and " + what + " matches /" + r.Matches + "/"
	}
	if r.Excludes != "" {
		words += ", and " + what + " does not match /" + r.Excludes + "/"
	}
	return words
}

func (r *CheckRule) describeGit() string {
	var words []string
	if r.Commit != "" {
		words = append(words, "the commit "+r.Commit+" exists")
	}
	if r.Clean {
		words = append(words, "no file differs from the commit")
	}
	if len(r.Inside) > 0 {
		words = append(words, "all changed files are in "+strings.Join(r.Inside, ", "))
	}
	if len(r.Outside) > 0 {
		words = append(words, "no changed file is in "+strings.Join(r.Outside, ", "))
	}
	return strings.Join(words, ", and ")
}
