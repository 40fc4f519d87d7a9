package engine_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/criteria"
)

// checkedRules are criteria of a step; they are the same in both dialects.
const checkedRules = `[{"type":"contains","value":"DONE","message":"say DONE"},
	{"type":"check","check":"test","with":{"package":"{{package}}"}},
	{"type":"command","argv":["go","vet","{{package}}"]}]`

// checkedFlow returns a definition of a dialect with a step that has the rules; after the
// step comes a gate.
func checkedFlow(t *testing.T, dialect, rules string) engine.Flow {
	t.Helper()
	text := `{"id":"checked","name":"Checked","description":"A step","version":"1.0.0","steps":[
		{"id":"work","title":"Work","prompt":"Work.","requireConfirmation":true,"validationCriteria":` + rules + `}]}`
	if dialect == "phases" {
		text = `{"id":"checked","version":"1.0.0","title":"Checked","initialPhase":"one","phases":[
			{"id":"one","name":"One","steps":[{"id":"work","name":"Work","validationCriteria":` + rules + `}],
			"checkpoints":[{"id":"work","name":"Agree","message":"Good?","options":[{"id":"confirm","label":"Yes"}]}]}]}`
	}
	d, found := workflow.Parse("checked.json", []byte(text))
	switch {
	case d == nil:
		t.Fatal(found)
		return nil
	case d.Phases != nil:
		return engine.CompilePhases(d.Phases)
	default:
		return engine.Compile(d.Steps)
	}
}

// checkedFlows returns the definitions of all dialects.
func checkedFlows(t *testing.T, rules string) map[string]engine.Flow {
	t.Helper()
	return map[string]engine.Flow{"steps": checkedFlow(t, "steps", rules), "phases": checkedFlow(t, "phases", rules)}
}

// submit returns a command with outcomes of checks; without keys there are none.
func submit(output string, vars map[string]any, checks map[string]criteria.CheckOutcome) engine.Command {
	return engine.Command{Continue: &engine.Continue{Output: output, Context: vars, Checks: checks}}
}

type outcomes = map[string]criteria.CheckOutcome

// TestCheckedStep checks, in both dialects, which commands complete a step with checks, and
// the rule that the other ones violate.
func TestCheckedStep(t *testing.T) {
	t.Parallel()
	pass, fail := criteria.CheckOutcome{Passed: true}, criteria.CheckOutcome{Issue: "exit 1"}
	undefined, inconclusive := criteria.CheckOutcome{Undefined: true}, criteria.CheckOutcome{Inconclusive: true, Issue: "too slow"}
	vars := map[string]any{"package": "./a"}
	for name, tt := range map[string]struct {
		output string
		vars   map[string]any
		checks outcomes
		rule   string
		label  string
	}{
		"nothing":                     {"", vars, outcomes{}, engine.RuleOutputMissing, ""},
		"a text rule fails":           {"work", vars, outcomes{}, engine.RuleCriteria, ""},
		"no outcomes":                 {"DONE", vars, outcomes{}, engine.RuleChecksPending, ""},
		"one outcome":                 {"DONE", vars, outcomes{"/1": pass}, engine.RuleChecksPending, ""},
		"a failed check":              {"DONE", vars, outcomes{"/1": pass, "/2": fail}, engine.RuleCriteria, ""},
		"a failed and a pending one":  {"DONE", vars, outcomes{"/1": fail}, engine.RuleCriteria, ""},
		"an inconclusive check":       {"DONE", vars, outcomes{"/1": inconclusive, "/2": pass}, engine.RuleCriteria, ""},
		"another key":                 {"DONE", vars, outcomes{"/0": pass, "/3": pass}, engine.RuleChecksPending, ""},
		"an unset variable":           {"DONE", nil, outcomes{}, engine.RuleCheckVariable, ""},
		"a null variable":             {"DONE", map[string]any{"package": nil}, outcomes{}, engine.RuleCheckVariable, ""},
		"a value that is an option":   {"DONE", map[string]any{"package": "-exec=sh"}, outcomes{}, engine.RuleCheckVariable, ""},
		"a criterion as the output":   {`say DONE (contains "DONE")`, vars, outcomes{"/1": pass, "/2": pass}, engine.RulePlaceholder, ""},
		"an issue as the output":      {`Required: contains "DONE".`, vars, outcomes{"/1": pass, "/2": pass}, engine.RulePlaceholder, ""},
		"a placeholder as the output": {"<DONE>", vars, outcomes{"/1": pass, "/2": pass}, engine.RulePlaceholder, ""},
		"all pass":                    {"DONE", vars, outcomes{"/1": pass, "/2": pass}, "", engine.LabelEvidence},
		"one is undefined":            {"DONE", vars, outcomes{"/1": undefined, "/2": pass}, "", engine.LabelEvidence},
		"all are undefined":           {"DONE", vars, outcomes{"/1": undefined, "/2": undefined}, "", engine.LabelClaim},
		"nobody executes checks":      {"DONE", nil, nil, "", engine.LabelClaim},
	} {
		for dialect, flow := range checkedFlows(t, checkedRules) {
			s := applyCommands(t, flow, engine.State{}, startCommand(nil))
			events, r := flow.Decide(s, submit(tt.output, tt.vars, tt.checks))
			if (r == nil) != (tt.rule == "") || r != nil && r.Rule != tt.rule {
				t.Errorf("%s, %s: got %+v, want rule %q", dialect, name, r, tt.rule)
				continue
			}
			if r == nil && events[0].Label() != tt.label {
				t.Errorf("%s, %s: is labeled %s", dialect, name, events[0].Label())
			}
		}
	}
}

