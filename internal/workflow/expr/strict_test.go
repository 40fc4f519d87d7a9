package expr_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// comparisonText writes a comparison of a phase workflow.
func comparisonText(variable, operator, value string) string {
	if value != "" {
		value = `,"value":` + value
	}
	return `{"type":"simple","variable":"` + variable + `","operator":"` + operator + `"` + value + `}`
}

// TestStrictHolds tests the truth table of the original implementation, except for members
// that JavaScript objects inherit.
func TestStrictHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		condition, vars string
		want            bool
	}{
		{comparisonText("a", "==", `1`), `{"a":"1"}`, false},
		{comparisonText("a", "==", `1`), `{"a":1}`, true},
		{comparisonText("a", "==", `1`), `{"a":true}`, false},
		{comparisonText("a", "==", `"x"`), `{"a":"X"}`, false},
		{comparisonText("a", "==", `"x"`), `{"a":" x"}`, false},
		{comparisonText("a", "==", `true`), `{"a":"true"}`, false},
		{comparisonText("a", "==", `false`), `{}`, false},
		{comparisonText("a", "!=", `1`), `{}`, true},
		{comparisonText("a", "!=", `null`), `{}`, true},
		{comparisonText("a", "!=", `null`), `{"a":null}`, false},
		{comparisonText("a", "!=", `1`), `{"a":"1"}`, true},
		{comparisonText("a", "==", `null`), `{}`, false},
		{comparisonText("a", "==", `null`), `{"a":null}`, true},
		{comparisonText("a", "==", `null`), `{"a":false}`, false},
		{comparisonText("a", "exists", ``), `{"a":null}`, false},
		{comparisonText("a", "exists", ``), `{"a":false}`, true},
		{comparisonText("a", "exists", ``), `{"a":0}`, true},
		{comparisonText("a", "exists", ``), `{"a":""}`, true},
		{comparisonText("a", "exists", ``), `{}`, false},
		{comparisonText("a", "notExists", ``), `{"a":""}`, false},
		{comparisonText("a", "notExists", ``), `{"a":null}`, true},
		{comparisonText("a", "notExists", ``), `{}`, true},
		{comparisonText("a", ">", `80`), `{"a":"90"}`, false},
		{comparisonText("a", ">", `80`), `{"a":90}`, true},
		{comparisonText("a", ">", `"80"`), `{"a":90}`, false},
		{comparisonText("a", ">", `80`), `{}`, false},
		{comparisonText("a", "<", `80`), `{}`, false},
		{comparisonText("a", "<", `1`), `{"a":null}`, false},
		{comparisonText("a", "<", `1`), `{"a":false}`, false},
		{comparisonText("a", "<", `"b"`), `{"a":"a"}`, false},
		{comparisonText("a", ">=", `1`), `{"a":1}`, true},
		{comparisonText("a", "<=", `1`), `{"a":1}`, true},
		{comparisonText("a", "<", `1`), `{"a":1}`, false},
		{comparisonText("a", "==", `1`), `{"a":[1]}`, false},
		{comparisonText("a", "!=", `1`), `{"a":{}}`, true},
		{comparisonText("x.y", "==", `2`), `{"x":{"y":2}}`, true},
		{comparisonText("x.y", "==", `2`), `{"x.y":2}`, true},
		{comparisonText("x.y", "==", `2`), `{"x":{"y":2},"x.y":3}`, false},
		{comparisonText("x.y", "!=", `2`), `{"x":5}`, true},
		{comparisonText("x.y", "exists", ``), `{"x":null}`, false},
		{comparisonText("x.y.z", "exists", ``), `{"x":{"y":{"z":0}}}`, true},
		{comparisonText("list.0", "==", `"q"`), `{"list":["q"]}`, true},
		{comparisonText("list.1", "==", `"q"`), `{"list":["q"]}`, false},
		{comparisonText("list.1", "==", `null`), `{"list":["q"]}`, false},
		{comparisonText("list.00", "exists", ``), `{"list":["q"]}`, false},
		{comparisonText("list.+0", "exists", ``), `{"list":["q"]}`, false},
		{comparisonText("list.-1", "exists", ``), `{"list":["q"]}`, false},
		{comparisonText("list.0.a", "==", `1`), `{"list":[{"a":1}]}`, true},
		{comparisonText("list.length", ">", `0`), `{"list":["q"]}`, true},
		{comparisonText("list.length", "==", `0`), `{"list":[]}`, true},
		{comparisonText("list.length.x", "exists", ``), `{"list":[]}`, false},
		{comparisonText("text.length", "exists", ``), `{"text":"abc"}`, false},
		{comparisonText("o.length", "==", `7`), `{"o":{"length":7}}`, true},
		{comparisonText("constructor", "exists", ``), `{}`, false},
		{comparisonText("__proto__", "exists", ``), `{}`, false},
		{comparisonText("o.toString", "exists", ``), `{"o":{}}`, false},
		{comparisonText("list.push", "exists", ``), `{"list":[]}`, false},
		{comparisonText("constructor", "==", `1`), `{"constructor":1}`, true},
		{`{"type":"not","condition":` + comparisonText("a", "==", "true") + `}`, `{}`, true},
		{`{"type":"and","conditions":[` + comparisonText("a", "==", "1") + `,` + comparisonText("b", "!=", "1") + `]}`, `{"a":1}`, true},
		{`{"type":"and","conditions":[` + comparisonText("a", "==", "1") + `,` + comparisonText("b", "==", "1") + `]}`, `{"a":1}`, false},
		{`{"type":"or","conditions":[` + comparisonText("a", "==", "1") + `,` + comparisonText("b", "==", "1") + `]}`, `{"b":1}`, true},
		{`{"type":"or","conditions":[` + comparisonText("a", "==", "1") + `,` + comparisonText("b", "==", "1") + `]}`, `{}`, false},
		{`{"type":"and","conditions":[]}`, `{}`, true},
		{`{"type":"or","conditions":[]}`, `{}`, false},
		// An invalid condition never holds, and neither does its negation.
		{`{"type":"bogus"}`, `{}`, false},
		{`{"type":"not","condition":{"type":"bogus"}}`, `{}`, false},
		{`{"type":"not","condition":{"var":"a","equals":1}}`, `{}`, false},
		{`{"type":"simple","variable":"a","operator":"contains","value":"b"}`, `{"a":"b"}`, false},
		{`"a == 1"`, `{"a":1}`, false},
		{`null`, `{}`, true},
	}
	for _, tt := range tests {
		t.Run(tt.condition+tt.vars, func(t *testing.T) {
			t.Parallel()
			e := expr.ParseStrict(decodeJSON(t, tt.condition))
			if got := e.Holds(decodeVars(t, tt.vars)); got != tt.want {
				t.Errorf("%s with %s = %v, want %v", tt.condition, tt.vars, got, tt.want)
			}
		})
	}
}

