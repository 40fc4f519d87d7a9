package condition_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/condition"
)

// simple writes a comparison of a phase workflow.
func simple(variable, operator, value string) string {
	if value != "" {
		value = `,"value":` + value
	}
	return `{"type":"simple","variable":"` + variable + `","operator":"` + operator + `"` + value + `}`
}

// TestStrictHolds keeps the truth table of seed 002, as its reference behaves but
// for what its language's objects inherit.
func TestStrictHolds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		condition, vars string
		want            bool
	}{
		{simple("a", "==", `1`), `{"a":"1"}`, false},
		{simple("a", "==", `1`), `{"a":1}`, true},
		{simple("a", "==", `1`), `{"a":true}`, false},
		{simple("a", "==", `"x"`), `{"a":"X"}`, false},
		{simple("a", "==", `"x"`), `{"a":" x"}`, false},
		{simple("a", "==", `true`), `{"a":"true"}`, false},
		{simple("a", "==", `false`), `{}`, false},
		{simple("a", "!=", `1`), `{}`, true},
		{simple("a", "!=", `null`), `{}`, true},
		{simple("a", "!=", `null`), `{"a":null}`, false},
		{simple("a", "!=", `1`), `{"a":"1"}`, true},
		{simple("a", "==", `null`), `{}`, false},
		{simple("a", "==", `null`), `{"a":null}`, true},
		{simple("a", "==", `null`), `{"a":false}`, false},
		{simple("a", "exists", ``), `{"a":null}`, false},
		{simple("a", "exists", ``), `{"a":false}`, true},
		{simple("a", "exists", ``), `{"a":0}`, true},
		{simple("a", "exists", ``), `{"a":""}`, true},
		{simple("a", "exists", ``), `{}`, false},
		{simple("a", "notExists", ``), `{"a":""}`, false},
		{simple("a", "notExists", ``), `{"a":null}`, true},
		{simple("a", "notExists", ``), `{}`, true},
		{simple("a", ">", `80`), `{"a":"90"}`, false},
		{simple("a", ">", `80`), `{"a":90}`, true},
		{simple("a", ">", `"80"`), `{"a":90}`, false},
		{simple("a", ">", `80`), `{}`, false},
		{simple("a", "<", `80`), `{}`, false},
		{simple("a", "<", `1`), `{"a":null}`, false},
		{simple("a", "<", `1`), `{"a":false}`, false},
		{simple("a", "<", `"b"`), `{"a":"a"}`, false},
		{simple("a", ">=", `1`), `{"a":1}`, true},
		{simple("a", "<=", `1`), `{"a":1}`, true},
		{simple("a", "<", `1`), `{"a":1}`, false},
		{simple("a", "==", `1`), `{"a":[1]}`, false},
		{simple("a", "!=", `1`), `{"a":{}}`, true},
		{simple("x.y", "==", `2`), `{"x":{"y":2}}`, true},
		{simple("x.y", "==", `2`), `{"x.y":2}`, false},
		{simple("x.y", "!=", `2`), `{"x":5}`, true},
		{simple("x.y", "exists", ``), `{"x":null}`, false},
		{simple("x.y.z", "exists", ``), `{"x":{"y":{"z":0}}}`, true},
		{simple("list.0", "==", `"q"`), `{"list":["q"]}`, true},
		{simple("list.1", "==", `"q"`), `{"list":["q"]}`, false},
		{simple("list.1", "==", `null`), `{"list":["q"]}`, false},
		{simple("list.00", "exists", ``), `{"list":["q"]}`, false},
		{simple("list.+0", "exists", ``), `{"list":["q"]}`, false},
		{simple("list.-1", "exists", ``), `{"list":["q"]}`, false},
		{simple("list.0.a", "==", `1`), `{"list":[{"a":1}]}`, true},
		{simple("list.length", ">", `0`), `{"list":["q"]}`, true},
		{simple("list.length", "==", `0`), `{"list":[]}`, true},
		{simple("list.length.x", "exists", ``), `{"list":[]}`, false},
		{simple("text.length", "exists", ``), `{"text":"abc"}`, false},
		{simple("o.length", "==", `7`), `{"o":{"length":7}}`, true},
		{simple("constructor", "exists", ``), `{}`, false},
		{simple("__proto__", "exists", ``), `{}`, false},
		{simple("o.toString", "exists", ``), `{"o":{}}`, false},
		{simple("list.push", "exists", ``), `{"list":[]}`, false},
		{simple("constructor", "==", `1`), `{"constructor":1}`, true},
		{`{"type":"not","condition":` + simple("a", "==", "true") + `}`, `{}`, true},
		{`{"type":"and","conditions":[` + simple("a", "==", "1") + `,` + simple("b", "!=", "1") + `]}`, `{"a":1}`, true},
		{`{"type":"and","conditions":[` + simple("a", "==", "1") + `,` + simple("b", "==", "1") + `]}`, `{"a":1}`, false},
		{`{"type":"or","conditions":[` + simple("a", "==", "1") + `,` + simple("b", "==", "1") + `]}`, `{"b":1}`, true},
		{`{"type":"or","conditions":[` + simple("a", "==", "1") + `,` + simple("b", "==", "1") + `]}`, `{}`, false},
		{`{"type":"and","conditions":[]}`, `{}`, true},
		{`{"type":"or","conditions":[]}`, `{}`, false},
		// What does not validate never holds, a negation included.
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
			e := condition.ParseStrict(decode(t, tt.condition))
			if got := e.Holds(vars(t, tt.vars)); got != tt.want {
				t.Errorf("%s with %s = %v, want %v", tt.condition, tt.vars, got, tt.want)
			}
		})
	}
}

