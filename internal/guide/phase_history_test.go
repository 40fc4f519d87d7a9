package guide_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/guide"
)

// All kinds of events that the published schema of states has come up in the
// histories of runs, and no others do.
func TestHistoryHasAllKindsOfTheSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Definitions struct {
			Entry struct {
				Properties struct {
					Type struct {
						Enum []string `json:"enum"`
					} `json:"type"`
				} `json:"properties"`
			} `json:"entry"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal(phases.Schema(phases.KindState), &schema); err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(slices.Values(schema.Definitions.Entry.Properties.Type.Enum))
	if len(want) != 18 {
		t.Fatalf("the schema has %d kinds: %v", len(want), want)
	}
	p := guide.CompilePhases(review())
	walk := func(commands ...guide.Command) (all []guide.TimedEvent) {
		var s guide.State
		for i, c := range commands {
			events, refusal := p.Decide(s, c)
			if refusal != nil {
				t.Fatalf("command %d: %s", i, refusal.Message)
			}
			for _, e := range events {
				s = guide.Apply(s, e)
				all = append(all, guide.TimedEvent{At: time.Unix(int64(len(all)), 0), Event: e})
			}
		}
		return all
	}
	plan := map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{"a"}}}
	through := walk(start(plan), output("o", nil), skip(), output("a", nil), notes("clean"),
		output("o", map[string]any{"tested": true}), person("quick"), answer("none"), output("there", nil))
	broken := walk(start(map[string]any{"plan": plan["plan"], "enough": true}), output("o", nil), skip(), output("a", nil),
		guide.Command{Abort: &guide.Abort{Reason: "enough"}})
	refused := append(walk(start(plan)), guide.TimedEvent{Event: guide.Event{Kind: guide.EventError, Reason: "validate-failed", Message: "not so"}})
	got := map[string]bool{}
	for _, events := range [][]guide.TimedEvent{through, broken, refused} {
		for _, h := range p.Document(events).History {
			got[h.Type] = true
		}
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(got))); d != "" {
		t.Errorf("kinds of events (-schema +history):\n%s", d)
	}
}
