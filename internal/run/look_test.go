package run_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// Look tells what Get does but for the events, Events tells those, and neither
// tells anything to somebody else.
func TestLook(t *testing.T) {
	t.Parallel()
	b, ctx := newBench(t), t.Context()
	a := start(t, b.Service, "guarded", map[string]any{"size": "small"})
	ref := run.Ref{RunID: a.RunID}
	all, err := b.Get(ctx, agent(), ref)
	if err != nil {
		t.Fatal(err)
	}
	look, err := b.Look(ctx, agent(), run.Ref{Handle: a.Handle})
	if err != nil {
		t.Fatal(err)
	}
	if len(look.Events) != 0 || len(all.Events) < 2 {
		t.Errorf("Look tells %d events, Get %d", len(look.Events), len(all.Events))
	}
	if diff := cmp.Diff(all, look, cmpopts.IgnoreFields(run.Details{}, "Events")); diff != "" {
		t.Errorf("Look (-Get +Look):\n%s", diff)
	}
	last, err := b.Events(ctx, agent(), ref, look.Seq-1, 10)
	if diff := cmp.Diff(all.Events[len(all.Events)-1:], last); err != nil || diff != "" {
		t.Errorf("the last event: %v (-want +got):\n%s", err, diff)
	}
	bob := run.Caller{Principal: guideway.Principal{User: "bob"}}
	if _, err := b.Look(ctx, bob, ref); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("somebody else looks: %v", err)
	}
	if _, err := b.Events(ctx, bob, ref, 0, 10); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("somebody else reads events: %v", err)
	}
}
