package run_test

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestRefusalNamesThePersonsWay checks the fix of a refusal at a gate: at a human approval
// it explains how the person answers, and at another gate it instructs the agent to ask the
// user.
func TestRefusalNamesThePersonsWay(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	human := startRun(t, b.Service, "person", nil)
	human = mustContinue(t, b.Service, run.ContinueRequest{Handle: human.Handle, Output: "the plan"})
	_, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: human.Handle, Answer: confirmAnswer()})
	if r := requireAnyRefusal(t, err); !strings.Contains(r.Fix, "guideway runs approve "+human.RunID) || r.Next != nil {
		t.Errorf("at a human approval: fix %q, next %+v", r.Fix, r.Next)
	}
	user := startRun(t, b.Service, "guarded", nil)
	user = mustContinue(t, b.Service, run.ContinueRequest{Handle: user.Handle, Output: "PLAN"})
	user = mustContinue(t, b.Service, run.ContinueRequest{Handle: user.Handle, Output: "approve it"})
	_, err = b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: user.Handle, Output: "more"})
	if r := requireAnyRefusal(t, err); r.Fix != run.AskUser || r.Next == nil {
		t.Errorf("at another gate: fix %q, next %+v", r.Fix, r.Next)
	}
}

// TestLongTextsAreRefused checks that each text of a command has a limit, and that a
// refused command leaves the run at its position.
func TestLongTextsAreRefused(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	huge := strings.Repeat("x", 3<<20)
	for name, req := range map[string]run.ContinueRequest{
		"output":      {Output: huge},
		"notes":       {Output: "PLAN", Notes: huge},
		"answer.note": {Answer: &engine.Answer{OptionID: engine.OptionConfirm, Note: huge}},
		"skip.reason": {Skip: &engine.Skip{Reason: huge}},
	} {
		req.Handle = a.Handle
		_, err := b.Continue(t.Context(), agentCaller(), req)
		if guideway.ErrorCode(err) != guideway.CodeTooLarge || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %.200v", name, err)
		}
	}
	if _, err := b.Answer(t.Context(), agentCaller(), run.AnswerRequest{Ref: run.Ref{RunID: a.RunID}, Answer: engine.Answer{Note: huge}}); guideway.ErrorCode(err) != guideway.CodeTooLarge {
		t.Errorf("the note of an answer: %.200v", err)
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
}

// TestImportKeepsTimes checks that the events of a bundle keep their times, and that a time
// that is missing or in the future is replaced by the time of the import.
func TestImportKeepsTimes(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	id := runToLastStep(t, b.Service)[0].RunID
	bundle, err := b.Export(t.Context(), agentCaller(), run.Ref{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	var decoded map[string]any
	if err := json.Unmarshal(bundle, &decoded); err != nil {
		t.Fatal(err)
	}
	events, _ := decoded["events"].([]any)
	early, late := events[2].(map[string]any), events[4].(map[string]any)
	if early["at"] == nil || late["at"] == nil {
		t.Fatalf("the events have no time: %v", events[2])
	}
	early["at"], late["at"] = "0001-01-01T00:00:00Z", "2999-01-01T00:00:00Z"
	text, err := json.Marshal(decoded)
	if err != nil {
		t.Fatal(err)
	}
	original := map[string]int{}
	for _, e := range b.journal.events[id] {
		original[e.At.String()]++
	}
	elsewhere := newTestBench(t)
	begin := elsewhere.now.Add(30 * 24 * time.Hour)
	elsewhere.now = begin
	a, err := elsewhere.Import(t.Context(), agentCaller(), text)
	if err != nil {
		t.Fatal(err)
	}
	kept, set := 0, 0
	for _, e := range elsewhere.journal.events[a.RunID] {
		switch {
		case original[e.At.String()] > 0:
			kept++
		case !e.At.Before(begin) && e.At.Before(begin.Add(time.Hour)):
			set++
		default:
			t.Errorf("event %d is at %s", e.Seq, e.At)
		}
	}
	if kept < len(events)-4 || set < 2 {
		t.Errorf("%d times of %d events are kept, %d are set", kept, len(events), set)
	}
}

// TestForkIsRepeatableByItsRequestID checks that two fork requests with the same request id
// create one run, and that a different request id creates another run.
func TestForkIsRepeatableByItsRequestID(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	fork := func(s *run.Service, request string) *run.Answer {
		f, err := s.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}, RequestID: request})
		if err != nil {
			t.Fatalf("fork %q: %v", request, err)
		}
		return f
	}
	first, again, other := fork(b.Service, "one"), fork(b.newService(t), "one"), fork(b.Service, "two")
	if again.RunID != first.RunID || !again.Replayed || other.RunID == first.RunID || first.RunID == a.RunID {
		t.Errorf("the forks are %s, %s and %s", first.RunID, again.RunID, other.RunID)
	}
	ids := make([]string, 8)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			f, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}, RequestID: "at once"})
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = f.RunID
		})
	}
	wg.Wait()
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("concurrent forks with one request id are %v", ids)
	}
	if unnamed := fork(b.Service, ""); fork(b.Service, "").RunID == unnamed.RunID {
		t.Error("two forks without a request id are one run")
	}
}

// TestResumeListsADamagedRun checks that a run that cannot be loaded is listed with its
// error and suggests no call, and that the other runs are listed as usual.
func TestResumeListsADamagedRun(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	good, bad := startRun(t, b.Service, "guarded", nil), startRun(t, b.Service, "guarded", nil)
	b.journal.events[bad.RunID][1].Data = []byte(`{}`)
	delete(b.journal.snaps, bad.RunID)
	found, err := b.newService(t).Resume(t.Context(), agentCaller(), run.ResumeRequest{})
	if err != nil || len(found) != 2 {
		t.Fatalf("%d runs are listed, %v", len(found), err)
	}
	for _, c := range found {
		switch c.RunID {
		case good.RunID:
			if c.Status != engine.StatusRunning || c.Position.ID != "plan" || c.Next == nil {
				t.Errorf("the run that is not damaged: %+v", c)
			}
		case bad.RunID:
			if c.Status != run.StatusError || c.Why == "" || c.Position.Kind != engine.PositionEnd || c.Position.Message != c.Why || c.Next != nil {
				t.Errorf("the damaged run: %+v", c)
			}
		}
	}
}
