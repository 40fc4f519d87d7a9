package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway/internal/definition"
	"github.com/guideway-dev/guideway/internal/guide"
	"github.com/guideway-dev/guideway/internal/run"
)

// BenchmarkPhaseWalkBytes walks a real phase workflow to its end by the runs
// tools and reports what an agent reads on the way, as text, beside what its
// definition alone has: the system that the dialect comes from hands out the
// whole definition and each of its phases.
func BenchmarkPhaseWalkBytes(b *testing.B) {
	text, err := os.ReadFile(filepath.Join("..", "..", "shared", "corpus", "phases", "work-package", "work-package.json"))
	if err != nil {
		b.Skip("no corpus beside this checkout")
	}
	def, found := definition.Parse("work-package.json", text)
	if def == nil {
		b.Fatal(found)
	}
	service := newRuns(b, def)
	caller := run.Caller{Principal: benchCaller().Principal, Via: run.ViaTerminal}
	var read, moves int
	for b.Loop() {
		read, moves = 0, 0
		a, err := service.Start(b.Context(), caller, run.StartRequest{WorkflowID: def.ID})
		for ; err == nil && a.Position.Kind != guide.PositionEnd; moves++ {
			read += len(asText(b, a))
			a, err = service.Continue(b.Context(), caller, along(a))
		}
		if err != nil {
			b.Fatal(err)
		}
		read += len(asText(b, a))
	}
	b.ReportMetric(float64(read), "bytes/walk")
	b.ReportMetric(float64(moves), "moves/walk")
	b.ReportMetric(float64(len(def.Canonical)), "bytes/definition")
	b.ReportMetric(0, "ns/op")
}

func asText(b *testing.B, a *run.Answer) []byte {
	b.Helper()
	text, err := json.Marshal(a)
	if err != nil {
		b.Fatal(err)
	}
	return text
}

// along is the first thing that a position takes.
func along(a *run.Answer) run.ContinueRequest {
	r := run.ContinueRequest{Handle: a.Handle}
	switch pos := a.Position; pos.Kind {
	case guide.PositionStep:
		r.Output, r.Notes = "done", "checked"
	case guide.PositionGate:
		r.Answer = &guide.Answer{OptionID: pos.Options[0].ID}
	case guide.PositionContext:
		r.Context = map[string]any{}
		for _, n := range pos.Needs {
			r.Context[n.Variable] = true
			if len(n.Allowed) == 0 && len(n.Tests) == 0 { // a loop's list
				r.Context["plan"] = map[string]any{"tasks": []any{"one", "two"}}
				delete(r.Context, n.Variable)
			}
		}
	}
	return r
}