// TestStrictTable goes through every operator, kind of literal and kind of value.
// A row's letters say, literal by literal, whether the comparison holds.
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
				e := condition.ParseStrict(decode(t, simple("x", operator, literal)))
				want := row[i] == 'T'
				if got := e.Holds(vars(t, bound)); got != want {
					t.Errorf("x %s %s with %s = %v, want %v", operator, literal, bound, got, want)
				}
				verdict := e.Decide(vars(t, bound))
				waits := value == "" && operator != "exists" && operator != "notExists"
				if waits != (verdict == condition.Unknown) || !waits && (verdict == condition.Yes) != want {
					t.Errorf("x %s %s with %s is decided %v", operator, literal, bound, verdict)
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
		want            condition.Verdict
	}{
		{simple("x", "==", "null"), `{}`, condition.Unknown},
		{simple("x", "!=", "1"), `{}`, condition.Unknown},
		{simple("x", "==", "1"), `{"x":null}`, condition.No},
		{simple("x", "exists", ""), `{}`, condition.No},
		{simple("x", "notExists", ""), `{}`, condition.Yes},
		{simple("x.y", "==", "1"), `{}`, condition.Unknown},
		{simple("x.y", "==", "1"), `{"x":{}}`, condition.No},
		{simple("x.y", "!=", "1"), `{"x":{}}`, condition.Yes},
		{simple("list.length", ">", "0"), `{"list":[]}`, condition.No},
		{join("and", simple("x", "==", "1"), simple("y", "exists", "")), `{}`, condition.No},
		{join("and", simple("x", "==", "1"), simple("y", "notExists", "")), `{}`, condition.Unknown},
		{join("or", simple("x", "==", "1"), simple("y", "notExists", "")), `{}`, condition.Yes},
		{`{"type":"not","condition":` + simple("x", "==", "1") + `}`, `{}`, condition.Unknown},
		{`{"type":"bogus"}`, `{}`, condition.No},
	}
	for _, tt := range tests {
		t.Run(tt.condition+tt.vars, func(t *testing.T) {
			t.Parallel()
			e := condition.ParseStrict(decode(t, tt.condition))
			if got := e.Decide(vars(t, tt.vars)); got != tt.want {
				t.Errorf("%s with %s is decided %v, want %v", tt.condition, tt.vars, got, tt.want)
			}
		})
	}
	if e := condition.ParseStrict(decode(t, simple("x", "exists", ""))); e.Decide(nil) != condition.No || e.Holds(nil) {
		t.Error("without variables something exists")
	}
}