// TestStrictTable tests every operator with every kind of literal and value. Each letter of
// a row is the result for one literal.
func TestStrictTable(t *testing.T) {
	t.Parallel()
	literals := []string{`null`, `true`, `false`, `0`, `5`, `""`, `"5"`}
	table := map[string]map[string]string{
		//              literals: null true false 0 5 "" "5"
		"==": {
			"": "-------", `null`: "T------", `true`: "-T-----", `false`: "--T----", `0`: "---T---", `5`: "----T--", `""`: "-----T-", `"5"`: "------T", `[]`: "-------", `{}`: "-------", `[5]`: "-------",
		},
		"!=": {
			"": "TTTTTTT", `null`: "-TTTTTT", `true`: "T-TTTTT", `false`: "TT-TTTT", `0`: "TTT-TTT", `5`: "TTTT-TT", `""`: "TTTTT-T", `"5"`: "TTTTTT-", `[]`: "TTTTTTT", `{}`: "TTTTTTT", `[5]`: "TTTTTTT",
		},
		">":  {"": "-------", `null`: "-------", `true`: "-------", `0`: "-------", `5`: "---T---", `"5"`: "-------", `[5]`: "-------"},
		">=": {"": "-------", `null`: "-------", `true`: "-------", `0`: "---T---", `5`: "---TT--", `"5"`: "-------", `[5]`: "-------"},
		"<":  {"": "-------", `null`: "-------", `true`: "-------", `0`: "----T--", `5`: "-------", `"5"`: "-------", `[5]`: "-------"},
		"<=": {"": "-------", `null`: "-------", `true`: "-------", `0`: "---TT--", `5`: "----T--", `"5"`: "-------", `[5]`: "-------"},
		"exists": {
			"": "-------", `null`: "-------", `true`: "TTTTTTT", `false`: "TTTTTTT", `0`: "TTTTTTT", `""`: "TTTTTTT", `[]`: "TTTTTTT", `{}`: "TTTTTTT",
		},
		"notExists": {
			"": "TTTTTTT", `null`: "TTTTTTT", `true`: "-------", `false`: "-------", `0`: "-------", `""`: "-------", `[]`: "-------", `{}`: "-------",
		},
	}
	for operator, rows := range table {
		for value, row := range rows {
			bound := `{}`
			if value != "" {
				bound = `{"x":` + value + `}`
			}
			for i, literal := range literals {
				e := expr.ParseStrict(decodeJSON(t, comparisonText("x", operator, literal)))
				want := row[i] == 'T'
				if got := e.Holds(decodeVars(t, bound)); got != want {
					t.Errorf("x %s %s with %s = %v, want %v", operator, literal, bound, got, want)
				}
				verdict := e.Decide(decodeVars(t, bound))
				waits := value == "" && operator != "exists" && operator != "notExists"
				if waits != (verdict == expr.Unknown) || !waits && (verdict == expr.Yes) != want {
					t.Errorf("Decide of x %s %s with %s = %v", operator, literal, bound, verdict)
				}
			}
		}
	}
}

