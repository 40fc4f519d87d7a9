package criteria_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	guideway "github.com/guideway-dev/guideway"
	criteriapkg "github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// decodeJSON reads JSON for a test.
func decodeJSON(tb testing.TB, document string) any {
	tb.Helper()
	var v any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		tb.Fatalf("decode %s: %v", document, err)
	}
	return v
}

// checkIssues returns the issues of a check that must not return an error.
func checkIssues(tb testing.TB, criteria, output string, vars map[string]any) []string {
	tb.Helper()
	result, err := criteriapkg.Parse(decodeJSON(tb, criteria)).Check(output, expr.Map(vars))
	if err != nil {
		tb.Fatalf("check %q against %s: %v", output, criteria, err)
	}
	if result.Valid != (len(result.Issues) == 0) {
		tb.Errorf("check %q against %s: valid is %v with issues %q", output, criteria, result.Valid, result.Issues)
	}
	if result.Valid == (len(result.Suggestions) > 0) {
		tb.Errorf("check %q against %s: valid is %v with suggestions %q", output, criteria, result.Valid, result.Suggestions)
	}
	return result.Issues
}

// TestCheck tests the cases of WorkRail's specification.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		done     = `{"type":"contains","value":"DONE","message":"needs DONE"}`
		list     = `[` + done + `,{"type":"length","min":5,"max":20,"message":"len"}]`
		optional = `[{"type":"contains","value":"DONE","message":"needs DONE","condition":{"var":"strict","equals":true}}]`
		object   = `[{"type":"schema","message":"","schema":{"type":"object","required":["a"],"properties":{"a":{"type":"number"},"b":{"type":"string","pattern":"^x"}}}}]`
	)
	tests := []struct {
		name     string
		criteria string
		output   string
		vars     map[string]any
		want     []string
	}{
		{"no criteria", `null`, "x", nil, nil},
		{"no criteria, blank", `[]`, " \n", nil, []string{"Output is empty or invalid."}},
		{"all issues in order", list, "no", nil, []string{"needs DONE", "len"}},
		{"too long", list, strings.Repeat("x", 36) + "DONE", nil, []string{"len"}},
		{"both hold", list, "It is DONE", nil, nil},
		{"contains is case-sensitive", `[` + done + `]`, "done", nil, []string{"needs DONE"}},
		{"default issue of contains", `[{"type":"contains","value":"DONE"}]`, "no", nil, []string{`Output must include "DONE"`}},
		{"default issue of regex", `"^a"`, "b", nil, []string{"Output does not match required pattern: ^a"}},
		{
			"one issue per bound", `[{"type":"length","min":9,"max":1}]`, "abc", nil,
			[]string{"Output shorter than minimum length 9", "Output exceeds maximum length 1"},
		},
		{"UTF-16 units", `[{"type":"length","max":2,"message":"len"}]`, "😀", nil, nil},
		{"large bound", `[{"type":"length","min":1000000}]`, "", nil, []string{"Output shorter than minimum length 1000000"}},

		{"flag i", `[{"type":"regex","pattern":"done","flags":"i","message":"re"}]`, "DONE", nil, nil},
		{"no flag", `[{"type":"regex","pattern":"done","message":"re"}]`, "DONE", nil, []string{"re"}},
		{"flag s", `[{"type":"regex","pattern":"^a.b$","flags":"s","message":"re"}]`, "a\nb", nil, nil},
		{"flag m", `[{"type":"regex","pattern":"^b$","flags":"gm","message":"re"}]`, "a\nb", nil, nil},
		{"flag u", `[{"type":"regex","pattern":"^\\u{1F600}$","flags":"u","message":"re"}]`, "😀", nil, nil},
		{"flag y", `[{"type":"regex","pattern":"b","flags":"y","message":"re"}]`, "ab", nil, []string{"re"}},
		{"flag y at the start", `[{"type":"regex","pattern":"a","flags":"y","message":"re"}]`, "ab", nil, nil},
		{"inline flag", `[{"type":"regex","pattern":"(?i)done","message":"re"}]`, "DONE", nil, nil},
		{"lookahead", `[{"type":"regex","pattern":"^(?!.*TODO).*$","flags":"s","message":"re"}]`, "a\nTODO", nil, []string{"re"}},
		{"$ matches only at the end", `[{"type":"regex","pattern":"a$","message":"re"}]`, "a\n", nil, []string{"re"}},

		{"schema holds", object, `{"a":1}`, nil, nil},
		{"no JSON", object, `a: 1`, nil, []string{"Output is not valid JSON for schema validation"}},
		{"text after JSON", object, `{"a":1} done`, nil, []string{"Output is not valid JSON for schema validation"}},
		{"no JSON, message", `{"type":"schema","schema":{},"message":"JSON!"}`, `a: 1`, nil, []string{"JSON!"}},
		{
			"schema fails", object, `{"a":"1","b":"y"}`, nil,
			[]string{"Validation Error at '/a': got string, want number; Validation Error at '/b': 'y' does not match pattern '^x'"},
		},
		{"schema lacks", object, `{}`, nil, []string{"Validation Error at '': missing property 'a'"}},
		{"schema of a list", `{"type":"schema","schema":{"type":"array","minItems":2},"message":"two"}`, `[1]`, nil, []string{"two"}},

		{"and holds", `{"and":[` + done + `,{"type":"length","min":1,"message":"len"}]}`, "DONE", nil, nil},
		{
			"and fails", `{"and":[` + done + `,{"type":"length","min":9,"message":"len"}]}`, "x", nil,
			[]string{"Validation composition failed", "needs DONE", "len"},
		},
		{"or holds", `{"or":[` + done + `,{"type":"length","min":9,"message":"len"}]}`, "DONE", nil, nil},
		{
			"or fails", `{"or":[` + done + `,{"type":"length","min":9,"message":"len"}]}`, "x", nil,
			[]string{"Validation composition failed", "At least one must be met: needs DONE; or: len"},
		},
		{"empty or", `{"or":[]}`, "x", nil, []string{"Validation composition failed", "'or' has no criteria, so no output can meet it"}},
		{"empty and", `{"and":[]}`, "x", nil, nil},
		{"not holds", `{"not":` + done + `}`, "x", nil, nil},
		{
			"not fails", `{"not":{"type":"contains","value":"TODO","message":""}}`, "TODO", nil,
			[]string{"Validation composition failed", `Must not hold: contains "TODO"`},
		},
		{
			"nested", `{"and":[{"or":[` + done + `,{"type":"regex","pattern":"^ok","message":"ok"}]},{"not":{"type":"contains","value":"TODO","message":"todo"}}]}`,
			"TODO", nil,
			[]string{"Validation composition failed", "At least one must be met: needs DONE; or: ok", `Must not hold: todo (contains "TODO")`},
		},
		{
			"composition in a list", `[{"not":` + done + `},` + done + `]`, "DONE", nil,
			[]string{"Validation composition failed", `Must not hold: needs DONE (contains "DONE")`},
		},

		{"condition holds", optional, "x", map[string]any{"strict": "true"}, []string{"needs DONE"}},
		{"condition is false", optional, "x", map[string]any{"strict": false}, nil},
		{"condition reads an unset variable", optional, "x", nil, nil},
		{"skipped rule in a not", `{"not":` + optional[1:len(optional)-1] + `}`, "x", nil, nil},
		{
			"skipped rule in an or", `{"or":[` + optional[1:len(optional)-1] + `,{"type":"length","min":9,"message":"len"}]}`, "x", nil,
			[]string{"Validation composition failed", "len"},
		},
		{"skipped rule may be invalid", `[{"type":"regex","pattern":"[","message":"","condition":{"var":"x"}}]`, "x", nil, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := checkIssues(t, tt.criteria, tt.output, tt.vars)
			if diff := cmp.Diff(append([]string{}, tt.want...), got); diff != "" {
				t.Errorf("issues of %q against %s (-want +got):\n%s", tt.output, tt.criteria, diff)
			}
		})
	}
}

