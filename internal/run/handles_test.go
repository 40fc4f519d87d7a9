package run_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestIssuedHandles checks that a process does not look up the handle that it issued last,
// and that the process still detects commands of other processes and a journal that was
// rolled back.
func TestIssuedHandles(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	other := b.newService(t)
	goOn := func(s *run.Service, a *run.Answer, output string) (*run.Answer, error) {
		return s.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: output})
	}
	rule := func(err error) string {
		r, ok := run.AsRefusal(err)
		if !ok {
			t.Helper()
			t.Fatalf("the call was not refused: %v", err)
		}
		return r.Rule
	}
	begun := startRun(t, b.Service, "guarded", map[string]any{"size": "small"})
	saved, handle := b.journal.records[begun.RunID], begun.Handle
	a, err := goOn(b.Service, begun, "PLAN")
	if err != nil || b.journal.lookups != 0 {
		t.Fatalf("%d handles were looked up, %v", b.journal.lookups, err)
	}
	if again, err := goOn(b.Service, begun, "PLAN"); err != nil || !again.Replayed || again.Handle != a.Handle {
		t.Errorf("the repetition returned %+v, %v", again, err)
	}
	if _, err := goOn(b.Service, begun, "another PLAN"); rule(err) != run.RuleStaleHandle {
		t.Errorf("a stale handle returned %v", err)
	}
	bob := agentCaller()
	bob.User = "bob"
	if _, err := b.Continue(t.Context(), bob, run.ContinueRequest{Handle: a.Handle, Output: "x"}); rule(err) != run.RuleUnknownHandle {
		t.Errorf("another's handle: %v", err)
	}

	// After another process continues the run, the handle of this process is stale.
	moved, err := other.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "agreed"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := goOn(b.Service, a, "something else"); rule(err) != run.RuleStaleHandle {
		t.Errorf("a handle that another process made stale returned %v", err)
	}
	yes := &engine.Answer{OptionID: moved.Position.Options[0].ID}
	last, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: moved.Handle, Answer: yes})
	if err != nil {
		t.Fatalf("the other process's handle returned %v", err)
	}

	// After the journal is rolled back to the start of the run, later handles of this
	// process are unknown.
	b.journal.records[begun.RunID] = saved
	b.journal.events[begun.RunID] = b.journal.events[begun.RunID][:saved.Seq]
	for token := range b.journal.handles {
		if token != handle {
			delete(b.journal.handles, token)
		}
	}
	status, err := b.Status(t.Context(), agentCaller(), run.Ref{RunID: begun.RunID})
	if err != nil || status.Handle != handle {
		t.Fatalf("%+v, %v", status, err)
	}
	if _, err := goOn(b.Service, last, "done"); rule(err) != run.RuleUnknownHandle {
		t.Errorf("an unknown handle returned %v", err)
	}
}
