package guide_test

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
)

// compile makes a program of the steps of a workflow, given as JSON.
func compile(t testing.TB, steps string) *guide.Program {
	t.Helper()
	return compileAll(t, `{"id":"probe","name":"Probe","description":"A probe","version":"1.0.0","steps":`+steps+`}`)
}

func compileAll(t testing.TB, workflow string) *guide.Program {
	t.Helper()
	def, found := definition.Parse("probe.json", []byte(workflow))
	if def == nil {
		t.Fatalf("the workflow does not parse: %+v", found)
	}
	return guide.Compile(def.Steps)
}

// values reads variables as a caller's JSON would bring them.
func values(t testing.TB, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("bad variables %s: %v", text, err)
	}
	return m
}

// through sends a value over JSON, as every call does.
func through(t testing.TB, m map[string]any) map[string]any {
	t.Helper()
	b, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("a context does not marshal: %v", err)
	}
	return values(t, string(b))
}

// client is one way in which agents use workflow_next.
type client string

const (
	// echo sends back exactly the context that it was given.
	echo client = "echo"
	// own sends nothing but its own variables.
	own client = "own"
)

func clients() []client { return []client{echo, own} }

// walker walks a program to its end.
type walker struct {
	client client
	// vars are set before the first step; sets after a step, by its id and
	// how often it was completed.
	vars map[string]any
	sets func(id string, nth int, vars map[string]any)
	most int
}

// walk returns the ids in the order of the walk and the last answer. It fails
// the test on an error and where the walk does not end.
func (w walker) walk(t testing.TB, p *guide.Program) ([]string, *guide.NextResult) {
	t.Helper()
	vars := through(t, w.vars)
	if vars == nil {
		vars = map[string]any{}
	}
	counts := map[string]int{}
	var ids []string
	context := vars
	for range w.most + 1 {
		res, err := p.Next(guide.NextRequest{Completed: ids, Context: through(t, context)})
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
			context = through(t, res.Context)
		}
		if w.sets != nil {
			w.sets(res.Step.ID, counts[res.Step.ID], context)
		}
	}
	t.Fatalf("%s client: no end after %d steps: %v", w.client, w.most, ids)
	return nil, nil
}

func next(t testing.TB, p *guide.Program, completed []string, vars string) *guide.NextResult {
	t.Helper()
	res, err := p.Next(guide.NextRequest{Completed: completed, Context: values(t, vars)})
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	return res
}

func stepID(res *guide.NextResult) string {
	if res.Step == nil {
		return ""
	}
	return res.Step.ID
}

func TestContextTooLargeHasItsCode(t *testing.T) {
	t.Parallel()
	p := compile(t, `[{"id":"one","title":"One","prompt":"Do one."}]`)
	big := make([]byte, 140_000)
	for i := range big {
		big[i] = 'x'
	}
	_, err := p.Next(guide.NextRequest{Context: map[string]any{"big": string(big)}})
	if guideway.ErrorCode(err) != guideway.CodeTooLarge {
		t.Fatalf("error = %v, want code %s", err, guideway.CodeTooLarge)
	}
	if want := "Context size (273KB) exceeds maximum allowed size (256KB)"; err.Error() != want {
		t.Errorf("message = %q, want %q", err, want)
	}
}
