package workflow

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/rollbackguard"
	"github.com/guideway-dev/guideway/internal/store/sqlite"
	"github.com/guideway-dev/guideway/internal/workflow"
)

// oneDefinition is a catalog of one workflow.
type oneDefinition struct{ definition *workflow.Definition }

// Startable implements run.Definitions.
func (o oneDefinition) Startable(context.Context, string) (*workflow.Definition, error) {
	return o.definition, nil
}

// BenchmarkContinue measures run.Service.Continue without a transport: engine, event chain,
// journal (synced) and rollback guard. The Step10 case measures around step 10 and starts a
// new run every few calls; the Step5000 case continues one run from about step 5,000.
func BenchmarkContinue(b *testing.B) {
	def, _ := durableProgram(b)
	service := newRuns(b, def)
	for _, step := range []int{earlyStep, lateStep} {
		b.Run(fmt.Sprintf("Step%d", step), func(b *testing.B) {
			b.ReportAllocs()
			var a *run.Answer
			for i := 0; b.Loop(); i++ {
				if a == nil || (step == earlyStep && i%together == 0) {
					b.StopTimer()
					a = startAt(b, service, step-together/2)
					b.StartTimer()
				}
				a = goOnFrom(b, service, a)
			}
		})
	}
}

// newRuns returns a service with one workflow on an empty journal, wired as in the program.
func newRuns(b *testing.B, def *workflow.Definition) *run.Service {
	b.Helper()
	dir := b.TempDir()
	journal, err := sqlite.Open(b.Context(), sqlite.Options{Path: filepath.Join(dir, "journal.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = journal.Close() })
	key := make(run.Key, run.KeySize)
	heads, err := rollbackguard.Open(filepath.Join(dir, "heads"), key)
	if err != nil {
		b.Fatal(err)
	}
	service, err := run.New(run.Options{Journal: journal, Definitions: oneDefinition{def}, Key: key, Heads: heads})
	if err != nil {
		b.Fatal(err)
	}
	return service
}

func benchCaller() run.Caller {
	return run.Caller{Principal: guideway.Principal{User: "bench"}, Via: run.ViaAgent}
}

// startAt returns a new run at a step.
func startAt(b *testing.B, s *run.Service, step int) *run.Answer {
	b.Helper()
	a, err := s.Start(b.Context(), benchCaller(), run.StartRequest{WorkflowID: durableID})
	if err != nil {
		b.Fatal(err)
	}
	for range step {
		a = goOnFrom(b, s, a)
	}
	return a
}

func goOnFrom(b *testing.B, s *run.Service, a *run.Answer) *run.Answer {
	b.Helper()
	next, err := s.Continue(b.Context(), benchCaller(), run.ContinueRequest{Handle: a.Handle, Output: goodOutput()})
	if err != nil {
		b.Fatal(err)
	}
	return next
}
