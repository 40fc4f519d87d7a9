package engine

import (
	"encoding/json"
	"math"
	"testing"
)

// TestParseCount checks which values are a number of rounds: whole numbers that are not
// negative, also as text.
func TestParseCount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		value any
		want  int
	}{
		{0.0, 0}, {3.0, 3}, {2, 2}, {json.Number("4"), 4}, {" 5 ", 5}, {"1e2", 100}, {float64(math.MaxInt32), math.MaxInt32},
	} {
		if got, ok := parseCount(c.value); !ok || got != c.want {
			t.Errorf("%#v is %d, %v, want %d", c.value, got, ok, c.want)
		}
	}
	for _, value := range []any{
		nil, true, "", "many",
		[]any{1.0},
		map[string]any{},
		-1.0, -1, "-1", json.Number("-1"), 1.5, "1.5", -0.5,
		math.NaN(), "NaN", math.Inf(1), "Inf", "-Inf", float64(math.MaxInt32) + 1, 1e300, "1e300",
	} {
		if got, ok := parseCount(value); ok || got != 0 {
			t.Errorf("%#v is accepted as %d", value, got)
		}
	}
}
