package criteria_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	criteriapkg "github.com/guideway-dev/guideway/internal/workflow/criteria"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// TestJudgeChecks checks which checks decide a verdict, and the verdict with their outcomes.
// Rules over the output are checked first.
func TestJudgeChecks(t *testing.T) {
	t.Parallel()
	const test = `{"type":"check","check":"test","message":"the tests pass"}`
	const lint = `{"type":"check","check":"lint","message":"the linter is clean"}`
	const done = `{"type":"contains","value":"DONE","message":"say DONE"}`
	pass, fail, undefined := criteriapkg.CheckOutcome{Passed: true}, criteriapkg.CheckOutcome{Issue: "exit 1"}, criteriapkg.CheckOutcome{Undefined: true}
	type outcomes = map[string]criteriapkg.CheckOutcome
	for name, tt := range map[string]struct {
		criteria, output string
		checks           outcomes
		valid            bool
		pending          []string
		issues           []string
	}{
		"all are pending":                      {`[` + test + `,` + lint + `]`, "x", outcomes{}, false, []string{"/0", "/1"}, nil},
		"a failed text rule needs no check":    {`[` + test + `,` + done + `]`, "x", outcomes{}, false, nil, []string{"say DONE"}},
		"one is left":                          {`[` + test + `,` + lint + `]`, "x", outcomes{"/0": pass}, false, []string{"/1"}, nil},
		"a failed check needs no other":        {`[` + test + `,` + lint + `]`, "x", outcomes{"/0": fail}, false, nil, []string{"the tests pass"}},
		"both pass":                            {`[` + test + `,` + lint + `]`, "x", outcomes{"/0": pass, "/1": pass}, true, nil, nil},
		"an alternative without a check holds": {`{"or":[` + test + `,` + done + `]}`, "DONE", outcomes{}, true, nil, nil},
		"the first alternative is tried first": {`{"or":[` + test + `,` + lint + `,` + done + `]}`, "x", outcomes{}, false, []string{"/or/0"}, nil},
		"the second alternative is next":       {`{"or":[` + test + `,` + lint + `]}`, "x", outcomes{"/or/0": fail}, false, []string{"/or/1"}, nil},
		"a negation passes on failure":         {`{"not":` + test + `}`, "x", outcomes{"/not": fail}, true, nil, nil},
		"a negation waits":                     {`{"and":[{"not":` + test + `}]}`, "x", outcomes{}, false, []string{"/and/0/not"}, nil},
		"an undefined check is skipped":        {`[` + test + `,` + done + `]`, "DONE", outcomes{"/0": undefined}, true, nil, nil},
		"nobody executes checks":               {`[` + test + `]`, "x", nil, true, nil, nil},
	} {
		got, err := criteriapkg.Parse(decodeJSON(t, tt.criteria)).Judge(criteriapkg.Input{Output: tt.output, Vars: expr.Map(nil), Checks: tt.checks})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var pending []string
		for _, p := range got.Pending {
			pending = append(pending, p.Key)
		}
		if got.Valid != tt.valid || !slices.Equal(pending, tt.pending) || !slices.Equal(got.Issues[:min(1, len(got.Issues))], tt.issues) {
			t.Errorf("%s: %+v, want valid %v, pending %v, issues %v", name, got, tt.valid, tt.pending, tt.issues)
		}
	}
}