func TestCheckSuggestions(t *testing.T) {
	t.Parallel()
	result, err := criteriapkg.Parse(decodeJSON(t, `[{"type":"length","min":5,"max":20,"message":"len"},{"type":"contains","value":"DONE","message":"done?"}]`)).
		Check("no", nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Review validation criteria and adjust output accordingly.",
		"Required: 5 to 20 characters; the output has 2.",
		`Required: contains "DONE".`,
	}
	if diff := cmp.Diff(want, result.Suggestions); diff != "" {
		t.Errorf("suggestions (-want +got):\n%s", diff)
	}
}

// TestCheckErrors tests errors in criteria, which only the author can fix.
func TestCheckErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		criteria string
		want     string
	}{
		{"pattern", `[{"type":"regex","pattern":"[","message":"m"}]`, "Invalid regex pattern in validationCriteria: ["},
		{"flag", `[{"type":"regex","pattern":"a","flags":"q","message":"m"}]`, "Invalid regex pattern in validationCriteria: a"},
		{"repeated flag", `[{"type":"regex","pattern":"a","flags":"ii","message":"m"}]`, "Invalid regex pattern in validationCriteria: a"},
		{"type", `[{"type":"sentiment","message":"m"}]`, "Unsupported validation rule type: sentiment"},
		{"no pattern", `[{"type":"regex","message":"m"}]`, "a rule of type regex has no pattern"},
		{"no value", `[{"type":"contains","message":"m"}]`, "a rule of type contains has no value"},
		{"schema", `[{"type":"schema","message":"m","schema":{"type":"text"}}]`, "invalid JSON schema in validationCriteria: "},
		{
			"foreign reference", `[{"type":"schema","message":"m","schema":{"$ref":"https://example.com/s.json"}}]`,
			"invalid JSON schema in validationCriteria: ",
		},
		{
			"file reference", `[{"type":"schema","message":"m","schema":{"$ref":"file:///etc/passwd"}}]`,
			"invalid JSON schema in validationCriteria: ",
		},
		{"number", `5`, "validation criteria must be a list, an object or a string, not a number"},
		{"object", `{}`, "a validation criterion has neither a type nor and, or or not"},
		{"and", `{"and":5}`, `"and" must be a list of criteria, not a number`},
		{"null in a list", `[null]`, "null is not a validation rule"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := criteriapkg.Parse(decodeJSON(t, tt.criteria)).Check("output", nil)
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) {
				t.Fatalf("error of %s = %v, want %q", tt.criteria, err, tt.want)
			}
			if code := guideway.ErrorCode(err); code != guideway.CodeInvalidDefinition {
				t.Errorf("code = %s, want %s", code, guideway.CodeInvalidDefinition)
			}
		})
	}
}

