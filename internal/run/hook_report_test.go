package run_test

import (
	"encoding/json"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// hookEvents returns the reports of hooks that a run has, by kind.
func hookEvents(t *testing.T, s *run.Service, id string) map[string][]run.HookReport {
	t.Helper()
	d, err := s.GetWithEvents(t.Context(), agentCaller(), run.Ref{RunID: id})
	if err != nil {
		t.Fatal(err)
	}
	reports := map[string][]run.HookReport{}
	for _, e := range d.Events {
		var r run.HookReport
		if e.Kind == run.KindHooked || e.Kind == run.KindStopped {
			if err := json.Unmarshal(e.Data, &r); err != nil {
				t.Fatal(err)
			}
			reports[e.Kind] = append(reports[e.Kind], r)
		}
	}
	return reports
}

// TestHookReportsAreRecorded checks that the first report of a hook and a bounded number of
// stops at each position are events, that they change neither position nor handle, and that
// every process sees them.
func TestHookReportsAreRecorded(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	ref := run.Ref{RunID: a.RunID}
	for range 2 {
		if err := b.RecordHooked(t.Context(), agentCaller(), ref, "claude-code"); err != nil {
			t.Fatal(err)
		}
	}
	for range 25 {
		if err := b.newService(t).RecordStop(t.Context(), agentCaller(), ref, "claude-code", 3); err != nil {
			t.Fatal(err)
		}
	}
	got := hookEvents(t, b.newService(t), a.RunID)
	if len(got[run.KindHooked]) != 1 || len(got[run.KindStopped]) != 20 || got[run.KindStopped][0] != (run.HookReport{Client: "claude-code", Step: a.Position.ID, Refusals: 3}) {
		t.Errorf("the run has %+v", got)
	}
	d, err := b.newService(t).Get(t.Context(), agentCaller(), ref)
	if err != nil || !d.Hooked || d.Current != a.Handle {
		t.Fatalf("the run is %+v, %v; it must be hooked and keep the handle %s", d, err, a.Handle)
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "the plan"})
	if err := b.RecordStop(t.Context(), agentCaller(), ref, "codex", 3); err != nil {
		t.Fatal(err)
	}
	if got := hookEvents(t, b.Service, a.RunID); len(got[run.KindStopped]) != 21 {
		t.Errorf("%d stops are recorded, want one more at the next position", len(got[run.KindStopped]))
	}
}

// TestHookReportsNeedTheOwner checks that a hook of another user finds no run, and that an
// ended run gets no reports.
func TestHookReportsNeedTheOwner(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "person", nil)
	other := agentCaller()
	other.User = "somebody-else"
	if err := b.RecordHooked(t.Context(), other, run.Ref{RunID: a.RunID}, "codex"); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("another user gets %v, want not_found", err)
	}
	if _, err := b.Abort(t.Context(), agentCaller(), run.AbortRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
		t.Fatal(err)
	}
	if err := b.RecordStop(t.Context(), agentCaller(), run.Ref{RunID: a.RunID}, "codex", 3); err != nil {
		t.Fatal(err)
	}
	if got := hookEvents(t, b.Service, a.RunID); len(got) != 0 {
		t.Errorf("the ended run has %+v", got)
	}
}
