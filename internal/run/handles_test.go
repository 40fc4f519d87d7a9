package run_test

import (
	"testing"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// A process does not look up the handle that it gave last. What another process has
// done meanwhile, or an older copy of the journal, is seen all the same.
func TestGivenHandles(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.service(t)
	goOn := func(s *run.Service, a *run.Answer, output string) (*run.Answer, error) {
		return s.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: output})
	}
	rule := func(err error) string {
		r, ok := run.IsRefusal(err)
		if !ok {
			t.Helper()
			t.Fatalf("no refusal: %v", err)
		}
		return r.Rule
	}
	begun := start(t, b.Service, "guarded", map[string]any{"size": "small"})
	saved, handle := b.journal.records[begun.RunID], begun.Handle
	a, err := goOn(b.Service, begun, "PLAN")
	if err != nil || b.journal.lookups != 0 {
		t.Fatalf("%d handles were looked up, %v", b.journal.lookups, err)
	}
	if again, err := goOn(b.Service, begun, "PLAN"); err != nil || !again.Replayed || again.Handle != a.Handle {
		t.Errorf("the same again: %+v, %v", again, err)
	}
	if _, err := goOn(b.Service, begun, "another PLAN"); rule(err) != run.RuleStaleHandle {
		t.Errorf("an outdated handle: %v", err)
	}
	bob := agent()
	bob.User = "bob"
	if _, err := b.Continue(t.Context(), bob, run.ContinueRequest{Handle: a.Handle, Output: "x"}); rule(err) != run.RuleUnknownHandle {
		t.Errorf("another's handle: %v", err)
	}

	// Another process goes on: the first one's handle is outdated, and it says so.
	moved, err := other.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "agreed"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := goOn(b.Service, a, "something else"); rule(err) != run.RuleStaleHandle {
		t.Errorf("a handle that another process has outdated: %v", err)
	}
	yes := &engine.Answer{OptionID: moved.Position.Options[0].ID}
	last, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: moved.Handle, Answer: yes})
	if err != nil {
		t.Fatalf("the other process's handle: %v", err)
	}

	// The journal is put back to where the run began: what this process gave since is
	// known no more.
	b.journal.records[begun.RunID] = saved
	b.journal.events[begun.RunID] = b.journal.events[begun.RunID][:saved.Seq]
	for token := range b.journal.handles {
		if token != handle {
			delete(b.journal.handles, token)
		}
	}
	status, err := b.Status(t.Context(), agent(), run.Ref{RunID: begun.RunID})
	if err != nil || status.Handle != handle {
		t.Fatalf("%+v, %v", status, err)
	}
	if _, err := goOn(b.Service, last, "done"); rule(err) != run.RuleUnknownHandle {
		t.Errorf("a handle that is gone: %v", err)
	}
}
