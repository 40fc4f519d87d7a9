package expr_test

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// sampleValues returns a small set of values, so that literals and variables are often
// equal.
func sampleValues() []any {
	return []any{
		nil, true, false, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0, 1e300,
		"", " ", "0", "1", "01", "1.0", "2", "-1", "0x2", "yes", "No", "TRUE", "false",
		"a", " A", "ab", "b", "Infinity", "infinity", "-infinity", "1e999",
		[]any{},
		[]any{"a", 1.0},
		map[string]any{},
		map[string]any{"a": 1.0},
	}
}

// variableNames returns the variables of random conditions.
func variableNames() []string { return []string{"x", "y"} }

// drawCondition returns a condition as decoded JSON, which may be invalid if wild is true.
func drawCondition(t *rapid.T, depth int, wild bool) any {
	shapes := []string{"leaf", "leaf", "and", "or", "not"}
	if depth == 0 {
		shapes = shapes[:1]
	}
	if wild {
		shapes = append(shapes, "junk")
	}
	switch shape := rapid.SampledFrom(shapes).Draw(t, "shape"); shape {
	case "leaf":
		op := rapid.SampledFrom([]string{
			"", "equals", "not_equals", "gt", "gte", "lt", "lte", "contains", "startsWith", "endsWith", "matches",
		}).Draw(t, "op")
		leaf := map[string]any{"var": rapid.SampledFrom(variableNames()).Draw(t, "var")}
		if op != "" {
			leaf[op] = rapid.SampledFrom(sampleValues()).Draw(t, "literal")
		}
		return leaf
	case "not":
		return map[string]any{"not": drawCondition(t, depth-1, wild)}
	case "junk":
		return rapid.SampledFrom([]any{
			nil, 5.0, "x",
			[]any{1.0},
			map[string]any{"foo": 1.0},
			map[string]any{"and": 1.0},
			map[string]any{},
			map[string]any{"var": 1.0},
		}).Draw(t, "junk")
	default:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "parts"))
		for i := range list {
			list[i] = drawCondition(t, depth-1, wild)
		}
		return map[string]any{shape: list}
	}
}

// drawVars sets some variables, or all.
func drawVars(t *rapid.T, all bool) map[string]any {
	vars := map[string]any{}
	for _, name := range variableNames() {
		if all || rapid.Bool().Draw(t, "set") {
			vars[name] = rapid.SampledFrom(sampleValues()).Draw(t, name)
		}
	}
	return vars
}

// TestDecideAgreesWithHolds checks that Decide and Holds agree on conditions whose
// variables are all set.
func TestDecideAgreesWithHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := expr.Parse(drawCondition(t, 3, true))
		vars := expr.Map(drawVars(t, true))
		verdict := e.Decide(vars)
		if verdict == expr.Unknown || (verdict == expr.Yes) != e.Holds(vars) {
			t.Fatalf("%v: decided %v, holds %v", e, verdict, e.Holds(vars))
		}
	})
}

// TestDecideIsMonotone tests that setting more variables does not change a decided
// condition.
func TestDecideIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := expr.Parse(drawCondition(t, 3, true))
		vars := drawVars(t, false)
		before := e.Decide(expr.Map(vars))
		for name, value := range drawVars(t, true) {
			if _, ok := vars[name]; !ok {
				vars[name] = value
			}
		}
		if after := e.Decide(expr.Map(vars)); before != expr.Unknown && after != before {
			t.Fatalf("%v: decided %v, then %v", e, before, after)
		}
	})
}

// TestDeMorgan checks De Morgan's laws for Holds and for Decide.
func TestDeMorgan(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := drawCondition(t, 2, false), drawCondition(t, 2, false)
		not := func(v any) any { return map[string]any{"not": v} }
		left := expr.Parse(not(map[string]any{"and": []any{a, b}}))
		right := expr.Parse(map[string]any{"or": []any{not(a), not(b)}})
		vars := expr.Map(drawVars(t, false))
		if left.Holds(vars) != right.Holds(vars) || left.Decide(vars) != right.Decide(vars) {
			t.Fatalf("%v and %v differ", left, right)
		}
	})
}

// TestConstantIsSound checks that Constant agrees with Holds for random variables.
func TestConstantIsSound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := expr.Parse(drawCondition(t, 3, true))
		value, ok := e.Constant()
		if !ok {
			return
		}
		for range 20 {
			vars := drawVars(t, false)
			if e.Holds(expr.Map(vars)) != value {
				t.Fatalf("%v is decided as %v, but has a different value with %v", e, value, vars)
			}
		}
	})
}

