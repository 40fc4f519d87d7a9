package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// The complete example of the phase workflow specification reaches both of its ends.
func TestSeedExampleReachesBothEnds(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "seeds", "002_1ad3c5cb6ce7647a.txt"))
	if err != nil {
		t.Skip("the document is not in the parent directory")
	}
	_, example, _ := strings.Cut(string(text), "## Complete Example")
	_, example, _ = strings.Cut(example, "```json\n")
	example, _, _ = strings.Cut(example, "```")
	d, found := workflow.Parse("example.json", []byte(example))
	if d == nil {
		t.Fatal(found)
	}
	p := engine.CompilePhases(d.Phases)
	for _, way := range []struct {
		option, phase, step string
		approved            bool
	}{
		{"approve", "phase-process", "step-process", true},
		{"reject", "phase-rejected", "step-notify", false},
	} {
		s := applyCommands(t, p, engine.State{}, startCommand(nil), outputCommand("gathered", nil), answerCommand(way.option))
		pos := p.PositionOf(s)
		if pos.Phase == nil || pos.Phase.ID != way.phase || pos.ID != way.step || s.Vars["approved"] != way.approved {
			t.Errorf("%s leads to %+v with approved %v", way.option, pos, s.Vars["approved"])
		}
		if s = applyCommands(t, p, s, outputCommand("done", nil)); p.Status(s) != engine.StatusCompleted {
			t.Errorf("%s: the run is %s", way.option, p.Status(s))
		}
	}
}
