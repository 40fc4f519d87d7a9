package guide_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
)

// Every allowed combination of checkpoint answers leads to a terminal phase of each corpus
// definition. Unset variables are set to true, and a bounded number of times to false.
func TestPhasesCorpusCompletesWithEveryAnswer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "corpus", "phases", "work-package", "work-package.json"))
	if err != nil {
		t.Skip("no corpus beside this checkout")
	}
	d, found := definition.Parse("work-package.json", text)
	if d == nil {
		t.Fatal(found)
	}
	p := guide.CompilePhases(d.Phases)
	s, refusal := startRun(p)
	if refusal != nil {
		t.Fatal(refusal)
	}
	w := &answerExplorer{t: t, flow: p, seen: map[string]bool{}}
	w.exploreFrom(s, 2, 0)
	t.Logf("%d states, %d ends", len(w.seen), w.ends)
	if w.ends == 0 {
		t.Error("no way leads to the end")
	}
}

func startRun(f guide.Flow) (guide.State, *guide.Refusal) {
	events, refusal := f.Decide(guide.State{}, startCommand(nil))
	var s guide.State
	for _, e := range events {
		s = guide.Apply(s, e)
	}
	return s, refusal
}

// answerExplorer tries every answer at every gate, once per state.
type answerExplorer struct {
	t    *testing.T
	flow guide.Flow
	seen map[string]bool
	ends int
}

// exploreFrom continues from a state; it sets at most falses variables to false.
func (w *answerExplorer) exploreFrom(s guide.State, falses, depth int) {
	seq := s.Seq
	s.Seq, s.Steps = 0, 0 // counters do not change the next events
	key := asJSON(w.t, s) + string(rune('0'+falses))
	if w.seen[key] {
		return
	}
	w.seen[key] = true
	s.Seq = seq
	if depth > 400 || len(w.seen) > 200_000 {
		w.t.Fatalf("a walk of %d moves and %d states does not end", depth, len(w.seen))
	}
	pos := w.flow.PositionOf(s)
	var next []guide.Command
	switch pos.Kind {
	case guide.PositionEnd:
		w.ends++
		return
	case guide.PositionStep:
		c := outputCommand("done", nil)
		c.Continue.Notes = "checked"
		next = append(next, c)
	case guide.PositionGate:
		for _, o := range pos.Options {
			next = append(next, humanAnswer(o.ID))
		}
	case guide.PositionContext:
		if len(pos.Needs) == 0 {
			w.t.Fatalf("the run waits for nothing that it names: %+v", pos)
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
			after = guide.Apply(after, e)
		}
		left := falses
		if pos.Kind == guide.PositionContext && i > 0 {
			left--
		}
		w.exploreFrom(after, left, depth+1)
	}
}

// assertNeeds sets the variables that a run waits for: lists for loops, the value for all
// others.
func (w *answerExplorer) assertNeeds(pos guide.Position, value bool) []guide.Command {
	vars := map[string]any{}
	for _, n := range pos.Needs {
		setAtPath(vars, n.Variable, any(value))
		if pos.Loop == nil && len(n.Allowed) == 0 && len(n.Tests) == 0 {
			setAtPath(vars, n.Variable, []any{"one", "two"})
		}
	}
	return []guide.Command{outputCommand("", vars)}
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
