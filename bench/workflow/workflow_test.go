package workflow

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway/internal/workflow"
	"go.yaml.in/yaml/v3"
)

// TestWorkflows checks that there are 50 generated workflows of realistic sizes, without
// diagnostics, and with the same hash in both formats.
func TestWorkflows(t *testing.T) {
	t.Parallel()
	docs := generateWorkflows()
	if len(docs) != workflowCount {
		t.Errorf("%d workflows, want %d", len(docs), workflowCount)
	}
	ids := map[string]bool{}
	for _, d := range docs {
		text, err := json.MarshalIndent(d, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if len(text) < 10_000 || len(text) > 65_000 {
			t.Errorf("%s has %d bytes", d.ID, len(text))
		}
		other, err := yaml.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		inJSON, inYAML := parseWorkflow(t, d.ID+".json", text), parseWorkflow(t, d.ID+".yaml", other)
		if inJSON.Hash != inYAML.Hash {
			t.Errorf("%s has a different meaning in YAML", d.ID)
		}
		if ids[d.ID] {
			t.Errorf("duplicate id %s", d.ID)
		}
		ids[d.ID] = true
	}
}

func parseWorkflow(tb testing.TB, file string, text []byte) *workflow.Definition {
	tb.Helper()
	def, found := workflow.Check(file, text)
	if def == nil {
		tb.Fatalf("%s: %+v", file, found)
	}
	for _, d := range found {
		tb.Errorf("%s: %+v", file, d)
	}
	return def
}
