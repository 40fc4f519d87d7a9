package expr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

// decodeVars reads a JSON object of variables.
func decodeVars(tb testing.TB, document string) expr.Lookup {
	tb.Helper()
	object, ok := decodeJSON(tb, document).(map[string]any)
	if !ok {
		tb.Fatalf("%s is not an object", document)
	}
	return expr.Map(object)
}

// TestHolds tests the cases of WorkRail's specification, and cases that the specification
// does not define.
func TestHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		condition string
		vars      string
		want      bool
	}{
		{"text ignores case", `{"var":"x","equals":"active"}`, `{"x":"Active"}`, true},
		{"text is trimmed", `{"var":"x","equals":"production"}`, `{"x":"  PRODUCTION  "}`, true},
		{"numeric text is a number", `{"var":"x","equals":42}`, `{"x":"42"}`, true},
		{"number is a numeric text", `{"var":"x","equals":"42"}`, `{"x":42}`, true},
		{"hexadecimal text", `{"var":"x","equals":31}`, `{"x":" 0x1F "}`, true},
		{"octal text", `{"var":"x","equals":8}`, `{"x":"0o10"}`, true},
		{"binary text", `{"var":"x","equals":2}`, `{"x":"0b10"}`, true},
		{"digit outside its base", `{"var":"x","equals":2}`, `{"x":"0b12"}`, false},
		{"Go's spelling of numbers", `{"var":"x","equals":1000}`, `{"x":"1_000"}`, false},
		{"blank text is Number() 0", `{"var":"x","equals":0}`, `{"x":" "}`, true},
		{"texts are not numbers", `{"var":"x","equals":"1"}`, `{"x":"1.0"}`, false},
		{"true text", `{"var":"x","equals":true}`, `{"x":"true"}`, true},
		{"yes", `{"var":"x","equals":true}`, `{"x":"YES "}`, true},
		{"text 0 is false", `{"var":"x","equals":false}`, `{"x":"0"}`, true},
		{"no", `{"var":"x","equals":false}`, `{"x":"no"}`, true},
		{"other text is not a boolean", `{"var":"x","equals":false}`, `{"x":"off"}`, false},
		{"number is not a boolean", `{"var":"x","equals":true}`, `{"x":1}`, false},
		{"null is missing", `{"var":"x","equals":null}`, `{}`, true},
		{"null is null", `{"var":"x","equals":null}`, `{"x":null}`, true},
		{"blank is not null", `{"var":"x","equals":null}`, `{"x":""}`, false},
		{"missing is not a text", `{"var":"x","not_equals":"x"}`, `{}`, true},
		{"missing is null", `{"var":"x","not_equals":null}`, `{}`, false},
		{"lists are never equal", `{"var":"x","equals":[1]}`, `{"x":[1]}`, false},
		{"objects are never equal", `{"var":"x","not_equals":{}}`, `{"x":{}}`, true},

		{"gt", `{"var":"x","gt":0.5}`, `{"x":0.7}`, true},
		{"not gt", `{"var":"x","gt":0.8}`, `{"x":0.7}`, false},
		{"gte", `{"var":"x","gte":0.7}`, `{"x":0.7}`, true},
		{"lte", `{"var":"x","lte":80}`, `{"x":85}`, false},
		{"lt", `{"var":"x","lt":80}`, `{"x":79}`, true},
		{"missing is not a number", `{"var":"x","gt":0}`, `{}`, false},
		{"numeric text in order", `{"var":"x","gt":7}`, `{"x":"9"}`, true},
		{"numeric literal text", `{"var":"x","lt":"10"}`, `{"x":9}`, true},
		{"blank is not a number", `{"var":"x","lt":7}`, `{"x":""}`, false},
		{"boolean is not a number", `{"var":"x","gte":0}`, `{"x":true}`, false},
		{"word is not a number", `{"var":"x","gte":0}`, `{"x":"many"}`, false},

		{"contains", `{"var":"x","contains":"OPT"}`, `{"x":" adopted "}`, true},
		{"contains in missing", `{"var":"x","contains":"a"}`, `{}`, false},
		{"missing contains blank", `{"var":"x","contains":" "}`, `{}`, true},
		{"contains in a list", `{"var":"x","contains":"B"}`, `{"x":["a","b"]}`, true},
		{"contains a number in a list", `{"var":"x","contains":2}`, `{"x":["1","2"]}`, true},
		{"contains a value that is not in the list", `{"var":"x","contains":"c"}`, `{"x":["a","b"]}`, false},
		{"contains null", `{"var":"x","contains":null}`, `{"x":"a"}`, false},
		{"contains in an object", `{"var":"x","contains":"a"}`, `{"x":{"a":1}}`, false},
		{"startsWith", `{"var":"x","startsWith":"fe"}`, `{"x":" Feature/1"}`, true},
		{"startsWith on a list", `{"var":"x","startsWith":"a"}`, `{"x":["a"]}`, false},
		{"endsWith", `{"var":"x","endsWith":".GO"}`, `{"x":"main.go "}`, true},
		{"endsWith a number", `{"var":"x","endsWith":5}`, `{"x":1.5}`, true},
		{"matches", `{"var":"x","matches":"^v\\d+$"}`, `{"x":" V12 "}`, true},
		{"matches with lookahead", `{"var":"x","matches":"^(?!wip)"}`, `{"x":"WIP: a"}`, false},
		{"matches nonsense", `{"var":"x","matches":"["}`, `{"x":"["}`, false},
		{"matches a value that is not a text", `{"var":"x","matches":5}`, `{"x":"5"}`, false},
		{"matches a list", `{"var":"x","matches":"a"}`, `{"x":["a"]}`, false},

		{"truthy", `{"var":"x"}`, `{"x":"no"}`, true},
		{"truthy list", `{"var":"x"}`, `{"x":[]}`, true},
		{"zero", `{"var":"x"}`, `{"x":0}`, false},
		{"empty text", `{"var":"x"}`, `{"x":""}`, false},
		{"missing", `{"var":"x"}`, `{}`, false},
		{"a path", `{"var":"a.b","equals":1}`, `{"a":{"b":1}}`, true},
		{"a path into a list", `{"var":"a.0.b","equals":1}`, `{"a":[{"b":1}]}`, true},
		{"a path to nothing", `{"var":"a.b","equals":1}`, `{"a":{}}`, false},
		{"a dotted name", `{"var":"a.b","equals":1}`, `{"a.b":1}`, true},
		{"a dotted name before a path", `{"var":"a.b","equals":1}`, `{"a.b":1,"a":{"b":2}}`, true},

		{"null condition", `null`, `{}`, true},
		{"empty condition", `{}`, `{}`, true},
		{"condition of another type", `"x"`, `{}`, true},
		{"empty list", `[]`, `{}`, true},
		{"list", `[{"var":"x"}]`, `{"x":true}`, false},
		{"unknown key", `{"invalid":1}`, `{}`, false},
		{"and without a list", `{"and":"x"}`, `{}`, false},
		{"var is not a name", `{"var":5}`, `{"5":true}`, false},
		{"not of an invalid condition", `{"not":{"and":"x"}}`, `{}`, false},
		{"not of an and with an invalid part", `{"not":{"and":[{"foo":1},{"var":"x"}]}}`, `{}`, false},
		{"first operator wins", `{"var":"x","gte":1,"lte":3}`, `{"x":9}`, true},
		{"equals wins", `{"var":"x","gt":1,"equals":1}`, `{"x":1}`, true},
		{"var wins", `{"var":"x","and":[{"var":"y"}]}`, `{"x":1}`, true},
		{"and", `{"and":[{"var":"x"},{"var":"y"}]}`, `{"x":1}`, false},
		{"empty and", `{"and":[]}`, `{}`, true},
		{"or", `{"or":[{"var":"x"},{"var":"y"}]}`, `{"y":1}`, true},
		{"empty or", `{"or":[]}`, `{}`, false},
		{"not", `{"not":{"var":"x"}}`, `{}`, true},
		{"not of an empty condition", `{"not":{}}`, `{}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := expr.Parse(decodeJSON(t, tt.condition))
			if got := e.Holds(decodeVars(t, tt.vars)); got != tt.want {
				t.Errorf("%s with %s = %v, want %v", tt.condition, tt.vars, got, tt.want)
			}
		})
	}
}

func TestHoldsGoValues(t *testing.T) {
	t.Parallel()
	type level string
	five := 5
	tests := []struct {
		name      string
		condition string
		value     any
		want      bool
	}{
		{"int", `{"var":"x","equals":5}`, 5, true},
		{"uint8", `{"var":"x","gt":4}`, uint8(5), true},
		{"json.Number", `{"var":"x","equals":5}`, json.Number("5"), true},
		{"named text", `{"var":"x","equals":"high"}`, level("High"), true},
		{"pointer", `{"var":"x","equals":5}`, &five, true},
		{"nil pointer", `{"var":"x","equals":null}`, (*int)(nil), true},
		{"texts", `{"var":"x","contains":"b"}`, []string{"a", "b"}, true},
		{"struct", `{"var":"x"}`, struct{}{}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := expr.Parse(decodeJSON(t, tt.condition))
			if got := e.Holds(expr.Map(map[string]any{"x": tt.value})); got != tt.want {
				t.Errorf("%s with %#v = %v, want %v", tt.condition, tt.value, got, tt.want)
			}
		})
	}
}

func TestDecide(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name      string
		condition string
		vars      string
		want      expr.Verdict
	}{
		{"no variables", `{}`, `{}`, expr.Yes},
		{"not understood", `{"foo":1}`, `{}`, expr.No},
		{"unset", `{"var":"x","equals":1}`, `{}`, expr.Unknown},
		{"unset variable with not_equals", `{"var":"x","not_equals":1}`, `{}`, expr.Unknown},
		{"unset variable with null", `{"var":"x","equals":null}`, `{}`, expr.Unknown},
		{"null is set", `{"var":"x","equals":1}`, `{"x":null}`, expr.No},
		{"unset variable and no", `{"and":[{"var":"x"},{"var":"y"}]}`, `{"y":false}`, expr.No},
		{"unset variable and yes", `{"and":[{"var":"x"},{"var":"y"}]}`, `{"y":true}`, expr.Unknown},
		{"unset variable or yes", `{"or":[{"var":"x"},{"var":"y"}]}`, `{"y":true}`, expr.Yes},
		{"unset variable or no", `{"or":[{"var":"x"},{"var":"y"}]}`, `{"y":false}`, expr.Unknown},
		{"not unset", `{"not":{"var":"x"}}`, `{}`, expr.Unknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := expr.Parse(decodeJSON(t, tt.condition))
			if got := e.Decide(decodeVars(t, tt.vars)); got != tt.want {
				t.Errorf("%s with %s = %v, want %v", tt.condition, tt.vars, got, tt.want)
			}
		})
	}
}

func TestNeeds(t *testing.T) {
	t.Parallel()
	const branches = `{"or":[{"var":"c","equals":"high"},{"and":[{"var":"n","lt":3},{"var":"c","equals":"low"}]}]}`
	tests := []struct {
		name      string
		condition string
		vars      string
		want      []expr.Need
	}{
		{"no needs if the condition holds", `{"var":"x","equals":1}`, `{"x":1}`, nil},
		{"unset", branches, `{}`, []expr.Need{
			{Variable: "c", Allowed: []any{"high", "low"}, Tests: []string{`c is "high"`, `c is "low"`}},
			{Variable: "n", Tests: []string{"n < 3"}},
		}},
		{"decided parts have no needs", branches, `{"n":5}`, []expr.Need{
			{Variable: "c", Allowed: []any{"high"}, Tests: []string{`c is "high"`}},
		}},
		{"only unset variables while undecided", `{"or":[{"var":"a"},{"var":"b"}]}`, `{"a":false}`, []expr.Need{
			{Variable: "b", Allowed: []any{true}, Tests: []string{"b is truthy"}},
		}},
		{"a set variable must change", `{"var":"c","equals":"Small"}`, `{"c":"Large"}`, []expr.Need{
			{Variable: "c", Allowed: []any{"Small"}, Tests: []string{`c is "Small"`}, Current: "Large", Set: true},
		}},
		{"under not", `{"not":{"or":[{"var":"a","not_equals":2},{"var":"b","equals":3}]}}`, `{"a":1,"b":3}`, []expr.Need{
			{Variable: "a", Allowed: []any{2.0}, Tests: []string{"not (a is not 2)"}, Current: 1.0, Set: true},
			{Variable: "b", Tests: []string{"not (b is 3)"}, Current: 3.0, Set: true},
		}},
		{"an invalid condition has no needs", `{"foo":1}`, `{}`, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := expr.Parse(decodeJSON(t, tt.condition))
			if diff := cmp.Diff(tt.want, e.Needs(decodeVars(t, tt.vars))); diff != "" {
				t.Errorf("needs of %s with %s (-want +got):\n%s", tt.condition, tt.vars, diff)
			}
		})
	}
}

func TestString(t *testing.T) {
	t.Parallel()
	tests := []struct {
		condition string
		want      string
	}{
		{`{}`, `always`},
		{`{"foo":1}`, `never`},
		{`{"and":[{"var":"taskComplexity","equals":"Large"},{"var":"attempts","lt":3}]}`, `taskComplexity is "Large" and attempts < 3`},
		{`{"or":[{"var":"a"},{"and":[{"var":"b","gte":1},{"var":"b","lte":2}]}]}`, `a is truthy or (b >= 1 and b <= 2)`},
		{`{"not":{"var":"x","not_equals":null}}`, `not (x is not null)`},
		{`{"not":{"or":[{"var":"x"},{"var":"y"}]}}`, `not (x is truthy or y is truthy)`},
		{`{"and":[{"var":"x","contains":"<a>"}]}`, `x contains "<a>"`},
		{`{"and":[]}`, `always`},
		{`{"or":[]}`, `never`},
		{`{"var":"my var","startsWith":"a"}`, "`my var` starts with \"a\""},
		{`{"var":"or","endsWith":"a"}`, "`or` ends with \"a\""},
		{`{"var":"x","matches":"^a"}`, `x matches "^a"`},
		{`{"var":"x","gt":1.5}`, `x > 1.5`},
	}
	for _, tt := range tests {
		t.Run(tt.want, func(t *testing.T) {
			t.Parallel()
			if got := expr.Parse(decodeJSON(t, tt.condition)).String(); got != tt.want {
				t.Errorf("String of %s = %s, want %s", tt.condition, got, tt.want)
			}
		})
	}
}

func TestVariables(t *testing.T) {
	t.Parallel()
	e := expr.Parse(decodeJSON(t, `{"or":[{"var":"b"},{"not":{"var":"a","gt":1}},{"and":[{"var":"b"},{}]}]}`))
	if diff := cmp.Diff([]string{"a", "b"}, e.Variables()); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// TestHoldsIsBounded tests that a pattern that reaches its time limit does not match.
func TestHoldsIsBounded(t *testing.T) {
	t.Parallel()
	e := expr.Parse(decodeJSON(t, `{"var":"x","matches":"^(a+)+$"}`))
	lookup := expr.Map(map[string]any{"x": strings.Repeat("a", 60) + "!"})
	if e.Holds(lookup) {
		t.Error("holds")
	}
}

func TestEqual(t *testing.T) {
	t.Parallel()
	const document = `{"and":[{"var":"x","matches":"^a"},{"not":{"var":"y","equals":1}}]}`
	a, b := expr.Parse(decodeJSON(t, document)), expr.Parse(decodeJSON(t, document))
	if !a.Equal(b) || a.Equal(nil) || a.Equal(a.Of[0]) {
		t.Error("Equal does not compare the structure")
	}
	if diff := cmp.Diff(a, b); diff != "" {
		t.Errorf("go-cmp reports a difference (-a +b):\n%s", diff)
	}
}
