package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// listRefused returns the refused attempts of a run.
func listRefused(t *testing.T, s *run.Service, runID string) []run.Refused {
	t.Helper()
	d, err := s.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: runID})
	if err != nil {
		t.Fatal(err)
	}
	var list []run.Refused
	for _, e := range d.Events {
		var r run.Refused
		if e.Kind == run.KindRefused {
			if err := json.Unmarshal(e.Data, &r); err != nil {
				t.Fatal(err)
			}
			list = append(list, r)
		}
	}
	return list
}

// TestAFloodHidesNoRefusal checks that a position records at most 100 refusals by one rule,
// even of several processes, and still records a refusal by another rule. At the next
// position, the count starts at zero.
func TestAFloodHidesNoRefusal(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	gate := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
	for range 3 {
		s := b.newService(t)
		for range 100 {
			_, err := s.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: gate.Handle, Step: "build"})
			checkRule(t, err, engine.RuleWrongStep)
		}
	}
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: gate.Handle, Answer: &engine.Answer{OptionID: engine.OptionConfirm, Note: "the user said yes"}})
	checkRule(t, err, engine.RulePerson)
	count := map[string]int{}
	for _, r := range listRefused(t, b.Service, a.RunID) {
		count[r.Rule]++
	}
	if count[engine.RulePerson] != 1 || count[engine.RuleWrongStep] != 100 {
		t.Errorf("the run has %v", count)
	}
	open, err := b.Answer(t.Context(), personCaller(run.ViaTerminal), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: *confirmAnswer()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: open.Handle, Step: "plan", Output: "x"})
	checkRule(t, err, engine.RuleWrongStep)
	if n := len(listRefused(t, b.Service, a.RunID)); n != 102 {
		t.Errorf("%d refusals after another position, want 102", n)
	}
}

// Refused outputs are kept with their failed criteria, up to a number of attempts. Of a
// long output, the head and the tail are kept.
func TestRefusedOutputsAreKept(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	long := "head of it " + strings.Repeat("ä", 100_000) + " tail of it"
	for i := range 30 {
		r := run.ContinueRequest{Handle: a.Handle, Output: "Looks good to me.", Notes: "done"}
		if i == 1 {
			r.Output = long
		}
		_, err := b.Continue(t.Context(), agentCaller(), r)
		checkRule(t, err, engine.RuleCriteria)
	}
	list := listRefused(t, b.Service, a.RunID)
	if first := list[0]; first.Output != "Looks good to me." || first.Notes != "done" || len(first.Issues) != 1 {
		t.Errorf("the first attempt is %+v", first)
	}
	if got := list[1].Output; !strings.HasPrefix(got, "head of it") || !strings.HasSuffix(got, "tail of it") || len(got) > 17<<10 || !strings.Contains(got, "bytes are not kept") {
		t.Errorf("%d bytes of a long output are kept: %.100s", len(got), got)
	}
	kept := 0
	for _, r := range list {
		if r.Output != "" {
			kept++
		}
	}
	if len(list) != 30 || kept != 10 {
		t.Errorf("%d attempts with %d outputs", len(list), kept)
	}
	bundle, err := b.Export(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil || !strings.Contains(string(bundle), "Looks good to me.") {
		t.Errorf("the bundle has no refused output: %v", err)
	}
}

// TestRecordDecline checks that a form that was closed without an answer is recorded as an
// event that does not change the position. The kind of the event depends on whether a
// person saw the form. A position records at most 20 of these events; none is recorded for
// an earlier position or another user.
func TestRecordDecline(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	gate := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
	decline := func(c run.Caller, handle string, byClient bool) error {
		return b.RecordDecline(t.Context(), c, run.DeclineRequest{Handle: handle, Declined: run.Declined{Action: "decline", AfterMS: 5}, ByClient: byClient})
	}
	other := run.Caller{Principal: guideway.Principal{User: "eve"}}
	checkRule(t, decline(other, gate.Handle, true), run.RuleUnknownHandle)
	if err := decline(agentCaller(), a.Handle, true); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		if err := decline(personCaller(run.ViaElicitation), gate.Handle, i == 0); err != nil {
			t.Fatal(err)
		}
	}
	d, err := b.newService(t).GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
	if err != nil || d.Current != gate.Handle {
		t.Fatalf("the run has changed: %v", err)
	}
	count := map[string]int{}
	for _, e := range d.Events {
		count[e.Kind]++
	}
	if count[run.KindUnanswered] != 1 || count[run.KindDeclined] != 19 || d.Declined == nil || d.Declined.Count != 20 || d.Declined.ByClient {
		t.Errorf("the run has %v and %+v", count, d.Declined)
	}
}
