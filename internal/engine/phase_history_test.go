package engine_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// The histories of runs contain all kinds of events of the published state schema, and no
// others.
func TestHistoryCoversSchemaEventKinds(t *testing.T) {
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
	p := engine.CompilePhases(reviewWorkflow())
	walk := func(commands ...engine.Command) (all []engine.TimedEvent) {
		var s engine.State
		for i, c := range commands {
			events, refusal := p.Decide(s, c)
			if refusal != nil {
				t.Fatalf("command %d: %s", i, refusal.Message)
			}
			for _, e := range events {
				s = engine.Apply(s, e)
				all = append(all, engine.TimedEvent{At: time.Unix(int64(len(all)), 0), Event: e})
			}
		}
		return all
	}
	plan := map[string]any{"size": "large", "plan": map[string]any{"tasks": []any{"a"}}}
	through := walk(startCommand(plan), outputCommand("o", nil), skipCommand(), outputCommand("a", nil), notesCommand("clean"),
		outputCommand("o", map[string]any{"tested": true}), humanAnswer("quick"), answerCommand("none"), outputCommand("there", nil))
	broken := walk(startCommand(map[string]any{"plan": plan["plan"], "enough": true}), outputCommand("o", nil), skipCommand(), outputCommand("a", nil),
		engine.Command{Abort: &engine.Abort{Reason: "enough"}})
	refused := append(walk(startCommand(plan)), engine.TimedEvent{Event: engine.Event{Kind: engine.EventError, Reason: "validate-failed", Message: "not so"}})
	got := map[string]bool{}
	for _, events := range [][]engine.TimedEvent{through, broken, refused} {
		for _, h := range p.Document(events).History {
			got[h.Type] = true
		}
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(got))); d != "" {
		t.Errorf("kinds of events (-schema +history):\n%s", d)
	}
}
