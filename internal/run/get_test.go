package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestGet checks that Get returns the same as GetWithEvents except for the events, and that
// Events returns the last event. Get and Events return an error to another user.
func TestGet(t *testing.T) {
	t.Parallel()
	b, ctx := newTestBench(t), t.Context()
	a := startRun(t, b.Service, "guarded", map[string]any{"size": "small"})
	ref := run.Ref{RunID: a.RunID}
	all, err := b.GetWithEvents(ctx, agentCaller(), ref)
	if err != nil {
		t.Fatal(err)
	}
	look, err := b.Get(ctx, agentCaller(), run.Ref{Handle: a.Handle})
	if err != nil {
		t.Fatal(err)
	}
	if len(look.Events) != 0 || len(all.Events) < 2 {
		t.Errorf("Get returned %d events, GetWithEvents %d", len(look.Events), len(all.Events))
	}
	if diff := cmp.Diff(all, look, cmpopts.IgnoreFields(run.Details{}, "Events")); diff != "" {
		t.Errorf("Get (-GetWithEvents +Get):\n%s", diff)
	}
	last, err := b.Events(ctx, agentCaller(), ref, look.Seq-1, 10)
	if diff := cmp.Diff(all.Events[len(all.Events)-1:], last); err != nil || diff != "" {
		t.Errorf("Events returned %v (-want +got):\n%s", err, diff)
	}
	bob := run.Caller{Principal: guideway.Principal{User: "bob"}}
	if _, err := b.Get(ctx, bob, ref); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("Get by another user returned %v", err)
	}
	if _, err := b.Events(ctx, bob, ref, 0, 10); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("Events by another user returned %v", err)
	}
}