// TestPendingChecksAreFilled checks the requests that the engine returns: the rule of the
// definition, and the rule with the variables after the call.
func TestPendingChecksAreFilled(t *testing.T) {
	t.Parallel()
	for dialect, flow := range checkedFlows(t, checkedRules) {
		s := applyCommands(t, flow, engine.State{}, startCommand(map[string]any{"package": "./old"}))
		_, r := flow.Decide(s, submit("DONE", map[string]any{"package": "./new; sh"}, outcomes{}))
		if r == nil || len(r.Pending) != 2 {
			t.Fatalf("%s: got %+v", dialect, r)
		}
		first, second := r.Pending[0], r.Pending[1]
		if first.Key != "/1" || first.Template.With["package"] != "{{package}}" || first.Rule.With["package"] != "./new; sh" {
			t.Errorf("%s: got %+v", dialect, first)
		}
		if d := cmp.Diff([]string{"go", "vet", "./new; sh"}, second.Rule.Argv); d != "" {
			t.Errorf("%s: %s", dialect, d)
		}
	}
}

// TestEmptyPathNamesItsVariable checks that an empty path of a file is refused with the
// variable that fills it.
func TestEmptyPathNamesItsVariable(t *testing.T) {
	t.Parallel()
	for _, dialect := range []string{"steps", "phases"} {
		flow := checkedFlow(t, dialect, `[{"type":"file","path":"{{report}}","exists":true}]`)
		s := applyCommands(t, flow, engine.State{}, startCommand(nil))
		_, r := flow.Decide(s, submit("DONE", map[string]any{"report": ""}, outcomes{}))
		if r == nil || r.Rule != engine.RuleCheckVariable || !strings.Contains(r.Message, "{{report}} is empty") {
			t.Errorf("%s: got %+v", dialect, r)
		}
		if _, r := flow.Decide(s, submit("DONE", map[string]any{"report": "report.md"}, outcomes{})); r == nil || r.Rule != engine.RuleChecksPending {
			t.Errorf("%s: with a path: got %+v", dialect, r)
		}
	}
}