func TestStrictNeeds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		condition, vars string
		want            []condition.Need
	}{
		{simple("ok", "==", "true"), `{}`, []condition.Need{{Variable: "ok", Allowed: []any{true}, Tests: []string{"ok is true"}}}},
		{simple("plan.size", "==", `"large"`), `{}`, []condition.Need{{Variable: "plan.size", Allowed: []any{"large"}, Tests: []string{`plan.size is "large"`}}}},
		{simple("n", ">", "3"), `{"n":1}`, []condition.Need{{Variable: "n", Tests: []string{"n > 3"}, Current: 1.0, Set: true}}},
		{simple("n", "exists", ""), `{}`, []condition.Need{{Variable: "n", Tests: []string{"n exists"}}}},
		{simple("n", "notExists", ""), `{"n":1}`, []condition.Need{{Variable: "n", Allowed: []any{nil}, Tests: []string{"n does not exist"}, Current: 1.0, Set: true}}},
		{simple("n", "==", "null"), `{}`, []condition.Need{{Variable: "n", Allowed: []any{nil}, Tests: []string{"n is null"}}}},
		{`{"type":"not","condition":` + simple("n", "exists", "") + `}`, `{"n":2}`, []condition.Need{{Variable: "n", Allowed: []any{nil}, Tests: []string{"not (n exists)"}, Current: 2.0, Set: true}}},
		{`{"type":"and","conditions":[` + simple("a", "==", "1") + `,` + simple("b", "exists", "") + `]}`, `{"b":1}`, []condition.Need{{Variable: "a", Allowed: []any{1.0}, Tests: []string{"a is 1"}}}},
		{simple("ok", "==", "true"), `{"ok":true}`, nil},
	} {
		t.Run(tt.condition+tt.vars, func(t *testing.T) {
			t.Parallel()
			e := condition.ParseStrict(decode(t, tt.condition))
			if diff := cmp.Diff(tt.want, e.Needs(vars(t, tt.vars))); diff != "" {
				t.Errorf("needs of %s with %s (-want +got):\n%s", tt.condition, tt.vars, diff)
			}
		})
	}
}

func TestStrictConstant(t *testing.T) {
	t.Parallel()
	and := func(parts ...string) string {
		return `{"type":"and","conditions":[` + strings.Join(parts, ",") + `]}`
	}
	or := func(parts ...string) string {
		return `{"type":"or","conditions":[` + strings.Join(parts, ",") + `]}`
	}
	domains := map[string]condition.Domain{
		"flag":  {Type: "boolean", Set: true},
		"word":  {Type: "string"},
		"size":  {Values: []any{"small", "large"}, Set: true},
		"empty": {Values: []any{}},
	}
	for _, tt := range []struct{ condition, open, within string }{
		{simple("x", "==", "1"), "open", "open"},
		{and(simple("x", "==", "1"), simple("x", "==", `"1"`)), "never", "never"},
		{and(simple("x", "==", "0"), simple("x", "==", `false`)), "never", "never"},
		{and(simple("x", ">", "3"), simple("x", "<", "4")), "open", "open"},
		{and(simple("x", ">", "3"), simple("x", "<", "3")), "never", "never"},
		{and(simple("x", ">", "3"), simple("x", "notExists", "")), "never", "never"},
		{simple("x", ">", `"a"`), "never", "never"},
		{or(simple("x", "exists", ""), simple("x", "notExists", "")), "always", "always"},
		{or(simple("x", "==", "1"), simple("x", "!=", "1")), "always", "always"},
		{or(simple("x", "<", "1"), simple("x", ">=", "1")), "open", "open"},
		{or(simple("flag", "==", "true"), simple("flag", "==", "false")), "open", "always"},
		{simple("flag", "==", `"yes"`), "open", "never"},
		{simple("flag", "exists", ``), "open", "always"},
		{simple("word", "exists", ``), "open", "open"},
		{simple("word", "==", `1`), "open", "never"},
		{simple("size", "==", `"medium"`), "open", "never"},
		{simple("size", "==", `"large"`), "open", "open"},
		{or(simple("size", "==", `"small"`), simple("size", "==", `"large"`)), "open", "always"},
		{simple("size", "!=", `"medium"`), "open", "always"},
		{simple("empty", "exists", ``), "open", "never"},
		{simple("empty", "!=", `1`), "open", "always"},
		{`{"type":"bogus"}`, "never", "never"},
	} {
		t.Run(tt.condition, func(t *testing.T) {
			t.Parallel()
			e := condition.ParseStrict(decode(t, tt.condition))
			if got := constancy(e.Constant()); got != tt.open {
				t.Errorf("%s is %s, want %s", e, got, tt.open)
			}
			if got := constancy(e.ConstantIn(func(name string) condition.Domain { return domains[name] })); got != tt.within {
				t.Errorf("%s is %s in its domain, want %s", e, got, tt.within)
			}
		})
	}
}

