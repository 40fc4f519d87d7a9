package engine_test

import (
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// loadCorpus returns every definition of the corpus that is expected to load.
func loadCorpus(t *testing.T) map[string]*workflow.Definition {
	t.Helper()
	root := filepath.Join("..", "..", "..", "shared", "corpus", "steps")
	if _, err := os.Stat(root); err != nil {
		t.Skipf("the corpus of real definitions is missing: %v", err)
	}
	defs := map[string]*workflow.Definition{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" || strings.Contains(path, ".schema.") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		def, found := workflow.Parse(path, data)
		if def == nil {
			if len(found) == 0 {
				t.Errorf("%s does not load, but has no diagnostics", path)
			}
			for _, f := range found {
				if f.Message == "" || f.Fix == "" {
					t.Errorf("%s: a diagnostic without a message or a fix: %+v", path, f)
				}
			}
			return nil
		}
		defs[filepath.Base(path)] = def
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(defs) < 18 {
		t.Errorf("only %d definitions of the corpus load", len(defs))
	}
	return defs
}

// variableDomains returns relevant values for every variable that the conditions and loops
// of a workflow read.
func variableDomains(w *steps.Workflow) map[string][]any {
	out := map[string][]any{}
	var visit func(e *expr.Expr)
	visit = func(e *expr.Expr) {
		if e == nil {
			return
		}
		if e.Var != "" {
			values := []any{"something else", true, false, 0.0, 100.0}
			if e.Value != nil {
				values = append(values, e.Value, e.Value, e.Value, e.Value)
			}
			out[e.Var] = append(out[e.Var], values...)
		}
		for _, part := range e.Of {
			visit(part)
		}
	}
	for i := range w.Steps {
		s := &w.Steps[i]
		visit(s.RunCondition)
		if s.Loop == nil {
			continue
		}
		visit(s.Loop.Condition)
		for j := range s.Loop.Body {
			visit(s.Loop.Body[j].RunCondition)
		}
	}
	for i := range w.Steps {
		l := w.Steps[i].Loop
		if l == nil {
			continue
		}
		for _, name := range []string{l.IterationVar, l.ItemVar, l.IndexVar} {
			delete(out, name)
		}
		if l.Items != "" {
			out[l.Items] = []any{[]any{}, []any{"one"}, []any{map[string]any{"id": "a"}, map[string]any{"id": "b"}, "c"}}
		}
		if l.CountVar != "" {
			out[l.CountVar] = []any{0.0, 1.0, 3.0, "2"}
		}
	}
	return out
}

func drawContext(r *rand.Rand, domains map[string][]any) map[string]any {
	names := make([]string, 0, len(domains))
	for name := range domains {
		names = append(names, name)
	}
	slices.Sort(names)
	vars := map[string]any{"untouched": map[string]any{"a": []any{1.0, "x"}}}
	for _, name := range names {
		vars[name] = domains[name][r.IntN(len(domains[name]))]
	}
	return vars
}

// TestCorpusWalksComplete checks that every definition of the corpus completes with the
// same steps for both kinds of clients, with variables drawn from the values in its
// conditions. If the variables change after every step, each walk still ends.
func TestCorpusWalksComplete(t *testing.T) {
	t.Parallel()
	for file, def := range loadCorpus(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := engine.Compile(def.Steps)
			values := variableDomains(def.Steps)
			r := rand.New(rand.NewPCG(1, 2)) // a fixed seed makes the walks the same every time
			for range 40 {
				vars := drawContext(r, values)
				var walks [][]string
				for _, c := range allClients() {
					ids, last := walker{client: c, vars: vars, most: 3000}.walkProgram(t, p)
					if !last.IsComplete {
						t.Fatalf("%s client: the walk with %v is not complete: %s", c, vars, last.Guidance.Prompt)
					}
					walks = append(walks, ids)
				}
				if d := cmp.Diff(walks[0], walks[1]); d != "" {
					t.Fatalf("the walks of the clients differ (-echo +own):\n%s", d)
				}
				for _, c := range allClients() {
					change := func(_ string, _ int, context map[string]any) {
						for k, v := range drawContext(r, values) {
							context[k] = v
						}
					}
					walker{client: c, vars: vars, sets: change, most: 3000}.walkProgram(t, p)
				}
			}
		})
	}
}

// Every definition of the corpus completes with all gates confirmed and all conditions
// decided. Criteria are removed because only an agent can meet them.
func TestCorpusRunsComplete(t *testing.T) {
	t.Parallel()
	for file, def := range loadCorpus(t) {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			p := engine.Compile(withoutCriteria(def.Steps))
			values := variableDomains(def.Steps)
			r := rand.New(rand.NewPCG(3, 4)) // a fixed seed makes the walks the same every time
			for range 20 {
				vars := drawContext(r, values)
				s := applyToProgram(t, p, engine.State{}, startCommand(vars))
				for range 5000 {
					pos := p.PositionOf(s)
					if pos.Kind == engine.PositionEnd {
						break
					}
					switch pos.Kind {
					case engine.PositionGate:
						s = applyToProgram(t, p, s, answerCommand(engine.OptionConfirm))
					case engine.PositionStep:
						s = applyToProgram(t, p, s, outputCommand("done", nil))
					default:
						// An agent can never set a loop's own variable, not even one that a
						// condition outside the loop reads.
						t.Fatalf("with %[2]v, the run waits for %+[1]v", pos.Needs, vars)
					}
				}
				if got := p.Status(s); got != engine.StatusCompleted {
					t.Fatalf("status = %s", got)
				}
			}
		})
	}
}

func withoutCriteria(w *steps.Workflow) *steps.Workflow {
	bare := *w
	bare.Steps = slices.Clone(w.Steps)
	for i := range bare.Steps {
		bare.Steps[i].Criteria = nil
		if l := bare.Steps[i].Loop; l != nil {
			loop := *l
			loop.Body = slices.Clone(l.Body)
			for j := range loop.Body {
				loop.Body[j].Criteria = nil
			}
			bare.Steps[i].Loop = &loop
		}
	}
	return &bare
}