// catastrophic is a pattern that needs exponential time on evilOutput.
const catastrophic = `^(a+)+$`

// evilOutput is an output that catastrophic does not match.
func evilOutput() string { return strings.Repeat("a", 60) + "!" }

func TestCheckIsBounded(t *testing.T) {
	t.Parallel()
	rule := `{"type":"regex","pattern":"` + catastrophic + `","message":"letters"}`
	tests := []struct {
		name     string
		criteria string
		output   string
		want     []string
	}{
		{"rule", rule, evilOutput(), []string{"letters", "Pattern /^(a+)+$/ took too long on this output (over 250ms)"}},
		{
			"not", `{"not":` + rule + `}`, evilOutput(),
			[]string{"Validation composition failed", "letters", "Pattern /^(a+)+$/ took too long on this output (over 250ms)"},
		},
		{
			"schema", `{"type":"schema","schema":{"items":{"pattern":"` + catastrophic + `"}},"message":""}`,
			`["` + strings.Join([]string{evilOutput(), evilOutput(), evilOutput(), evilOutput(), evilOutput(), evilOutput(), evilOutput(), evilOutput()}, `","`) + `"]`,
			[]string{"A pattern of the schema took too long on this output (over 250ms)"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, checkIssues(t, tt.criteria, tt.output, nil)); diff != "" {
				t.Errorf("issues (-want +got):\n%s", diff)
			}
		})
	}
	t.Run("many rules", func(t *testing.T) {
		t.Parallel()
		rules := strings.TrimSuffix(strings.Repeat(rule+",", 200), ",")
		start := time.Now()
		got := checkIssues(t, "["+rules+"]", evilOutput(), nil)
		if took := time.Since(start); took > 20*time.Second {
			t.Errorf("200 patterns took %v", took)
		}
		if want := "Pattern /^(a+)+$/ was not tested: 3 other patterns took over 250ms each"; got[len(got)-1] != want {
			t.Errorf("last issue = %q, want %q", got[len(got)-1], want)
		}
	})
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name     string
		criteria string
		want     []string // path, code, and for a warning the word "warning"
	}{
		{"none", `[{"type":"contains","value":"x","message":"m"}]`, nil},
		{"pattern", `[{"type":"length","min":1,"message":"m"},{"type":"regex","pattern":"[","message":"m"}]`, []string{"/1/pattern criterion-pattern-invalid"}},
		{"flags", `{"type":"regex","pattern":"a","flags":"iq","message":"m"}`, []string{"/flags criterion-flags-invalid"}},
		{"inline flags", `{"or":[{"type":"regex","pattern":"(?i)a","message":"m"}]}`, []string{"/or/0/pattern criterion-inline-flags warning"}},
		{"escaped parenthesis", `{"type":"regex","pattern":"\\(?i)","message":"m"}`, []string{"/pattern criterion-pattern-invalid"}},
		{"no inline flags", `{"type":"regex","pattern":"(?:a)(?=b)(?!c)(?<=d)\\\\","message":"m"}`, nil},
		{"schema", `{"not":{"type":"schema","schema":{"type":"text"},"message":"m"}}`, []string{"/not/schema criterion-schema-invalid"}},
		{"bounds", `{"type":"length","min":9,"max":1,"message":"m"}`, []string{"/min criterion-bounds-crossed"}},
		{"negative", `{"type":"length","min":-2,"max":-1,"message":"m"}`, []string{"/min criterion-bound-negative warning", "/max criterion-bound-negative"}},
		{"no bounds", `{"type":"length","message":"m"}`, []string{" criterion-field-missing warning"}},
		{"bound is not a number", `{"type":"length","min":"5","message":"m"}`, []string{"/min criterion-field-type"}},
		{"no value", `[{"type":"contains","message":"m"}]`, []string{"/0 criterion-field-missing"}},
		{"value is not a string", `[{"type":"contains","value":5,"message":"m"}]`, []string{"/0/value criterion-field-type"}},
		{"no schema", `[{"type":"schema","message":"m"}]`, []string{"/0 criterion-field-missing"}},
		{"type", `[{"type":"other","message":"m"}]`, []string{"/0/type criterion-type-unknown"}},
		{"composition", `{"and":[{"or":5}]}`, []string{"/and/0/or criterion-not-understood"}},
		{"empty and", `{"and":[]}`, []string{"/and criterion-empty warning"}},
		{"empty or", `{"or":[]}`, []string{"/or criterion-empty"}},
		{"condition", `[{"type":"contains","value":"a","message":"m","condition":{"foo":1}}]`, []string{"/0/condition criterion-never-applies warning"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, p := range criteriapkg.Parse(decodeJSON(t, tt.criteria)).Diagnostics() {
				line := p.Path + " " + p.Code
				if p.Warning {
					line += " warning"
				}
				if p.Message == "" || p.Fix == "" {
					t.Errorf("%s has no message or no fix: %+v", line, p)
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("diagnostics of %s (-want +got):\n%s", tt.criteria, diff)
			}
		})
	}
}