// constancy is the outcome of Constant in a word.
func constancy(value, ok bool) string {
	switch {
	case !ok:
		return "open"
	case value:
		return "always"
	default:
		return "never"
	}
}

// naive is a second evaluator, written from the description alone: it looks at
// the condition as JSON. Known is false where a variable that decides was never
// set.
func naive(c map[string]any, vars map[string]any) (holds, known bool) {
	switch c["type"] {
	case "and", "or":
		parts, _ := c["conditions"].([]any)
		decisive := c["type"] == "or"
		known = true
		for _, p := range parts {
			part, _ := p.(map[string]any)
			h, k := naive(part, vars)
			if k && h == decisive {
				return decisive, true
			}
			known = known && k
		}
		return !decisive, known
	case "not":
		part, _ := c["condition"].(map[string]any)
		h, k := naive(part, vars)
		return !h, k
	}
	path, _ := c["variable"].(string)
	names := strings.Split(path, ".")
	_, set := vars[names[0]]
	var value any = vars
	there := true
	for _, name := range names {
		switch container := value.(type) {
		case map[string]any:
			value, there = container[name]
		case []any:
			i, err := strconv.Atoi(name)
			switch {
			case name == "length":
				value = float64(len(container))
			case err == nil && i >= 0 && i < len(container) && fmt.Sprint(i) == name:
				value = container[i]
			default:
				value, there = nil, false
			}
		default:
			value, there = nil, false
		}
		if !there {
			break
		}
	}
	switch c["operator"] {
	case "exists":
		return there && value != nil, true
	case "notExists":
		return !there || value == nil, true
	}
	if !there {
		return c["operator"] == "!=", set
	}
	return compare(c["operator"], value, c["value"]), set
}

// compare compares by JSON texts: two values are equal if they are written alike
// and are no list or object.
func compare(operator, a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	equal := string(x) == string(y) && x[0] != '[' && x[0] != '{'
	m, isNumber := a.(float64)
	n, other := b.(float64)
	switch operator {
	case "==":
		return equal
	case "!=":
		return !equal
	case ">":
		return isNumber && other && m > n
	case ">=":
		return isNumber && other && m >= n
	case "<":
		return isNumber && other && m < n
	default:
		return isNumber && other && m <= n
	}
}

// drawStrict gives a condition of a phase workflow as decoded JSON.
func drawStrict(t *rapid.T, depth int) map[string]any {
	shapes := []string{"simple", "simple", "and", "or", "not"}
	if depth == 0 {
		shapes = shapes[:1]
	}
	switch shape := rapid.SampledFrom(shapes).Draw(t, "type"); shape {
	case "simple":
		c := map[string]any{
			"type": "simple", "variable": rapid.SampledFrom([]string{"x", "y", "x.a", "x.0", "x.length", "y.a.b", "x.01", "constructor", "length"}).Draw(t, "variable"),
			"operator": rapid.SampledFrom([]string{"==", "!=", ">", ">=", "<", "<=", "exists", "notExists"}).Draw(t, "operator"),
		}
		c["value"] = rapid.SampledFrom([]any{nil, true, false, -1.0, 0.0, 1.0, 2.5, "", "1", "a"}).Draw(t, "value")
		return c
	case "not":
		return map[string]any{"type": shape, "condition": drawStrict(t, depth-1)}
	default:
		list := make([]any, rapid.IntRange(2, 3).Draw(t, "parts"))
		for i := range list {
			list[i] = drawStrict(t, depth-1)
		}
		return map[string]any{"type": shape, "conditions": list}
	}
}

// drawStrictVars gives variables; not all are set.
func drawStrictVars(t *rapid.T) map[string]any {
	values := []any{
		nil, true, false, -1.0, 0.0, 1.0, 2.0, 2.5, 3.0, "", "1", "a", "b",
		[]any{},
		[]any{1.0, "a"},
		[]any{nil},
		map[string]any{},
		map[string]any{"a": 1.0},
		map[string]any{"a": map[string]any{"b": "a"}, "length": 1.0},
		map[string]any{"0": true, "01": 1.0},
	}
	vars := map[string]any{}
	for _, name := range []string{"x", "y", "length", "x.a"} {
		if rapid.Bool().Draw(t, "set") {
			vars[name] = rapid.SampledFrom(values).Draw(t, name)
		}
	}
	return vars
}

