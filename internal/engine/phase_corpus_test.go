package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// TestPhasesCorpusCompletesWithEveryAnswer explores the runs of a corpus workflow with
// every answer to every gate. No command is refused, every path is bounded, and at least
// one path reaches the end. Each path sets the variables that it waits for to true, and up
// to twice to false.
func TestPhasesCorpusCompletesWithEveryAnswer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "corpus", "phases", "work-package", "work-package.json"))
	if err != nil {
		t.Skip("the corpus is not in the parent directory")
	}
	d, found := workflow.Parse("work-package.json", text)
	if d == nil {
		t.Fatal(found)
	}
	p := engine.CompilePhases(d.Phases)
	s, refusal := startRun(p)
	if refusal != nil {
		t.Fatal(refusal)
	}
	w := &answerExplorer{t: t, flow: p, seen: map[string]bool{}}
	w.exploreFrom(s, 2, 0)
	t.Logf("%d states, %d ends", len(w.seen), w.ends)
	if w.ends == 0 {
		t.Error("no path leads to the end")
	}
}

func startRun(f engine.Flow) (engine.State, *engine.Refusal) {
	events, refusal := f.Decide(engine.State{}, startCommand(nil))
	var s engine.State
	for _, e := range events {
		s = engine.Apply(s, e)
	}
	return s, refusal
}

// answerExplorer tries every answer at every gate, once for each state.
type answerExplorer struct {
	t    *testing.T
	flow engine.Flow
	seen map[string]bool
	ends int
}

// exploreFrom explores the runs that continue from a state. It sets variables to false at
// most falses times.
func (w *answerExplorer) exploreFrom(s engine.State, falses, depth int) {
	seq := s.Seq
	s.Seq, s.Steps = 0, 0 // counters do not change the next events
	key := asJSON(w.t, s) + string(rune('0'+falses))
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	s.Seq = seq
	if depth > 400 || len(w.seen) > 200_000 {
		w.t.Fatalf("a walk did not end after %d moves and %d states", depth, len(w.seen))
	}
	pos := w.flow.PositionOf(s)
	var next []engine.Command
	switch pos.Kind {
	case engine.PositionEnd:
		w.ends++
		return
	case engine.PositionStep:
		c := outputCommand("done", nil)
		c.Continue.Notes = "checked"
		next = append(next, c)
	case engine.PositionGate:
		for _, o := range pos.Options {
			next = append(next, humanAnswer(o.ID))
		}
	case engine.PositionContext:
		if len(pos.Needs) == 0 {
			w.t.Fatalf("the run waits, but names no variable: %+v", pos)
		}
		next = append(next, w.assertNeeds(pos, true)...)
		if falses > 0 {
			next = append(next, w.assertNeeds(pos, false)...)
		}
	}
	for i, c := range next {
		events, refusal := w.flow.Decide(s, c)
		if refusal != nil {
			w.t.Fatalf("at %s %s: %s: %s", pos.Kind, pos.ID, refusal.Rule, refusal.Message)
		}
		after := s
		for _, e := range events {
			after = engine.Apply(after, e)
		}
		left := falses
		if pos.Kind == engine.PositionContext && i > 0 {
			left--
		}
		w.exploreFrom(after, left, depth+1)
	}
}

// assertNeeds returns a command that sets the variables that a run waits for: a list for
// each loop, and value for all other variables.
func (w *answerExplorer) assertNeeds(pos engine.Position, value bool) []engine.Command {
	vars := map[string]any{}
	for _, n := range pos.Needs {
		setAtPath(vars, n.Variable, any(value))
		if pos.Loop == nil && len(n.Allowed) == 0 && len(n.Tests) == 0 {
			setAtPath(vars, n.Variable, []any{"one", "two"})
		}
	}
	return []engine.Command{outputCommand("", vars)}
}

// setAtPath sets a value by its dotted path.
func setAtPath(vars map[string]any, path string, value any) {
	for i := range path {
		if path[i] != '.' {
			continue
		}
		inner, _ := vars[path[:i]].(map[string]any)
		if inner == nil {
			inner = map[string]any{}
		}
		vars[path[:i]] = inner
		setAtPath(inner, path[i+1:], value)
		return
	}
	vars[path] = value
}
