package engine_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

const toolsSteps = `{"id":"tools","name":"T","description":"T","version":"1.0.0","steps":[
	{"id":"one","title":"One","prompt":"p","tools":{"allow":["a"]},"requireConfirmation":true},
	{"id":"many","type":"loop","title":"Many","loop":{"type":"for","count":1,"maxIterations":2},"tools":{"deny":["b"]},
	 "body":[{"id":"inner","title":"Inner","prompt":"p","tools":{"hold":["c"]}},{"id":"free","title":"Free","prompt":"p"}]},
	{"id":"last","title":"Last","prompt":"p"}]}`

const toolsPhases = `{"id":"tools","version":"1.0.0","title":"T","initialPhase":"one","phases":[
	{"id":"one","name":"One","tools":{"allow":["a"]},
	 "steps":[{"id":"first","name":"First","tools":{"deny":["b"]}},{"id":"second","name":"Second"}],
	 "loops":[{"id":"many","name":"Many","type":"forEach","over":"list","tools":{"hold":["c"]},"steps":[{"id":"inner","name":"Inner","tools":{"deny":["d"]}}]}],
	 "checkpoints":[{"id":"ask","name":"Ask","message":"?","options":[{"id":"yes","label":"Yes"}]}],"transitions":[{"to":"two"}]},
	{"id":"two","name":"Two","steps":[{"id":"last","name":"Last"}]}]}`

// TestToolsOfPosition checks that each position has the policy of its step, within those of
// its loop and its phase, and that a run that ended has none.
func TestToolsOfPosition(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		vars map[string]any
		want []string
	}{
		{toolsSteps, nil, []string{"step one: only a", "gate one: only a", "step inner: after approval c; never b", "step free: never b", "step last: ", "end : "}},
		{toolsPhases, map[string]any{"list": []any{"x"}}, []string{
			"step first: never b; only a", "step second: only a", "step inner: never d; after approval c; only a", "gate ask: only a", "step last: ", "end : ",
		}},
	} {
		d, found := workflow.Parse("", []byte(tt.text))
		if d == nil {
			t.Fatal(found)
		}
		var flow engine.Flow
		if d.Phases != nil {
			flow = engine.CompilePhases(d.Phases)
		} else {
			flow = engine.Compile(d.Steps)
		}
		s := applyCommands(t, flow, engine.State{}, startCommand(tt.vars))
		for i, want := range tt.want {
			pos := flow.PositionOf(s)
			if got := string(pos.Kind) + " " + pos.ID + ": " + pos.Tools.String(); got != want {
				t.Fatalf("position %d: %s, want %s", i, got, want)
			}
			if pos.Kind == engine.PositionEnd {
				break
			}
			c := outputCommand("done", nil)
			if pos.Kind == engine.PositionGate {
				c = answerCommand(pos.Options[0].ID)
			}
			s = applyCommands(t, flow, s, c)
		}
	}
}