// TestUnsetVariablesAreNamedOnce checks that a refusal names each unset variable of a check
// once, however often the check uses the variable.
func TestUnsetVariablesAreNamedOnce(t *testing.T) {
	t.Parallel()
	for dialect, flow := range checkedFlows(t, `[{"type":"command","argv":["go","vet","{{package}}/{{program}}","{{package}}","{{known}}"]}]`) {
		s := applyCommands(t, flow, engine.State{}, startCommand(nil))
		_, r := flow.Decide(s, submit("DONE", map[string]any{"known": "x", "package": nil}, outcomes{}))
		if r == nil || r.Rule != engine.RuleCheckVariable {
			t.Fatalf("%s: got %+v", dialect, r)
		}
		if d := cmp.Diff([]string{"package", "program"}, r.Allowed); d != "" {
			t.Errorf("%s: %s", dialect, d)
		}
	}
}

// TestCallCannotDisableChecks checks that a rule applies if its condition holds before or
// after the call.
func TestCallCannotDisableChecks(t *testing.T) {
	t.Parallel()
	for dialect, condition := range map[string]string{
		"steps": `{"var":"quick","not_equals":true}`, "phases": `{"type":"simple","variable":"quick","operator":"!=","value":true}`,
	} {
		flow := checkedFlow(t, dialect, `[{"type":"check","check":"test","condition":`+condition+`}]`)
		fail := outcomes{"/0": {Issue: "exit 1"}}
		s := applyCommands(t, flow, engine.State{}, startCommand(nil))
		if _, r := flow.Decide(s, submit("work", map[string]any{"quick": true}, fail)); r == nil || r.Rule != engine.RuleCriteria {
			t.Errorf("%s: got %+v", dialect, r)
		}
		s = applyCommands(t, flow, engine.State{}, startCommand(map[string]any{"quick": true}))
		if _, r := flow.Decide(s, submit("work", nil, fail)); r != nil {
			t.Errorf("%s: got %+v", dialect, r)
		}
	}
}

// TestCheckedPosition checks what a position says about its checks, and that it asks for the
// output and for unset variables.
func TestCheckedPosition(t *testing.T) {
	t.Parallel()
	for dialect, flow := range checkedFlows(t, checkedRules) {
		s := applyCommands(t, flow, engine.State{}, startCommand(nil))
		pos := flow.PositionOf(s)
		fields := fieldNames(pos)
		if !slices.Equal(fields, []string{"output", "context.package"}) {
			t.Errorf("%s: the fields are %v", dialect, fields)
		}
		if len(pos.Criteria) != 3 || pos.Criteria[0] != `say DONE (contains "DONE")` || !slices.Equal(pos.Checked, []int{1, 2}) {
			t.Errorf("%s: the criteria are %v, with checks in %v", dialect, pos.Criteria, pos.Checked)
		}
		s = applyCommands(t, flow, engine.State{}, startCommand(map[string]any{"package": "./a"}))
		want := []engine.CheckInfo{
			{Key: "/1", Type: criteria.NamedCheck, Name: "test", Describe: "the check test of the project passes"},
			{Key: "/2", Type: criteria.Command, Describe: "the command `go vet ./a` exits with 0"},
		}
		if d := cmp.Diff(want, flow.PositionOf(s).Checks); d != "" {
			t.Errorf("%s: %s", dialect, d)
		}
	}
	composed := checkedFlow(t, "phases", `{"or":[{"type":"check","check":"test"},{"type":"contains","value":"DONE","message":"say DONE"}]},
		"actions":[{"action":"validate","message":"Check the result"}]`)
	pos := composed.PositionOf(applyCommands(t, composed, engine.State{}, startCommand(nil)))
	if len(pos.Criteria) != 2 || !slices.Equal(pos.Checked, []int{1}) {
		t.Errorf("the criteria are %v, with checks in %v", pos.Criteria, pos.Checked)
	}
	rule := `{"type":"command","argv":["go","` + strings.Repeat("x", 5000) + `"]}`
	for dialect, flow := range checkedFlows(t, "["+strings.Repeat(rule+",", 30)+rule+"]") {
		pos := flow.PositionOf(applyCommands(t, flow, engine.State{}, startCommand(nil)))
		if n := len(asJSON(t, pos.Checks)); n == 0 || n > 3000 {
			t.Errorf("%s: the checks have %d bytes", dialect, n)
		}
	}
}

