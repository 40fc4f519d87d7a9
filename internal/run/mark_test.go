package run_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestMarksMoveNothing checks that a mark is an event in the chain that does not change
// position, handle or variables, also in another process, and that a fork copies it.
func TestMarksMoveNothing(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", map[string]any{"size": "small"})
	before, err := b.Get(t.Context(), agentCaller(), run.Ref{Handle: a.Handle})
	if err != nil {
		t.Fatal(err)
	}
	mark := run.MarkRequest{Ref: run.Ref{Handle: a.Handle}, Keys: []string{"contract", "size"}, Tags: []string{"api"}}
	for range 2 { // the second call records no event
		if _, err := b.Mark(t.Context(), agentCaller(), mark); err != nil {
			t.Fatal(err)
		}
	}
	want := []run.Mark{{Key: "contract", Tags: []string{"api"}}, {Key: "size", Tags: []string{"api"}}}
	for name, s := range map[string]*run.Service{"this process": b.Service, "another": b.newService(t)} {
		now, err := s.Get(t.Context(), agentCaller(), run.Ref{Handle: a.Handle})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, now.Marks); d != "" {
			t.Errorf("%s: marks (-want +got):\n%s", name, d)
		}
		if d := cmp.Diff([]any{before.Position, before.Current, before.Variables}, []any{now.Position, now.Current, now.Variables}); d != "" {
			t.Errorf("%s: a mark changed the run (-before +after):\n%s", name, d)
		}
		if now.Seq != before.Seq+1 {
			t.Errorf("%s: %d events, want one more than %d", name, now.Seq, before.Seq)
		}
	}
	if report, err := b.Verify(t.Context(), a.RunID); err != nil || len(report.Faults) > 0 {
		t.Errorf("verify: %v, %v", report, err)
	}
	forked, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{Handle: a.Handle}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := b.Get(t.Context(), agentCaller(), run.Ref{Handle: forked.Handle}); err != nil || cmp.Diff(want, d.Marks) != "" {
		t.Errorf("the fork has the marks %v, %v", d, err)
	}
	// The marks remain after further commands and a snapshot.
	h := mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN " + strings.Repeat("x", 9000)}).Handle
	h = mustContinue(t, b.Service, run.ContinueRequest{Handle: h, Output: "ok"}).Handle
	mustContinue(t, b.Service, run.ContinueRequest{Handle: h, Answer: confirmAnswer()})
	if d, err := b.newService(t).Get(t.Context(), agentCaller(), run.Ref{RunID: a.RunID}); err != nil || cmp.Diff(want, d.Marks) != "" {
		t.Errorf("after a snapshot the run has the marks %v, %v", d, err)
	}
}

// TestMarksAreRefused checks the limits of marks and that a user cannot mark another user's
// run.
func TestMarksAreRefused(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	ref := run.Ref{Handle: a.Handle}
	many := make([]string, 501)
	for i := range many {
		many[i] = fmt.Sprintf("k%d", i)
	}
	for name, r := range map[string]run.MarkRequest{
		"no key": {Ref: ref}, "an empty key": {Ref: ref, Keys: []string{""}},
		"a long key": {Ref: ref, Keys: []string{strings.Repeat("k", 201)}}, "many keys": {Ref: ref, Keys: many},
		"many tags": {Ref: ref, Keys: []string{"k"}, Tags: many[:21]}, "a long tag": {Ref: ref, Keys: []string{"k"}, Tags: []string{strings.Repeat("t", 65)}},
	} {
		if _, err := b.Mark(t.Context(), agentCaller(), r); requireRefusal(t, err, run.RuleMarks).Next == nil {
			t.Errorf("%s: the refusal has no legal call", name)
		}
	}
	if _, err := b.Mark(t.Context(), agentCaller(), run.MarkRequest{Ref: ref, Keys: many[:500]}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Mark(t.Context(), agentCaller(), run.MarkRequest{Ref: ref, Keys: []string{"one more"}})
	checkRule(t, err, run.RuleMarks)
	stranger := run.Caller{Principal: guideway.Principal{User: "eve"}}
	_, err = b.Mark(t.Context(), stranger, run.MarkRequest{Ref: ref, Keys: []string{"k"}})
	checkRule(t, err, run.RuleUnknownHandle)
}

// TestAdmitSetsNothing checks that Admit accepts a variable, refuses one that only the
// server sets, and changes neither the variables nor the handle.
func TestAdmitSetsNothing(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	ref := run.Ref{Handle: a.Handle}
	if err := b.Admit(t.Context(), agentCaller(), ref, map[string]any{"size": "large"}); err != nil {
		t.Error(err)
	}
	err := b.Admit(t.Context(), agentCaller(), ref, map[string]any{"currentIteration": 3})
	checkRule(t, err, engine.RuleServerVariable)
	if d, err := b.Get(t.Context(), agentCaller(), ref); err != nil || len(d.Variables) > 0 || d.Current != a.Handle {
		t.Errorf("the run is now %+v, %v", d, err)
	}
}

// testObserver records its calls.
type testObserver struct {
	mu   sync.Mutex
	seen []run.Committed
	// viewed lists the runs that were passed to Seen.
	viewed []string
}

func (o *testObserver) Seen(_ context.Context, r run.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.viewed = append(o.viewed, r.ID)
}

func (o *testObserver) Committed(_ context.Context, c run.Committed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, c)
}

