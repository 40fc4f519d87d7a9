package run_test

import (
	"strings"
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

// TestPersonsAbortFollowsAnAgents checks that a person can abort a run that an agent has
// aborted: after it, an agent cannot fork the run. Repeated aborts record nothing.
func TestPersonsAbortFollowsAnAgents(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	abort := func(c run.Caller, reason string) *run.Answer {
		t.Helper()
		out, err := b.Abort(t.Context(), c, run.AbortRequest{Ref: run.Ref{RunID: a.RunID}, Reason: reason})
		if err != nil || out.Status != engine.StatusAborted {
			t.Fatalf("abort: %+v, %v", out, err)
		}
		return out
	}
	abort(agentCaller(), "enough")
	if out := abort(agentCaller(), "again"); !out.Replayed {
		t.Error("the second abort of the agent is not a repetition")
	}
	if _, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
		t.Fatalf("fork after the agent's own abort: %v", err)
	}
	if out := abort(personCaller(run.ViaBrowser), "not like this"); out.Replayed {
		t.Error("the abort of the person is treated as a repetition")
	}
	last := len(b.journal.events[a.RunID])
	if e := b.journal.events[a.RunID][last-1]; e.Kind != run.KindAbortConfirmed || !e.By.Via.Person() || !strings.Contains(string(e.Data), "not like this") {
		t.Errorf("the last event is %+v with %s", e, e.Data)
	}
	if out := abort(personCaller(run.ViaTerminal), "again"); !out.Replayed || len(b.journal.events[a.RunID]) != last {
		t.Errorf("another abort of a person records %+v", b.journal.events[a.RunID][last:])
	}
	for _, r := range []run.ForkRequest{{Ref: run.Ref{RunID: a.RunID}}, {Ref: run.Ref{RunID: a.RunID}, Seq: 2}, {Ref: run.Ref{Handle: a.Handle}}} {
		_, err := b.Fork(t.Context(), agentCaller(), r)
		checkRule(t, err, run.RuleAbortedByPerson)
	}
	if fork, err := b.Fork(t.Context(), personCaller(run.ViaTerminal), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil || fork.Position.Kind != engine.PositionStep {
		t.Errorf("a person's fork: %+v, %v", fork, err)
	}
	if report, err := b.Verify(t.Context(), ""); err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %+v, %v", report, err)
	}
	exportRun(t, b.newService(t), a.RunID)
}