// TestNeedsNameWhatDecides tests that an undecided condition has needs, and that setting
// all of them decides it.
func TestNeedsNameWhatDecides(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		e := expr.Parse(drawCondition(t, 3, true))
		vars := drawVars(t, false)
		verdict, needs := e.Decide(expr.Map(vars)), e.Needs(expr.Map(vars))
		if (verdict == expr.Yes || verdict == expr.Unknown) != (verdict == expr.Yes && len(needs) == 0 || verdict == expr.Unknown && len(needs) > 0) {
			t.Fatalf("%v with %v is %v and has the needs %v", e, vars, verdict, needs)
		}
		if verdict != expr.Unknown {
			return
		}
		for _, need := range needs {
			if need.Set || len(need.Tests) == 0 {
				t.Fatalf("%v with %v: need %+v is set or has no test", e, vars, need)
			}
			vars[need.Variable] = rapid.SampledFrom(sampleValues()).Draw(t, "answer")
		}
		if e.Decide(expr.Map(vars)) == expr.Unknown {
			t.Fatalf("%v is undecided after setting its needs: %v", e, vars)
		}
	})
}

// TestWordsAreUnambiguous tests that conditions with the same text have the same value.
func TestWordsAreUnambiguous(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		a, b := expr.Parse(drawCondition(t, 1, true)), expr.Parse(drawCondition(t, 1, true))
		if a.String() != b.String() {
			return
		}
		if vars := expr.Map(drawVars(t, false)); a.Holds(vars) != b.Holds(vars) {
			t.Fatalf("%v has a different value than its equivalent", a)
		}
	})
}

// FuzzParse checks that no condition and no variables cause a panic, that Constant agrees
// with Holds, and that Decide agrees with Holds if all variables are set.
func FuzzParse(f *testing.F) {
	f.Add(`{"var":"x","equals":1}`, `{"x":"1"}`)
	f.Add(`{"and":[{"var":"x","gt":"0x"},{"not":{"or":[]}}]}`, `{"x":[1,{}]}`)
	f.Add(`{"var":"x","matches":"^a(?=b)"}`, `{"x":"ab"}`)
	f.Add(`{"or":[{"var":"Infinity","lte":1e308},{"var":"","equals":null}]}`, `{"Infinity":-1e999}`)
	f.Fuzz(func(t *testing.T, document, variables string) {
		var v any
		if json.Unmarshal([]byte(document), &v) != nil {
			return
		}
		var vars map[string]any
		_ = json.Unmarshal([]byte(variables), &vars)
		e, lookup := expr.Parse(v), expr.Map(vars)
		_ = e.String()
		_ = e.Variables()
		_ = e.Needs(lookup)
		holds, verdict := e.Holds(lookup), e.Decide(lookup)
		if value, ok := e.Constant(); ok && value != holds {
			t.Errorf("Constant of %s is %v, but Holds is %v with %s", e, value, holds, variables)
		}
		for _, name := range e.Variables() {
			if _, ok := vars[name]; !ok {
				return
			}
		}
		if (verdict == expr.Yes) != holds {
			t.Errorf("%s with %s: decided %v, holds %v", e, variables, verdict, holds)
		}
	})
}

func BenchmarkHolds(b *testing.B) {
	e := expr.Parse(decodeJSON(b, `{"and":[{"var":"taskComplexity","equals":"Large"},{"var":"attempts","lt":3},
		{"or":[{"var":"done","not_equals":true},{"var":"mode","contains":"deep"}]}]}`))
	lookup := expr.Map(map[string]any{"taskComplexity": "large", "attempts": 2.0, "done": true, "mode": "Deep dive"})
	b.ReportAllocs()
	for b.Loop() {
		if !e.Holds(lookup) {
			b.Fatal("does not hold")
		}
	}
}

func BenchmarkParse(b *testing.B) {
	v := decodeJSON(b, `{"and":[{"var":"taskComplexity","equals":"Large"},{"or":[{"var":"done","not_equals":true},{"var":"n","lt":3}]}]}`)
	b.ReportAllocs()
	for b.Loop() {
		if expr.Parse(v) == nil {
			b.Fatal("no condition")
		}
	}
}
