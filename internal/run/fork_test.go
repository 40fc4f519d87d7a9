package run_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestAgentForksInheritNoApproval checks that a fork by an agent stops before a human
// approval that the original run has passed, whatever event it names, also after an agent
// aborted the run. A person's fork keeps the approval.
func TestAgentForksInheritNoApproval(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	gate := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
	passed, err := b.Answer(t.Context(), personCaller(run.ViaBrowser), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirmAnswer()})
	if err != nil {
		t.Fatal(err)
	}
	d, err := b.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil {
		t.Fatal(err)
	}
	refs := []run.ForkRequest{{Ref: run.Ref{RunID: a.RunID}}, {Ref: run.Ref{Handle: passed.Handle}}, {Ref: run.Ref{Handle: gate.Handle}}}
	for _, e := range d.Events[2:] {
		refs = append(refs, run.ForkRequest{Ref: run.Ref{RunID: a.RunID}, Seq: e.Seq})
	}
	check := func(when string) {
		t.Helper()
		for _, r := range refs {
			fork, err := b.Fork(t.Context(), agentCaller(), r)
			if err != nil {
				t.Fatalf("%s, %+v: %v", when, r, err)
			}
			if !fork.Position.Person && fork.Position.ID != gate.Position.ID {
				t.Errorf("%s, %+v: an agent's fork is at %s %q", when, r, fork.Position.Kind, fork.Position.ID)
			}
		}
	}
	check("running")
	if own, err := b.Fork(t.Context(), personCaller(run.ViaBrowser), refs[0]); err != nil || own.Position.ID != passed.Position.ID {
		t.Errorf("a person's fork: %+v, %v", own, err)
	}
	if _, err := b.Abort(t.Context(), agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
		t.Fatal(err)
	}
	check("aborted by an agent")
}

// TestAgentCannotForkAfterAPersonsAbort checks that only a person can fork a run that a
// person aborted.
func TestAgentCannotForkAfterAPersonsAbort(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	if _, err := b.Abort(t.Context(), personCaller(run.ViaTerminal), run.AbortRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
		t.Fatal(err)
	}
	for _, r := range []run.ForkRequest{{Ref: run.Ref{RunID: a.RunID}}, {Ref: run.Ref{RunID: a.RunID}, Seq: 2}, {Ref: run.Ref{Handle: a.Handle}}} {
		_, err := b.Fork(t.Context(), agentCaller(), r)
		checkRule(t, err, run.RuleAbortedByPerson)
	}
	fork, err := b.Fork(t.Context(), personCaller(run.ViaTerminal), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}})
	if err != nil || fork.Position.Kind != engine.PositionStep {
		t.Errorf("a person's fork: %+v, %v", fork, err)
	}
}