// TestParseChecks checks the diagnostics of each type of check, and that a valid rule keeps
// its fields.
func TestParseChecks(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		`{"type":"check"}`:                                                                                       "has no check",
		`{"type":"check","check":"Test All"}`:                                                                    "is not a valid check name",
		`{"type":"check","check":"test","argv":["x"]}`:                                                           `no field "argv"`,
		`{"type":"command","argv":[]}`:                                                                           "has no argv",
		`{"type":"command","argv":"go test ./..."}`:                                                              `"argv" cannot be a string`,
		`{"type":"command","argv":["go"],"timeout":"2h"}`:                                                        "is not a duration above 0s and at most",
		`{"type":"command","argv":["go"],"dir":"../else"}`:                                                       "leaves the workspace",
		`{"type":"command","argv":["find",".","-name","{{x}}"]}`:                                                 "find can run its arguments as commands",
		`{"type":"file","path":"a\\b"}`:                                                                          "has a backslash or a colon",
		`{"type":"command","argv":["sh","find.sh","{{name}}"]}`:                                                  "",
		`{"type":"command","argv":["go"],"matches":"("}`:                                                         "invalid pattern",
		`{"type":"file"}`:                                                                                        "has no path",
		`{"type":"file","path":"/etc/passwd"}`:                                                                   "leaves the workspace",
		`{"type":"file","path":"a","minBytes":3,"maxBytes":2}`:                                                   "is above maxBytes",
		`{"type":"git"}`:                                                                                         "checks nothing",
		`{"type":"http","status":200}`:                                                                           "has no url",
		`{"type":"tool","arguments":{}}`:                                                                         "has no tool",
		`{"type":"command","argv":["go"],"exitCode":256}`:                                                        "from 0 to 255",
		`{"type":"command","argv":["go"],"dir":"{{dir}}"}`:                                                       "is not filled in",
		`{"type":"command","argv":["{{tool}}","test"]}`:                                                          "which program",
		`{"type":"command","argv":["sh","-ec","go test {{ pkg }}"]}`:                                             "which program",
		`{"type":"command","argv":["/usr/bin/python3.12","-E","-c","{{code}}"]}`:                                 "which program",
		`{"type":"command","argv":["python3","{{script}}","a"]}`:                                                 "which program",
		`{"type":"command","argv":["perl","-ne","1","-e","{{code}}"]}`:                                           "which program",
		`{"type":"command","argv":["node","--eval={{code}}"]}`:                                                   "which program",
		`{"type":"command","argv":["env","-i","A=1","bash","-lc","{{code}}"]}`:                                   "which program",
		`{"type":"command","argv":["sudo","-u","me","sh","{{script}}"]}`:                                         "which program",
		`{"type":"command","argv":["timeout","5s","{{tool}}"]}`:                                                  "which program",
		`{"type":"file","path":"a","minBytes":-1}`:                                                               "at least 0 bytes",
		`{"type":"file","path":"a","exists":false,"matches":"x"}`:                                                "has no content",
		`{"type":"file","path":"a","exists":false,"schema":{}}`:                                                  "has no content",
		`{"type":"file","path":"a","schema":{"type":"objekt"}}`:                                                  "invalid JSON schema",
		`{"type":"git","inside":["{{dir}}/**"]}`:                                                                 "is not filled in",
		`{"type":"git","inside":["src/"]}`:                                                                       "only a directory",
		`{"type":"git","outside":[""]}`:                                                                          "it is empty",
		`{"type":"protect","paths":["a","../b"]}`:                                                                "leaves the workspace",
		`{"type":"protect","paths":["./a"]}`:                                                                     "dot as a segment",
		`{"type":"protect","paths":["a\\b"]}`:                                                                    "no backslashes",
		`{"type":"protect","paths":[".git/config"]}`:                                                             "its own directory",
		`{"type":"protect","paths":["[a"]}`:                                                                      "unclosed bracket",
		`{"type":"protect","paths":["{a,b"]}`:                                                                    "unclosed bracket",
		`{"type":"http","url":"ftp://a/"}`:                                                                       "does not begin with http",
		`{"type":"http","url":"http://{{host}}/"}`:                                                               "does not begin with http",
		`{"type":"http","url":"http://a/","status":99}`:                                                          "from 100 to 599",
		`{"type":"tool","tool":"{{tool}}"}`:                                                                      "is not filled in",
		`[{"not":{"type":"protect","paths":["a"]}}]`:                                                             "any edit of them passes",
		`{"or":[{"type":"check","check":"test"},{"type":"contains","value":"x"}]}`:                               "so a claim passes without the check",
		`[{"or":[{"type":"check","check":"a"},{"and":[{"type":"length","min":1}]}]}]`:                            "so a claim passes without the check",
		`{"not":{"and":[{"type":"check","check":"a"},{"type":"contains","value":"x"}]}}`:                         "so a claim passes without the check",
		`{"not":{"or":[{"type":"check","check":"a"},{"type":"contains","value":"x"}]}}`:                          "",
		`{"or":[{"type":"check","check":"a"},{"and":[{"type":"length","min":1},{"type":"check","check":"b"}]}]}`: "",
		`{"and":[{"not":{"type":"protect","paths":["a/**"]}},{"type":"check","check":"test"}]}`:                  "",
		`{"type":"command","argv":["sh","-c","docker ps --format '{{json .}}'"]}`:                                "",
		`{"type":"command","argv":["sh","-e","test.sh","{{pkg}}"]}`:                                              "",
		`{"type":"command","argv":["python","-m","pytest","{{path}}"]}`:                                          "",
		`{"type":"command","argv":["timeout","5","go","test","{{pkg}}"]}`:                                        "",
		`{"type":"http","url":"http://127.0.0.1:80/{{id}}"}`:                                                     "",
		`{"type":"protect","paths":["**/*_test.go","{a,b}/[cd].go",".github/**"]}`:                               "",
		`{"type":"check","check":"test","with":{"package":"{{pkg}}"}}`:                                           "",
		`{"type":"command","argv":["go","test","./..."],"exitCode":0}`:                                           "",
		`{"type":"file","path":"a/b.md","exists":false}`:                                                         "",
		`{"type":"git","clean":true,"inside":["src/**"]}`:                                                        "",
		`{"type":"http","url":"http://127.0.0.1:80/","matches":"ok"}`:                                            "",
		`{"type":"tool","tool":"a__b","result":{"var":"ok","equals":1}}`:                                         "",
	} {
		c := criteriapkg.Parse(decodeJSON(t, rule))
		var found []string
		for _, d := range c.Diagnostics() {
			found = append(found, d.Message)
			if d.Fix == "" {
				t.Errorf("%s: %q has no fix", rule, d.Message)
			}
		}
		if text := strings.Join(found, "; "); (want == "") != (text == "") || !strings.Contains(text, want) {
			t.Errorf("%s: %q, want %q", rule, text, want)
		}
		if want == "" && !c.HasCheck() {
			t.Errorf("%s: no check", rule)
		}
	}
}

