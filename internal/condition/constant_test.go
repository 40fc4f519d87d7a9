package condition_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/condition"
)

func TestConstant(t *testing.T) {
	t.Parallel()
	const always, never, open = "always", "never", "open"
	tests := []struct {
		condition string
		want      string
	}{
		{`{}`, always},
		{`{"foo":1}`, never},
		{`{"and":[]}`, always},
		{`{"or":[]}`, never},
		{`{"var":"x"}`, open},
		{`{"var":"x","equals":1}`, open},
		{`{"var":"x","not_equals":1}`, open},

		{`{"and":[{"var":"x","equals":"a"},{"var":"x","equals":"b"}]}`, never},
		{`{"and":[{"var":"x","equals":"a"},{"var":"x","equals":" A"}]}`, open},
		{`{"and":[{"var":"x","equals":"a"},{"var":"y","equals":"b"}]}`, open},
		{`{"and":[{"var":"x","equals":1},{"var":"x","equals":"1"}]}`, open},
		{`{"and":[{"var":"x","equals":1},{"var":"x","equals":true}]}`, open}, // "1"
		{`{"and":[{"var":"x","equals":2},{"var":"x","equals":true}]}`, never},
		{`{"and":[{"var":"x","equals":true},{"var":"x","equals":false}]}`, never},
		{`{"and":[{"var":"x","equals":null},{"var":"x"}]}`, never},
		{`{"and":[{"var":"x","equals":0},{"var":"x"}]}`, open}, // "0"
		{`{"and":[{"var":"x","equals":""},{"var":"x"}]}`, open},
		{`{"and":[{"var":"x","gt":5},{"var":"x","lt":3}]}`, never},
		{`{"and":[{"var":"x","gt":3},{"var":"x","lt":5}]}`, open},
		{`{"and":[{"var":"x","gte":3},{"var":"x","lte":3},{"var":"x","not_equals":3}]}`, never},
		{`{"and":[{"var":"x","gt":3},{"var":"x","equals":"small"}]}`, never},
		{`{"and":[{"var":"x","gt":3},{"var":"x","equals":"0x10"}]}`, open},
		{`{"and":[{"var":"x","gt":3},{"var":"x","equals":null}]}`, never},
		{`{"and":[{"var":"x"},{"not":{"var":"x"}}]}`, never},
		{`{"var":"x","equals":[1]}`, never},
		{`{"var":"x","not_equals":{}}`, always},
		{`{"var":"x","gt":"many"}`, never},
		{`{"var":"x","matches":"["}`, never},
		{`{"var":"x","matches":"a"}`, open},
		{`{"and":[{"var":"x","equals":"Infinity"},{"var":"x","gt":5}]}`, open},

		{`{"or":[{"var":"x","equals":1},{"var":"x","not_equals":1}]}`, always},
		{`{"or":[{"var":"x","equals":1},{"var":"x","not_equals":2}]}`, open},
		{`{"or":[{"var":"x","lt":3},{"var":"x","gte":3}]}`, open}, // missing
		{`{"or":[{"var":"x","not_equals":"a"},{"var":"x","not_equals":"b"}]}`, always},
		{`{"not":{"and":[{"var":"x","equals":"a"},{"var":"x","equals":"b"}]}}`, always},

		{`{"or":[{"var":"x","contains":"a"},{"not":{"var":"x","contains":"a"}}]}`, always},
		{`{"and":[{"var":"x","equals":"done"},{"var":"x","contains":"xyz"}]}`, never},
		{`{"and":[{"var":"x","equals":"done"},{"var":"x","startsWith":"d"}]}`, open},
		{`{"and":[{"var":"x","equals":null},{"var":"x","endsWith":"d"}]}`, never},
	}
	for _, tt := range tests {
		t.Run(tt.condition, func(t *testing.T) {
			t.Parallel()
			got := open
			if value, ok := condition.Parse(decode(t, tt.condition)).Constant(); ok {
				got = never
				if value {
					got = always
				}
			}
			if got != tt.want {
				t.Errorf("%s is %s, want %s", tt.condition, got, tt.want)
			}
		})
	}
}

// TestConstantGivesUp asks for more than the budget allows: no variable decides
// before all of them are chosen.
func TestConstantGivesUp(t *testing.T) {
	t.Parallel()
	var pairs []string
	for i := range 40 {
		name := `{"var":"v` + strconv.Itoa(i)
		pairs = append(pairs, `{"or":[`+name+`","equals":1},`+name+`","equals":2}]}`)
	}
	pairs = append(pairs, `{"and":[{"var":"z"},{"not":{"var":"z"}}]}`)
	if value, ok := condition.Parse(decode(t, `{"and":[`+strings.Join(pairs, ",")+`]}`)).Constant(); ok && value {
		t.Error("a condition that never holds is said to hold always")
	}
}
