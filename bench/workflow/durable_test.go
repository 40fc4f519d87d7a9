package workflow

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

func durableProgram(tb testing.TB) (*workflow.Definition, *engine.Program) {
	tb.Helper()
	text, err := json.Marshal(durableDocument())
	if err != nil {
		tb.Fatal(err)
	}
	def, found := workflow.Check(durableID+".json", text)
	if def == nil {
		tb.Fatalf("%+v", found)
	}
	for _, d := range found {
		if d.Severity == guideway.SeverityError {
			tb.Errorf("%+v", d)
		}
	}
	return def, engine.Compile(def.Steps)
}

// TestDurableWorkflow checks that the workflow has more steps than the measurements need,
// and that the outputs of the client meet every criterion.
func TestDurableWorkflow(t *testing.T) {
	t.Parallel()
	_, p := durableProgram(t)
	var s engine.State
	c := engine.Command{Start: &engine.Start{}}
	for step := range lateStep + 1000 {
		events, refusal := p.Decide(s, c)
		if refusal != nil {
			t.Fatalf("step %d: %+v", step, refusal)
		}
		for _, e := range events {
			s = engine.Apply(s, e)
		}
		c = goodCommand()
	}
	if pos := p.PositionOf(s); pos.Kind != engine.PositionStep {
		t.Errorf("after the measurements, the run is at %+v", pos)
	}
}