// fieldNames returns the names of the fields of a position.
func fieldNames(pos engine.Position) []string {
	var names []string
	for _, f := range pos.Fields() {
		names = append(names, f.Name)
	}
	return names
}

// TestRecheckOfCheckedSteps checks that a bundle with evidence is accepted, and that one whose
// evidence contradicts its output is not.
func TestRecheckOfCheckedSteps(t *testing.T) {
	t.Parallel()
	for dialect, flow := range checkedFlows(t, checkedRules) {
		started, _ := flow.Decide(engine.State{}, startCommand(map[string]any{"package": "./a"}))
		s, err := flow.FoldFrom(engine.State{}, started)
		if err != nil {
			t.Fatal(err)
		}
		done, r := flow.Decide(s, submit("DONE", nil, outcomes{"/1": {Passed: true}, "/2": {Passed: true}}))
		if r != nil {
			t.Fatal(r)
		}
		if pos := flow.PositionOf(engine.Apply(s, done[0])); pos.Kind != engine.PositionGate {
			t.Errorf("%s: the position is %+v", dialect, pos)
		}
		if _, err := engine.Recheck(flow, slices.Concat(started, done)); err != nil {
			t.Errorf("%s: %v", dialect, err)
		}
		for name, forge := range map[string]func(e *engine.Event){
			"a failed check":   func(e *engine.Event) { e.Evidence[1].Passed = false },
			"a missing check":  func(e *engine.Event) { e.Evidence = e.Evidence[:1] },
			"another decision": func(e *engine.Event) { e.Evidence[0].Decided = false },
			"another output":   func(e *engine.Event) { e.Output = "FAIL" },
		} {
			forged := slices.Clone(done)
			forged[0].Evidence = slices.Clone(forged[0].Evidence)
			forge(&forged[0])
			if _, err := engine.Recheck(flow, slices.Concat(started, forged)); err == nil {
				t.Errorf("%s: accepted %s", dialect, name)
			}
		}
	}
}

// TestHasChecks checks which definitions have checks.
func TestHasChecks(t *testing.T) {
	t.Parallel()
	const text, check = `[{"type":"contains","value":"x","message":"x"}]`, `{"and":[{"not":{"type":"file","path":"a"}},{"type":"length","min":1,"message":"m"}]}`
	for rules, want := range map[string]bool{text: false, check: true, "[]": false} {
		for dialect, flow := range checkedFlows(t, rules) {
			if flow.HasChecks() != want {
				t.Errorf("%s, %s: got %v", dialect, rules, !want)
			}
		}
		inLoop := compileSteps(t, `[{"id":"the-loop","type":"loop","title":"Loop","loop":{"type":"for","count":1,"maxIterations":1},"body":[{"id":"work","title":"Work","prompt":"Work.","validationCriteria":`+rules+`}]}]`)
		d, _ := workflow.Parse("p.json", []byte(`{"id":"checked","version":"1.0.0","title":"Checked","initialPhase":"one","phases":[{"id":"one","name":"One",
			"loops":[{"id":"each","name":"Each","type":"forEach","over":"list","steps":[{"id":"work","name":"Work","validationCriteria":`+rules+`}]}]}]}`))
		if inLoop.HasChecks() != want || engine.CompilePhases(d.Phases).HasChecks() != want {
			t.Errorf("in a loop, %s: not %v", rules, want)
		}
	}
}