// TestStrictAgreesWithNaive holds the evaluator against one that was written
// from the description alone.
func TestStrictAgreesWithNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, vars := drawStrict(t, 3), drawStrictVars(t)
		e := condition.ParseStrict(c)
		holds, known := naive(c, vars)
		if e.Holds(condition.Map(vars)) != strictlyHolds(c, vars) {
			t.Fatalf("%s with %v holds: %v", e, vars, e.Holds(condition.Map(vars)))
		}
		want := condition.Unknown
		if known {
			want = map[bool]condition.Verdict{true: condition.Yes, false: condition.No}[holds]
		}
		if got := e.Decide(condition.Map(vars)); got != want {
			t.Fatalf("%s with %v is decided %v, want %v", e, vars, got, want)
		}
	})
}

// strictlyHolds is naive where nothing waits.
func strictlyHolds(c map[string]any, vars map[string]any) bool {
	switch c["type"] {
	case "and", "or":
		parts, _ := c["conditions"].([]any)
		for _, p := range parts {
			part, _ := p.(map[string]any)
			if strictlyHolds(part, vars) == (c["type"] == "or") {
				return c["type"] == "or"
			}
		}
		return c["type"] == "and"
	case "not":
		part, _ := c["condition"].(map[string]any)
		return !strictlyHolds(part, vars)
	default:
		holds, _ := naive(c, vars)
		return holds
	}
}

// TestStrictConstantIsSound never meets variables for which it is wrong.
func TestStrictConstantIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := condition.ParseStrict(drawStrict(t, 3))
		value, ok := e.Constant()
		if !ok {
			return
		}
		for range 20 {
			if vars := drawStrictVars(t); e.Holds(condition.Map(vars)) != value {
				t.Fatalf("%v should be %v, but not with %v", e, value, vars)
			}
		}
	})
}

// TestStrictNeedsDecide sets what a condition needs until it is decided. Because
// exists is decided before its variable is set, and otherwise after, that may
// take several rounds, but in each one something is needed.
func TestStrictNeedsDecide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e, vars := condition.ParseStrict(drawStrict(t, 3)), drawStrictVars(t)
		for e.Decide(condition.Map(vars)) == condition.Unknown {
			needs := e.Needs(condition.Map(vars))
			if len(needs) == 0 {
				t.Fatalf("%v with %v waits for nothing", e, vars)
			}
			for _, need := range needs {
				if need.Set || len(need.Tests) == 0 {
					t.Fatalf("%v with %v: need %+v is set or has no test", e, vars, need)
				}
				vars[condition.Root(need.Variable)] = 7.0
			}
		}
	})
}

func TestPath(t *testing.T) {
	t.Parallel()
	lookup := condition.Map(map[string]any{"plan": map[string]any{"tasks": []string{"a", "b"}, "none": nil}})
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
	if condition.Root("plan.tasks") != "plan" || condition.Root("plan") != "plan" {
		t.Error("the root of a path is not its first name")
	}
}

// FuzzParseStrict takes any JSON as a condition and as variables.
func FuzzParseStrict(f *testing.F) {
	f.Add(simple("x.0", "==", "1"), `{"x":[1]}`)
	f.Add(`{"type":"and","conditions":[`+simple("x", ">", "1")+`,{"type":"not","condition":`+simple("x", "notExists", "")+`}]}`, `{"x":2}`)
	f.Fuzz(func(t *testing.T, document, variables string) {
		var v any
		if json.Unmarshal([]byte(document), &v) != nil {
			return
		}
		var vars map[string]any
		_ = json.Unmarshal([]byte(variables), &vars)
		e, lookup := condition.ParseStrict(v), condition.Map(vars)
		_ = e.String()
		_ = e.Needs(lookup)
		if value, ok := e.Constant(); ok && value != e.Holds(lookup) {
			t.Errorf("%s is said to be %v, but is not with %s", e, value, variables)
		}
		if verdict := e.Decide(lookup); verdict != condition.Unknown && (verdict == condition.Yes) != e.Holds(lookup) {
			t.Errorf("%s with %s: decided %v, holds %v", e, variables, verdict, e.Holds(lookup))
		}
	})
}
