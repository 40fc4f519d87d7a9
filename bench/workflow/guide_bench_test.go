package workflow

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// rounds is above the limit that the linter recommends, so that growth with the number of
// rounds is visible.
const rounds = 500

func compileLoop(b *testing.B) *engine.Program {
	b.Helper()
	text, err := json.Marshal(loopDocument("bench-rounds", 2*rounds))
	if err != nil {
		b.Fatal(err)
	}
	def, found := workflow.Parse("bench-rounds.json", text)
	if def == nil {
		b.Fatalf("the workflow does not load: %+v", found)
	}
	return engine.Compile(def.Steps)
}

// BenchmarkNext measures the stateless call at the first step and at step 2 of round 500,
// for a client that sends the returned context back and for one that sends only its
// variables.
func BenchmarkNext(b *testing.B) {
	p := compileLoop(b)
	late := completedUntil(rounds)
	res, err := p.Next(engine.NextRequest{Completed: late})
	if err != nil {
		b.Fatal(err)
	}
	if res.Step == nil || res.Step.ID != "round-2" {
		b.Fatalf("after %d steps: %+v", len(late), res.Step)
	}
	for _, bench := range []struct {
		name string
		req  engine.NextRequest
	}{
		{"FirstStep", engine.NextRequest{}},
		{"Round500/Echo", engine.NextRequest{Completed: late, Context: res.Context}},
		{"Round500/Own", engine.NextRequest{Completed: late}},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := p.Next(bench.req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// completedUntil returns the steps completed before step 2 of a round.
func completedUntil(round int) []string {
	var done []string
	for i := range aroundLoop {
		done = append(done, fmt.Sprintf("before-%d", i+1))
	}
	for range round - 1 {
		for i := range inLoop {
			done = append(done, fmt.Sprintf("round-%d", i+1))
		}
	}
	return append(done, "round-1")
}

// BenchmarkDecide measures the check of an output and the resulting events, at step 10 and
// at step 1,500.
func BenchmarkDecide(b *testing.B) {
	p := compileLoop(b)
	for _, step := range []int{10, inLoop * rounds} {
		s := stateAt(b, p, step)
		b.Run(fmt.Sprintf("Step%d", step), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, refusal := p.Decide(s, goodCommand()); refusal != nil {
					b.Fatal(refusal)
				}
			}
		})
	}
}

// BenchmarkApply measures the fold of a run of 1,500 steps; it also reports the time per
// event.
func BenchmarkApply(b *testing.B) {
	p := compileLoop(b)
	events := eventsUntil(b, p, inLoop*rounds)
	b.ReportAllocs()
	for b.Loop() {
		var s engine.State
		for _, e := range events {
			s = engine.Apply(s, e)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}

// BenchmarkPositionOf measures the position of a run at step 1,500.
func BenchmarkPositionOf(b *testing.B) {
	p := compileLoop(b)
	s := stateAt(b, p, inLoop*rounds)
	b.ReportAllocs()
	for b.Loop() {
		if pos := p.PositionOf(s); pos.Kind != engine.PositionStep {
			b.Fatalf("%+v", pos)
		}
	}
}

func stateAt(b *testing.B, p *engine.Program, step int) engine.State {
	b.Helper()
	var s engine.State
	for _, e := range eventsUntil(b, p, step) {
		s = engine.Apply(s, e)
	}
	return s
}

// eventsUntil returns the events of a run with a number of completed steps.
func eventsUntil(b *testing.B, p *engine.Program, steps int) []engine.Event {
	b.Helper()
	var s engine.State
	var events []engine.Event
	for i := range steps + 1 {
		c := goodCommand()
		if i == 0 {
			c = engine.Command{Start: &engine.Start{}}
		}
		more, refusal := p.Decide(s, c)
		if refusal != nil {
			b.Fatalf("step %d: %+v", i, refusal)
		}
		for _, e := range more {
			s = engine.Apply(s, e)
		}
		events = append(events, more...)
	}
	return events
}

// goodCommand returns a command whose output meets the criteria of every generated step.
func goodCommand() engine.Command {
	return engine.Command{Continue: &engine.Continue{Output: goodOutput()}}
}
