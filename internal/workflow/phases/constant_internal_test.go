package phases

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway/internal/workflow/expr"
)

// comparisonExpr returns a comparison of the path x.
func comparisonExpr(op expr.Op, value any) *expr.Expr {
	return &expr.Expr{Op: op, Mode: expr.Strict, Var: "x", Value: value}
}

func TestConstantIn(t *testing.T) {
	t.Parallel()
	join := func(op expr.Op, parts ...*expr.Expr) *expr.Expr {
		return &expr.Expr{Op: op, Mode: expr.Strict, Of: parts}
	}
	const open, always, never = "open", "always", "never"
	flag, size := domain{kind: TypeBoolean, set: true}, domain{values: []any{"small", "large"}, set: true}
	for _, tt := range []struct {
		condition *expr.Expr
		domain    domain
		want      string
	}{
		{comparisonExpr(expr.Equals, 1.0), domain{}, open},
		{join(expr.And, comparisonExpr(expr.Equals, 1.0), comparisonExpr(expr.Equals, "1")), domain{}, never},
		{join(expr.And, comparisonExpr(expr.Gt, 3.0), comparisonExpr(expr.Lt, 4.0)), domain{}, open},
		{join(expr.And, comparisonExpr(expr.Gt, 3.0), comparisonExpr(expr.Lt, 3.0)), domain{}, never},
		{comparisonExpr(expr.Gt, "a"), domain{}, never},
		{join(expr.Or, comparisonExpr(expr.Exists, nil), comparisonExpr(expr.NotExists, nil)), domain{}, always},
		{join(expr.Or, comparisonExpr(expr.Lt, 1.0), comparisonExpr(expr.Gte, 1.0)), domain{}, open},
		{join(expr.Or, comparisonExpr(expr.Lt, 1.0), comparisonExpr(expr.Gte, 1.0)), domain{kind: TypeNumber, set: true}, always},
		{join(expr.Or, comparisonExpr(expr.Equals, true), comparisonExpr(expr.Equals, false)), flag, always},
		{comparisonExpr(expr.Equals, "yes"), flag, never},
		{comparisonExpr(expr.Exists, nil), flag, always},
		{comparisonExpr(expr.Exists, nil), domain{kind: TypeString}, open},
		{comparisonExpr(expr.Equals, "medium"), size, never},
		{comparisonExpr(expr.NotEquals, "medium"), size, always},
		{comparisonExpr(expr.Equals, "large"), size, open},
		{comparisonExpr(expr.Exists, nil), domain{values: []any{}}, never},
		{comparisonExpr(expr.Equals, nil), domain{values: []any{}, set: true}, open},
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

// TestConstantInIsSound searches for values that contradict constantIn.
func TestConstantInIsSound(t *testing.T) {
	t.Parallel()
	values := []any{nil, true, false, -1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, "", "a", "~", "a~", "b", []any{1.0}, map[string]any{"a": 1.0}}
	rapid.Check(t, func(t *rapid.T) {
		var draw func(depth int) *expr.Expr
		draw = func(depth int) *expr.Expr {
			if depth == 0 || rapid.Bool().Draw(t, "leaf") {
				op := rapid.SampledFrom([]expr.Op{
					expr.Equals, expr.NotEquals, expr.Gt, expr.Gte, expr.Lt, expr.Lte, expr.Exists, expr.NotExists,
				}).Draw(t, "op")
				return comparisonExpr(op, rapid.SampledFrom(values[:15]).Draw(t, "literal"))
			}
			op := rapid.SampledFrom([]expr.Op{expr.And, expr.Or, expr.Not}).Draw(t, "join")
			e := &expr.Expr{Op: op, Mode: expr.Strict, Of: []*expr.Expr{draw(depth - 1)}}
			if op != expr.Not {
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
				t.Fatalf("constantIn: %s is %v in %+v, but not with the value %v", e, constant, d, v)
			}
		}
		if !d.set && e.HoldsWith(nil, false) != constant {
			t.Fatalf("constantIn: %s is %v in %+v, but not without a value", e, constant, d)
		}
	})
}