// TestObserverGetsCommands checks that an observer gets every command with its facts, and
// that the copied events of a fork are not new facts.
func TestObserverGetsCommands(t *testing.T) {
	t.Parallel()
	o := &testObserver{}
	b := newTestBench(t, func(opts *run.Options) { opts.Observer = o })
	a := startRun(t, b.Service, "guarded", nil)
	if _, err := b.Continue(t.Context(), agentCaller(), run.ContinueRequest{Handle: a.Handle, Output: "no"}); err == nil {
		t.Fatal("no refusal")
	}
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	if _, err := b.Fork(t.Context(), agentCaller(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
		t.Fatal(err)
	}
	var kinds []string
	for _, c := range o.seen {
		line := ""
		for _, f := range c.Facts {
			line += string(f.Kind) + " "
		}
		kinds = append(kinds, strings.TrimSpace(line))
		if c.Flow == nil || c.Record.Seq == 0 || c.By.User != "ada" {
			t.Errorf("the observer got %+v", c)
		}
	}
	if want := []string{"run_started", "", "step_completed", ""}; !slices.Equal(kinds, want) {
		t.Errorf("the observer got %q, want %q", kinds, want)
	}
}

// TestObserverSeesRunOnce checks that Seen is called when a process lists a run or loads it
// from the journal, and not with each command.
func TestObserverSeesRunOnce(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	o := &testObserver{}
	other := b.newService(t, func(opts *run.Options) { opts.Observer = o })
	for range 3 {
		if _, err := other.Status(t.Context(), agentCaller(), run.Ref{RunID: a.RunID}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(o.viewed, []string{a.RunID}) {
		t.Errorf("after three calls Seen got %q", o.viewed)
	}
	if _, err := other.List(t.Context(), agentCaller(), run.Filter{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.viewed, []string{a.RunID, a.RunID}) {
		t.Errorf("listed, seen %q", o.viewed)
	}
}

// TestStateAt checks that the state after an event does not depend on later events.
func TestStateAt(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", map[string]any{"n": 1})
	var want []run.Details
	for range 3 {
		d, err := b.Get(t.Context(), agentCaller(), run.Ref{RunID: a.RunID})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, *d)
		if a.Position.Kind != engine.PositionStep {
			break
		}
		a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"n": len(want) + 1}})
	}
	for _, was := range want {
		c, err := b.StateAt(t.Context(), agentCaller(), run.Ref{RunID: was.ID}, was.Seq)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(was.Position, c.Flow.PositionOf(c.State)); d != "" {
			t.Errorf("behind %d (-then +now):\n%s", was.Seq, d)
		}
		if d := cmp.Diff(was.Variables, c.State.Vars); d != "" || c.Record.Seq != was.Seq || c.Record.Status != was.Status {
			t.Errorf("behind %d (-then +now): %s, %+v", was.Seq, d, c.Record)
		}
	}
	for _, seq := range []int64{0, -1, 1000} {
		if _, err := b.StateAt(t.Context(), agentCaller(), run.Ref{RunID: a.RunID}, seq); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("behind %d: %v", seq, err)
		}
	}
	if _, err := b.StateAt(t.Context(), run.Caller{Principal: guideway.Principal{User: "eve"}}, run.Ref{RunID: a.RunID}, 1); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("StateAt of another user's run returned %v", err)
	}
}