func TestInlineFlagsFix(t *testing.T) {
	t.Parallel()
	diagnostics := criteriapkg.Parse(decodeJSON(t, `{"type":"regex","pattern":"(?im)a","flags":"i","message":"m"}`)).Diagnostics()
	if len(diagnostics) != 1 || diagnostics[0].Fix != `remove (?im) and set "flags": "im"` {
		t.Errorf("diagnostics = %+v", diagnostics)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	tests := []struct {
		criteria string
		want     []string
	}{
		{`null`, nil},
		{`"^a"`, []string{"matches /^a/"}},
		{
			`[{"type":"contains","value":"DONE"},{"type":"length","min":5,"max":20,"message":"Be brief"}]`,
			[]string{`contains "DONE"`, "Be brief (5 to 20 characters)"},
		},
		{
			`[{"type":"length","min":5},{"type":"length","max":5},{"type":"length","min":5,"max":5},{"type":"length"}]`,
			[]string{"at least 5 characters", "at most 5 characters", "exactly 5 characters", "any length"},
		},
		{
			`{"or":[{"type":"regex","pattern":"a","flags":"i"},{"not":{"type":"contains","value":"b"}}]}`,
			[]string{`at least one of (matches /a/i; not (contains "b"))`},
		},
		{
			`[{"type":"schema","schema":{"type":"array"},"condition":{"var":"x","equals":1}}]`,
			[]string{`JSON that fits the schema {"type":"array"}, if x is 1`},
		},
	}
	for _, tt := range tests {
		t.Run(tt.criteria, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, criteriapkg.Parse(decodeJSON(t, tt.criteria)).Describe()); diff != "" {
				t.Errorf("description of %s (-want +got):\n%s", tt.criteria, diff)
			}
		})
	}
}
