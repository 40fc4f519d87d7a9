package run_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// requireSubmission checks the output that the gate of a run asks about, as this process and
// a new one read it.
func requireSubmission(t *testing.T, b *testBench, runID, step, output string) *run.Submission {
	t.Helper()
	var got *run.Submission
	for _, s := range []*run.Service{b.Service, b.newService(t)} {
		d, err := s.Get(t.Context(), agentCaller(), run.Ref{RunID: runID})
		if err != nil {
			t.Fatal(err)
		}
		got = d.Submission
		if got == nil || got.Step != step || got.Output != output {
			t.Fatalf("at %s %s the output of %s is %+v, want %q", d.Position.Kind, d.Position.ID, step, got, output)
		}
	}
	return got
}

// TestLaterEventsDoNotHideTheSubmission checks that the details of a run contain the output
// that its gate asks about, even after many marks and refused attempts. This process and a
// new one return the same output.
func TestLaterEventsDoNotHideTheSubmission(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	output := strings.Repeat("x", 200_000) + "DROP the production database"
	gate := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: output, Notes: "all is well"})
	before := requireSubmission(t, b, a.RunID, "plan", output)
	if before.Notes != "all is well" {
		t.Errorf("the notes are %q", before.Notes)
	}
	for i := range 300 {
		if _, err := b.Mark(t.Context(), agentCaller(), run.MarkRequest{Ref: run.Ref{Handle: gate.Handle}, Keys: []string{fmt.Sprint("k", i)}}); err != nil {
			t.Fatal(err)
		}
		if i < 100 {
			_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: gate.Handle, Output: "harmless"})
			checkRule(t, err, engine.RuleGateUnanswered)
		}
	}
	if after := requireSubmission(t, b, a.RunID, "plan", output); after.Seq != before.Seq {
		t.Errorf("the output is event %d, and was event %d", after.Seq, before.Seq)
	}
	// A revised step has a new output.
	revised, err := b.Answer(t.Context(), personCaller(run.ViaBrowser), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: engine.Answer{OptionID: engine.OptionRevise}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := b.Get(t.Context(), agentCaller(), run.Ref{RunID: a.RunID}); err != nil || d.Submission != nil {
		t.Errorf("a step has the output %+v, %v", d.Submission, err)
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: revised.Handle, Output: "the second plan"})
	requireSubmission(t, b, a.RunID, "plan", "the second plan")
	fork, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}, Seq: before.Seq})
	if err != nil {
		t.Fatal(err)
	}
	requireSubmission(t, b, fork.RunID, "plan", output)
}

// TestSubmissionOfCheckpointsAndLoops checks that a checkpoint asks about the last output
// of its phase. A checkpoint of a phase without an output and the gate of a loop that has
// not started ask about none.
func TestSubmissionOfCheckpointsAndLoops(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	b.shelf["shipping"] = shippingWorkflow
	b.shelf["looping"] = testWorkflow("looping", `[{"id":"plan","title":"Plan","prompt":"Plan."},
		{"id":"rounds","type":"loop","title":"Rounds","requireConfirmation":true,"approval":"human","loop":{"type":"for","count":2,"maxIterations":5},
		 "body":[{"id":"work","title":"Work","prompt":"Work."}]}]`)
	a := startRun(t, b.Service, "shipping", nil)
	next := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "written"})
	next = mustContinue(t, b.Service, run.ContinueRequest{Handle: next.Handle, Skip: &engine.Skip{Reason: "a draft"}})
	if next.Position.ID != "review" {
		t.Fatalf("at %+v", next.Position)
	}
	if _, err := b.Mark(t.Context(), agentCaller(), run.MarkRequest{Ref: run.Ref{Handle: next.Handle}, Keys: []string{"k"}}); err != nil {
		t.Fatal(err)
	}
	requireSubmission(t, b, a.RunID, "write", "written")
	next = mustContinue(t, b.Service, run.ContinueRequest{Handle: next.Handle, Answer: &engine.Answer{OptionID: "good"}})
	next = mustContinue(t, b.Service, run.ContinueRequest{Handle: next.Handle, Context: map[string]any{"tests": 12.0}})
	seal, err := b.Get(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil || seal.Position.ID != "seal" || seal.Submission != nil {
		t.Errorf("at %s the output is %+v, %v", next.Position.ID, seal.Submission, err)
	}

	a = startRun(t, b.Service, "looping", nil)
	next = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "planned"})
	loop, err := b.Get(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil || !next.Position.Person || loop.Submission != nil {
		t.Errorf("the gate of a loop has the output %+v, %v", loop.Submission, err)
	}
}
