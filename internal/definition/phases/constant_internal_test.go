package phases

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/condition"
)

// comparisonExpr returns a comparison of the path x.
func comparisonExpr(op condition.Op, value any) *condition.Expr {
	return &condition.Expr{Op: op, Mode: condition.Strict, Var: "x", Value: value}
}

func TestConstantIn(t *testing.T) {
	t.Parallel()
	join := func(op condition.Op, parts ...*condition.Expr) *condition.Expr {
		return &condition.Expr{Op: op, Mode: condition.Strict, Of: parts}
	}
	const open, always, never = "open", "always", "never"
	flag, size := domain{kind: TypeBoolean, set: true}, domain{values: []any{"small", "large"}, set: true}
	for _, tt := range []struct {
		condition *condition.Expr
		domain    domain
		want      string
	}{
		{comparisonExpr(condition.Equals, 1.0), domain{}, open},
		{join(condition.And, comparisonExpr(condition.Equals, 1.0), comparisonExpr(condition.Equals, "1")), domain{}, never},
		{join(condition.And, comparisonExpr(condition.Gt, 3.0), comparisonExpr(condition.Lt, 4.0)), domain{}, open},
		{join(condition.And, comparisonExpr(condition.Gt, 3.0), comparisonExpr(condition.Lt, 3.0)), domain{}, never},
		{comparisonExpr(condition.Gt, "a"), domain{}, never},
		{join(condition.Or, comparisonExpr(condition.Exists, nil), comparisonExpr(condition.NotExists, nil)), domain{}, always},
		{join(condition.Or, comparisonExpr(condition.Lt, 1.0), comparisonExpr(condition.Gte, 1.0)), domain{}, open},
		{join(condition.Or, comparisonExpr(condition.Lt, 1.0), comparisonExpr(condition.Gte, 1.0)), domain{kind: TypeNumber, set: true}, always},
		{join(condition.Or, comparisonExpr(condition.Equals, true), comparisonExpr(condition.Equals, false)), flag, always},
		{comparisonExpr(condition.Equals, "yes"), flag, never},
		{comparisonExpr(condition.Exists, nil), flag, always},
		{comparisonExpr(condition.Exists, nil), domain{kind: TypeString}, open},
		{comparisonExpr(condition.Equals, "medium"), size, never},
		{comparisonExpr(condition.NotEquals, "medium"), size, always},
		{comparisonExpr(condition.Equals, "large"), size, open},
		{comparisonExpr(condition.Exists, nil), domain{values: []any{}}, never},
		{comparisonExpr(condition.Equals, nil), domain{values: []any{}, set: true}, open},
	} {
		got := open
		if value, ok := constantIn(tt.condition, tt.domain); ok && value {
			got = always
		} else if ok {
			got = never
		}
		if got != tt.want {
			t.Errorf("%s in %+v is %s, want %s", tt.condition, tt.domain, got, tt.want)
		}
	}
}

// TestConstantInIsSound looks for a value for which a constant condition is not so.
func TestConstantInIsSound(t *testing.T) {
	t.Parallel()
	values := []any{nil, true, false, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, "", "a", "~", "a~", "b", []any{1.0}, map[string]any{"a": 1.0}}
	rapid.Check(t, func(t *rapid.T) {
		var draw func(depth int) *condition.Expr
		draw = func(depth int) *condition.Expr {
			if depth == 0 || rapid.Bool().Draw(t, "leaf") {
				op := rapid.SampledFrom([]condition.Op{
					condition.Equals, condition.NotEquals, condition.Gt, condition.Gte, condition.Lt, condition.Lte, condition.Exists, condition.NotExists,
				}).Draw(t, "op")
				return comparisonExpr(op, rapid.SampledFrom(values[:15]).Draw(t, "literal"))
			}
			op := rapid.SampledFrom([]condition.Op{condition.And, condition.Or, condition.Not}).Draw(t, "join")
			e := &condition.Expr{Op: op, Mode: condition.Strict, Of: []*condition.Expr{draw(depth - 1)}}
			if op != condition.Not {
				e.Of = append(e.Of, draw(depth-1))
			}
			return e
		}
		e := draw(3)
		d := domain{kind: rapid.SampledFrom([]VariableType{"", TypeString, TypeNumber, TypeBoolean}).Draw(t, "type"), set: rapid.Bool().Draw(t, "set")}
		constant, ok := constantIn(e, d)
		if !ok {
			return
		}
		for _, v := range values {
			if (d.kind == "" || d.kind.Fits(v)) && e.HoldsWith(v, true) != constant {
				t.Fatalf("%s is said to be %v in %+v, but not with %v", e, constant, d, v)
			}
		}
		if !d.set && e.HoldsWith(nil, false) != constant {
			t.Fatalf("%s is said to be %v in %+v, but not without a value", e, constant, d)
		}
	})
}
