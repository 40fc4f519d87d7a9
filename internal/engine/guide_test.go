package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	workflowpkg "github.com/guideway-dev/guideway/internal/workflow"
)

// compileSteps compiles the steps of a workflow, given as JSON.
func compileSteps(t testing.TB, steps string) *engine.Program {
	t.Helper()
	return compileAll(t, `{"id":"probe","name":"Probe","description":"A probe","version":"1.0.0","steps":`+steps+`}`)
}

func compileAll(t testing.TB, workflow string) *engine.Program {
	t.Helper()
	def, found := workflowpkg.Parse("probe.json", []byte(workflow))
	if def == nil {
		t.Fatalf("the workflow does not parse: %+v", found)
	}
	return engine.Compile(def.Steps)
}

// parseVars decodes variables as they arrive from a caller.
func parseVars(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("bad variables %s: %v", text, err)
	}
	return m
}

// roundTripJSON encodes and decodes a value, as every call does.
func roundTripJSON(t testing.TB, m map[string]any) map[string]any {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("a context does not marshal: %v", err)
	}
	return parseVars(t, string(b))
}

// client is the way in which an agent keeps the state of workflow_next.
type client string

const (
	// echo sends the context of the last answer unchanged.
	echo client = "echo"
	// own sends only its own variables.
	own client = "own"
)

func allClients() []client { return []client{echo, own} }

// walker walks a program to its end.
type walker struct {
	client client
	// vars are set before the first step. sets is called after each step with the ID of the
	// step, the number of its completions, and the variables of the next call.
	vars map[string]any
	sets func(id string, nth int, vars map[string]any)
	most int
}

// walkProgram returns the IDs of the steps in order and the last answer. It fails the test
// on an error and if the walk does not end.
func (w walker) walkProgram(t testing.TB, p *engine.Program) ([]string, *engine.NextResult) {
	t.Helper()
	vars := roundTripJSON(t, w.vars)
	if vars == nil {
		vars = map[string]any{}
	}
	counts := map[string]int{}
	var ids []string
	context := vars
	for range w.most + 1 {
		res, err := p.Next(engine.NextRequest{Completed: ids, Context: roundTripJSON(t, context)})
		if err != nil {
			t.Fatalf("after %v: %v", ids, err)
		}
		if res.Step == nil {
			return ids, res
		}
		ids = append(ids, res.Step.ID)
		counts[res.Step.ID]++
		context = vars
		if w.client == echo {
			context = roundTripJSON(t, res.Context)
		}
		if w.sets != nil {
			w.sets(res.Step.ID, counts[res.Step.ID], context)
		}
	}
	t.Fatalf("%s client: the walk did not end after %d steps: %v", w.client, w.most, ids)
	return nil, nil
}

func callNext(t testing.TB, p *engine.Program, completed []string, vars string) *engine.NextResult {
	t.Helper()
	res, err := p.Next(engine.NextRequest{Completed: completed, Context: parseVars(t, vars)})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return res
}

func stepID(res *engine.NextResult) string {
	if res.Step == nil {
		return ""
	}
	return res.Step.ID
}

func TestContextTooLargeErrorCode(t *testing.T) {
	t.Parallel()
	p := compileSteps(t, `[{"id":"one","title":"One","prompt":"Do one."}]`)
	big := make([]byte, 140_000)
	for i := range big {
		big[i] = 'x'
	}
	_, err := p.Next(engine.NextRequest{Context: map[string]any{"big": string(big)}})
	if guideway.ErrorCode(err) != guideway.CodeTooLarge {
		t.Fatalf("error = %v, want code %s", err, guideway.CodeTooLarge)
	}
	if want := "Context size (273KB) exceeds maximum allowed size (256KB)"; err.Error() != want {
		t.Errorf("message = %q, want %q", err, want)
	}
}