func TestStrictDecide(t *testing.T) {
	t.Parallel()
	join := func(kind string, parts ...string) string {
		return `{"type":"` + kind + `","conditions":[` + strings.Join(parts, ",") + `]}`
	}
	tests := []struct {
		condition, vars string
		want            expr.Verdict
	}{
		{comparisonText("x", "==", "null"), `{}`, expr.Unknown},
		{comparisonText("x", "!=", "1"), `{}`, expr.Unknown},
		{comparisonText("x", "==", "1"), `{"x":null}`, expr.No},
		{comparisonText("x", "exists", ""), `{}`, expr.No},
		{comparisonText("x", "notExists", ""), `{}`, expr.Yes},
		{comparisonText("x.y", "==", "1"), `{}`, expr.Unknown},
		{comparisonText("x.y", "==", "1"), `{"x":{}}`, expr.No},
		{comparisonText("x.y", "!=", "1"), `{"x":{}}`, expr.Yes},
		{comparisonText("list.length", ">", "0"), `{"list":[]}`, expr.No},
		{join("and", comparisonText("x", "==", "1"), comparisonText("y", "exists", "")), `{}`, expr.No},
		{join("and", comparisonText("x", "==", "1"), comparisonText("y", "notExists", "")), `{}`, expr.Unknown},
		{join("or", comparisonText("x", "==", "1"), comparisonText("y", "notExists", "")), `{}`, expr.Yes},
		{`{"type":"not","condition":` + comparisonText("x", "==", "1") + `}`, `{}`, expr.Unknown},
		{`{"type":"bogus"}`, `{}`, expr.No},
	}
	for _, tt := range tests {
		t.Run(tt.condition+tt.vars, func(t *testing.T) {
			t.Parallel()
			e := expr.ParseStrict(decodeJSON(t, tt.condition))
			if got := e.Decide(decodeVars(t, tt.vars)); got != tt.want {
				t.Errorf("Decide of %s with %s = %v, want %v", tt.condition, tt.vars, got, tt.want)
			}
		})
	}
	if e := expr.ParseStrict(decodeJSON(t, comparisonText("x", "exists", ""))); e.Decide(nil) != expr.No || e.Holds(nil) {
		t.Error("exists holds without variables")
	}
}

func TestStrictNeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		condition, vars string
		want            []expr.Need
	}{
		{comparisonText("ok", "==", "true"), `{}`, []expr.Need{{Variable: "ok", Allowed: []any{true}, Tests: []string{"ok is true"}}}},
		{comparisonText("plan.size", "==", `"large"`), `{}`, []expr.Need{{Variable: "plan.size", Allowed: []any{"large"}, Tests: []string{`plan.size is "large"`}}}},
		{comparisonText("n", ">", "3"), `{"n":1}`, []expr.Need{{Variable: "n", Tests: []string{"n > 3"}, Current: 1.0, Set: true}}},
		{comparisonText("n", "exists", ""), `{}`, []expr.Need{{Variable: "n", Tests: []string{"n exists"}}}},
		{comparisonText("n", "notExists", ""), `{"n":1}`, []expr.Need{{Variable: "n", Allowed: []any{nil}, Tests: []string{"n does not exist"}, Current: 1.0, Set: true}}},
		{comparisonText("n", "==", "null"), `{}`, []expr.Need{{Variable: "n", Allowed: []any{nil}, Tests: []string{"n is null"}}}},
		{`{"type":"not","condition":` + comparisonText("n", "exists", "") + `}`, `{"n":2}`, []expr.Need{{Variable: "n", Allowed: []any{nil}, Tests: []string{"not (n exists)"}, Current: 2.0, Set: true}}},
		{`{"type":"and","conditions":[` + comparisonText("a", "==", "1") + `,` + comparisonText("b", "exists", "") + `]}`, `{"b":1}`, []expr.Need{{Variable: "a", Allowed: []any{1.0}, Tests: []string{"a is 1"}}}},
		{comparisonText("ok", "==", "true"), `{"ok":true}`, nil},
	} {
		t.Run(tt.condition+tt.vars, func(t *testing.T) {
			t.Parallel()
			e := expr.ParseStrict(decodeJSON(t, tt.condition))
			if diff := cmp.Diff(tt.want, e.Needs(decodeVars(t, tt.vars))); diff != "" {
				t.Errorf("needs of %s with %s (-want +got):\n%s", tt.condition, tt.vars, diff)
			}
		})
	}
}

func TestPath(t *testing.T) {
	t.Parallel()
	lookup := expr.Map(map[string]any{"plan": map[string]any{"tasks": []string{"a", "b"}, "none": nil}})
	for path, want := range map[string][3]any{
		"plan.tasks.1":      {"b", true, true},
		"plan.tasks.length": {2.0, true, true},
		"plan.none":         {nil, true, true},
		"plan.none.x":       {nil, false, true},
		"plan.other":        {nil, false, true},
		"other.tasks":       {nil, false, false},
		"":                  {nil, false, false},
	} {
		value, found, set := lookup.Path(path)
		if diff := cmp.Diff(want, [3]any{value, found, set}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	if expr.Root("plan.tasks") != "plan" || expr.Root("plan") != "plan" {
		t.Error("Root does not return the first name of a path")
	}
}