// TestFixOfAvoidableChecks checks that the fix names the composition that requires both
// rules: below a "not" it is "or".
func TestFixOfAvoidableChecks(t *testing.T) {
	t.Parallel()
	for rule, want := range map[string]string{
		`{"or":[{"type":"check","check":"a"},{"type":"contains","value":"x"}]}`:          `require both: put the rules into an "and", or remove the rule on the text`,
		`{"not":{"and":[{"type":"check","check":"a"},{"type":"contains","value":"x"}]}}`: `require both: put the rules into an "or", or remove the rule on the text`,
	} {
		found := criteriapkg.Parse(decodeJSON(t, rule)).Diagnostics()
		if len(found) != 1 || found[0].Fix != want {
			t.Errorf("%s: %+v, want the fix %s", rule, found, want)
		}
	}
}

// TestCheckConditions checks that a condition has the form of its dialect.
func TestCheckConditions(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{`{"var":"ok","equals":true}`, `{"type":"simple","variable":"ok","operator":"==","value":true}`} {
		rule := `{"type":"tool","tool":"a__b","result":` + condition + `,"condition":` + condition + `}`
		c := criteriapkg.Parse(decodeJSON(t, rule))
		for value, want := range map[bool]bool{true: true, false: false} {
			vars := expr.Map(map[string]any{"ok": value})
			if got := c.CheckRule.ResultCondition().Holds(vars); got != want {
				t.Errorf("%s: the result is %v", condition, got)
			}
			if got := c.Condition.Holds(vars); got != want {
				t.Errorf("%s: the condition is %v", condition, got)
			}
		}
	}
}

// TestFillCheckTemplates checks that a value stays one argument, and that the rule of the
// definition does not change.
func TestFillCheckTemplates(t *testing.T) {
	t.Parallel()
	rule := criteriapkg.Parse(decodeJSON(t, `{"type":"command","argv":["go","test","{{pkg}}"]}`)).CheckRule
	got := rule.FillTemplates(func(s string) string { return strings.ReplaceAll(s, "{{pkg}}", "./a; rm -rf /") })
	if d := cmp.Diff([]string{"go", "test", "./a; rm -rf /"}, got.Argv); d != "" {
		t.Error(d)
	}
	if rule.Argv[2] != "{{pkg}}" {
		t.Errorf("the rule is now %v", rule.Argv)
	}
}

