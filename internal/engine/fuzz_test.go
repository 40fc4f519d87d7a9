package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
)

// FuzzNext checks that Next does not panic, and that it accepts the context of its own
// answer.
func FuzzNext(f *testing.F) {
	for _, seed := range []string{
		`{"completed":[],"context":{}}`,
		`{"completed":["look-at","judge-it","look-at"],"context":{"list":["a",{"name":"b"}]}}`,
		`{"completed":["per-item"],"context":{"_loopState":{"per-item":{"iteration":2,"before":2}},"list":[1,2,3]}}`,
		`{"completed":["a"],"context":{"_currentLoop":{"loopId":"per-item"},"list":7}}`,
	} {
		f.Add([]byte(seed))
	}
	p := compileSteps(f, bigLoop)
	f.Fuzz(func(t *testing.T, data []byte) {
		var in struct {
			Completed []string       `json:"completed"`
			Context   map[string]any `json:"context"`
		}
		if json.Unmarshal(data, &in) != nil {
			t.Skip("not a call")
		}
		first, err := p.Next(engine.NextRequest{Completed: in.Completed, Context: in.Context})
		if err != nil {
			return
		}
		if _, err := p.Next(engine.NextRequest{Completed: in.Completed, Context: roundTripJSON(t, first.Context)}); err != nil {
			t.Fatalf("the answer's context is refused: %v", err)
		}
	})
}
