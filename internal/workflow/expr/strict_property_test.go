package expr_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// evaluateNaive is an independent evaluator, written only from the documentation. It
// evaluates the JSON of the condition. known is false if a deciding variable was never set.
func evaluateNaive(c map[string]any, vars map[string]any) (holds, known bool) {
	switch c["type"] {
	case "and", "or":
		parts, _ := c["conditions"].([]any)
		decisive := c["type"] == "or"
		known = true
		for _, p := range parts {
			part, _ := p.(map[string]any)
			h, k := evaluateNaive(part, vars)
			if k && h == decisive {
				return decisive, true
			}
			known = known && k
		}
		return !decisive, known
	case "not":
		part, _ := c["condition"].(map[string]any)
		h, k := evaluateNaive(part, vars)
		return !h, k
	}
	path, _ := c["variable"].(string)
	names := strings.Split(path, ".")
	if _, exact := vars[path]; exact {
		names = []string{path}
	}
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
	return compareNaive(c["operator"], value, c["value"]), set
}

// compareNaive compares JSON texts: two values are equal if their texts are equal and they
// are not lists or objects.
func compareNaive(operator, a, b any) bool {
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

// drawStrict returns a condition of a phase workflow as decoded JSON.
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

// drawStrictVars returns variables; not all are set.
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

// TestStrictAgreesWithNaive compares the evaluator with evaluateNaive.
func TestStrictAgreesWithNaive(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c, vars := drawStrict(t, 3), drawStrictVars(t)
		e := expr.ParseStrict(c)
		holds, known := evaluateNaive(c, vars)
		if e.Holds(expr.Map(vars)) != strictlyHolds(c, vars) {
			t.Fatalf("%s with %v holds: %v", e, vars, e.Holds(expr.Map(vars)))
		}
		want := expr.Unknown
		if known {
			want = map[bool]expr.Verdict{true: expr.Yes, false: expr.No}[holds]
		}
		if got := e.Decide(expr.Map(vars)); got != want {
			t.Fatalf("Decide of %s with %v = %v, want %v", e, vars, got, want)
		}
	})
}

// strictlyHolds evaluates a condition like evaluateNaive, but treats unset variables as
// missing values instead of waiting for them.
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
		holds, _ := evaluateNaive(c, vars)
		return holds
	}
}

// TestStrictNeedsDecide tests that setting the needs of a condition repeatedly decides it.
// Several rounds may be necessary, because exists is decided even if its variable is unset,
// unlike other comparisons. In each round the undecided condition has at least one need.
func TestStrictNeedsDecide(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e, vars := expr.ParseStrict(drawStrict(t, 3)), drawStrictVars(t)
		for e.Decide(expr.Map(vars)) == expr.Unknown {
			needs := e.Needs(expr.Map(vars))
			if len(needs) == 0 {
				t.Fatalf("%v with %v is undecided, but has no needs", e, vars)
			}
			for _, need := range needs {
				if need.Set || len(need.Tests) == 0 {
					t.Fatalf("%v with %v: need %+v is set or has no test", e, vars, need)
				}
				vars[expr.Root(need.Variable)] = 7.0
			}
		}
	})
}

// FuzzParseStrict checks that no condition and no variables cause a panic, and that Decide
// agrees with Holds for a decided condition.
func FuzzParseStrict(f *testing.F) {
	f.Add(comparisonText("x.0", "==", "1"), `{"x":[1]}`)
	f.Add(`{"type":"and","conditions":[`+comparisonText("x", ">", "1")+`,{"type":"not","condition":`+comparisonText("x", "notExists", "")+`}]}`, `{"x":2}`)
	f.Fuzz(func(t *testing.T, document, variables string) {
		var v any
		if json.Unmarshal([]byte(document), &v) != nil {
			return
		}
		var vars map[string]any
		_ = json.Unmarshal([]byte(variables), &vars)
		e, lookup := expr.ParseStrict(v), expr.Map(vars)
		_ = e.String()
		_ = e.Needs(lookup)
		if verdict := e.Decide(lookup); verdict != expr.Unknown && (verdict == expr.Yes) != e.Holds(lookup) {
			t.Errorf("%s with %s: decided %v, holds %v", e, variables, verdict, e.Holds(lookup))
		}
	})
}
