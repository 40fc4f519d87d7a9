package criteria

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
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

	// Clean requires that no file differs from the checked out commit. Commit must be part of the
	// checked out branch. Inside and Outside are globs of the paths that changed since the
	// start of the run: each must match one of Inside and none of Outside.
	Clean   bool     `json:"clean,omitempty"`
	Commit  string   `json:"commit,omitempty"`
	Inside  []string `json:"inside,omitempty"`
	Outside []string `json:"outside,omitempty"`
	// Paths are globs of the files that must not change.
	Paths []string `json:"paths,omitempty"`
	// AllowNew allows new files that match Paths, for example new tests.
	AllowNew bool `json:"allowNew,omitempty"`

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
		Protect:    {"paths", "allowNew"},
	}
}

// CheckFields returns the fields of a rule of a type of check.
func CheckFields(t Type) []string {
	return append([]string{"type", "message", "condition"}, checkFields()[t]...)
}

// RequiredField returns the field that a rule of a type of check must have, or "" for Git,
// which needs one of several.
func RequiredField(t Type) string {
	if t == Git {
		return ""
	}
	return checkFields()[t][0]
}

func joinTypes(types []Type) string {
	names := lists.Map(types, func(t Type) string { return string(t) })
	return strings.Join(names, ", ")
}

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
		c.unusable = fmt.Sprintf("a rule of type %s has a field of a wrong type", c.Type)
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
			c.addCheckError("/"+name, "criterion-field-type", fmt.Sprintf("%q cannot be %s", name, jsontext.DescribeType(fields[name])), "write a value of the type that the JSON Schema of the dialect states for the field; guideway schema prints it")
		}
	}
}

func (c *Criterion) addCheckError(path, code, message, fix string) {
	c.diagnostics = append(c.diagnostics, Diagnostic{Path: path, Code: code, Message: message, Fix: fix})
}

// FillTemplates returns the rule with the variables in its texts filled in; see Texts. Each
// argument of a command stays one argument: a value is data and never read by a shell.
func (r *CheckRule) FillTemplates(fill func(string) string) *CheckRule {
	return r.mapTexts(func(_, text string) string { return fill(text) })
}

// Text is a text of a check that may have variables.
type Text struct {
	// Path is the JSON pointer of the text in the rule.
	Path, Text string
}

// Texts returns the texts of the check that FillTemplates fills in.
func (r *CheckRule) Texts() []Text {
	var texts []Text
	r.mapTexts(func(path, text string) string {
		if text != "" {
			texts = append(texts, Text{path, text})
		}
		return text
	})
	return texts
}

// mapTexts returns a copy of the rule in which each text that may have variables is
// replaced.
func (r *CheckRule) mapTexts(replace func(path, text string) string) *CheckRule {
	out := *r
	out.Argv = slices.Clone(r.Argv)
	for i, argument := range r.Argv {
		out.Argv[i] = replace("/argv/"+strconv.Itoa(i), argument)
	}
	out.With = maps.Clone(r.With)
	for _, name := range slices.Sorted(maps.Keys(r.With)) {
		out.With[name] = replace("/with/"+escapePointer(name), r.With[name])
	}
	out.Path, out.Commit, out.URL = replace("/path", r.Path), replace("/commit", r.Commit), replace("/url", r.URL)
	if r.Arguments != nil {
		out.Arguments, _ = mapValue(r.Arguments, "/arguments", replace).(map[string]any)
	}
	return &out
}

// mapValue returns a copy of a decoded JSON value in which each text is replaced.
func mapValue(v any, path string, replace func(path, text string) string) any {
	switch v := v.(type) {
	case string:
		return replace(path, v)
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = mapValue(v[i], path+"/"+strconv.Itoa(i), replace)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			object[name] = mapValue(v[name], path+"/"+escapePointer(name), replace)
		}
		return object
	default:
		return v
	}
}

// escapePointer escapes a name for a JSON pointer.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// PlacedCheck is a check in criteria.
type PlacedCheck struct {
	// Key is the JSON pointer of the rule in its criteria.
	Key  string
	Rule *CheckRule
}

// Checks returns the checks of the criteria in document order, without those whose condition
// does not hold.
func (c *Criterion) Checks(vars expr.Lookup) []PlacedCheck {
	if c == nil || !c.Condition.Holds(vars) {
		return nil
	}
	if c.CheckRule != nil {
		return []PlacedCheck{{Rule: c.CheckRule}}
	}
	var list []PlacedCheck
	for i, part := range c.Of {
		for _, check := range part.Checks(vars) {
			check.Key = c.pathTo(i) + check.Key
			list = append(list, check)
		}
	}
	return list
}

// ResultCondition returns the condition on the result of a tool, or nil. It has the form of
// the dialect of its definition.
func (r *CheckRule) ResultCondition() *expr.Expr { return parseCondition(r.Result) }

// parseCondition parses a condition in the form of either guided dialect: in phase workflows
// each condition has a type.
func parseCondition(v any) *expr.Expr {
	if object, ok := v.(map[string]any); ok {
		if _, strict := object["type"].(string); strict {
			return expr.ParseStrict(v)
		}
	}
	return expr.Parse(v)
}

// Describe describes the check in a few words.
func (r *CheckRule) Describe() string {
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
		return "the file " + r.Path + " exists" + r.describeSize() + r.describePatterns("its content")
	case Git:
		return r.describeGit()
	case HTTP:
		status := cmp.Or(r.Status, 200)
		return fmt.Sprintf("%s answers with the status %d%s", r.URL, status, r.describePatterns("its answer"))
	case Protect:
		words := "no file in " + strings.Join(r.Paths, ", ") + " differs from the start of the run"
		if r.AllowNew {
			words += ", apart from new ones"
		}
		return words
	default:
		words := "the tool " + r.Tool + " succeeds"
		if r.Result != nil {
			words += " with " + r.ResultCondition().String()
		}
		return words
	}
}

func (r *CheckRule) describeSize() string {
	words := ""
	if r.MinBytes != nil {
		words += fmt.Sprintf(", has at least %d bytes", *r.MinBytes)
	}
	if r.MaxBytes != nil {
		words += fmt.Sprintf(", has at most %d bytes", *r.MaxBytes)
	}
	if r.Schema != nil {
		words += ", fits a JSON Schema"
	}
	return words
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
		words = append(words, "the commit "+r.Commit+" is part of the checked out branch")
	}
	if r.Clean {
		words = append(words, "no file differs from the checked out commit")
	}
	if len(r.Inside) > 0 {
		words = append(words, "all changed files are in "+strings.Join(r.Inside, ", "))
	}
	if len(r.Outside) > 0 {
		words = append(words, "no changed file is in "+strings.Join(r.Outside, ", "))
	}
	return strings.Join(words, ", and ")
}

// CheckRules returns the checks of the criterion at any depth, in their order.
func (c *Criterion) CheckRules() (list []*CheckRule) {
	if c == nil {
		return nil
	}
	if c.CheckRule != nil {
		list = append(list, c.CheckRule)
	}
	for _, part := range c.Of {
		list = append(list, part.CheckRules()...)
	}
	return list
}