// TestCheckTexts checks which texts of a check may have variables.
func TestCheckTexts(t *testing.T) {
	t.Parallel()
	rule := criteriapkg.Parse(decodeJSON(t, `{"type":"tool","tool":"t","arguments":{"b/c":["x",{"d":"y"}],"n":1},"result":{"var":"z"}}`)).CheckRule
	want := []criteriapkg.Text{{Path: "/arguments/b~1c/0", Text: "x"}, {Path: "/arguments/b~1c/1/d", Text: "y"}}
	if d := cmp.Diff(want, rule.Texts()); d != "" {
		t.Error(d)
	}
	filled := rule.FillTemplates(strings.ToUpper)
	if d := cmp.Diff(map[string]any{"b/c": []any{"X", map[string]any{"d": "Y"}}, "n": json.Number("1")}, filled.Arguments); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(want, rule.Texts()); d != "" {
		t.Errorf("the rule changed: %s", d)
	}
}

// TestVariableInProgram checks in which arguments of a command a variable decides what runs.
func TestVariableInProgram(t *testing.T) {
	t.Parallel()
	for command, want := range map[string]int{
		"go test {{x}}": -1, "{{x}}": 0, "./{{x}}/run": 0, "make -C dir {{x}}": -1,
		"sh -c {{x}}": 2, "bash -ec {{x}}": 2, "bash {{x}}": 1, "bash run.sh {{x}}": -1, "sh -c true {{x}}": -1, "/bin/zsh -c {{x}}": 2,
		"python -c {{x}}": 2, "python3.12 -m {{x}}": 2, "python -m pytest {{x}}": -1, "node -e {{x}}": 2, "node --eval {{x}}": 2, "node --eval={{x}}": 1,
		"perl -ne {{x}}": 2, "perl -e 1 -e {{x}}": 4, "ruby -e {{x}}": 2, "pwsh -Command {{x}}": 2, "cmd /c {{x}}": 2, "cmd.exe /C {{x}}": 2,
		"env {{x}}": 1, "env A={{x}} go test": 1, "env A=1 {{x}}": 2, "env A=1 sh -c {{x}}": 4, "env go test {{x}}": -1,
		"timeout 5m go test {{x}}": -1, "timeout 5m sh -c {{x}}": 4, "sudo -u root {{x}}": 3, "xargs -n 1 bash -c {{x}}": 5, "nice sudo sh -c {{x}}": 4,
		"ssh host {{x}}": 2, "su -c {{x}}": 2, "find . -name {{x}}": 3, "watch {{x}}": 1, "awk {{x}} file": 1, "sed -n {{x}}": 2,
	} {
		if got, _ := criteriapkg.VariableInProgram(strings.Fields(command)); got != want {
			t.Errorf("%s: %d, want %d", command, got, want)
		}
	}
	for command, want := range map[string]string{
		"find . -name {{x}}": "find", "/usr/bin/ssh.exe host {{x}}": "ssh", "timeout 5m env A=1 find {{x}}": "find",
		"find . -name x": "", "{{x}}": "", "sh -c {{x}}": "", "env {{x}} find": "", "sh find.sh {{x}}": "",
	} {
		if _, got := criteriapkg.VariableInProgram(strings.Fields(command)); got != want {
			t.Errorf("%s: the caller is %q, want %q", command, got, want)
		}
	}
	for command, want := range map[string]int{
		"go test -run {{x}}": -1, "go test -run={{x}}": -1, "go test --run={{x}}": -1, "cc -I{{x}}": -1, "go test -{{x}}": 2, "go test --{{x}}": 2, "tar --check{{x}}": 1,
	} {
		if got := criteriapkg.VariableInOption(strings.Fields(command)); got != want {
			t.Errorf("%s: %d, want %d", command, got, want)
		}
	}
}
