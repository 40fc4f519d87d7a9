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

// A mark is a fact of the run's chain that changes nothing of what the run asks
// for: position, handle and variables stay, also for another process, and a fork
// takes it over.
func TestMarksMoveNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", map[string]any{"size": "small"})
	before, err := b.Look(t.Context(), agent(), run.Ref{Handle: a.Handle})
	if err != nil {
		t.Fatal(err)
	}
	mark := run.MarkRequest{Ref: run.Ref{Handle: a.Handle}, Keys: []string{"contract", "size"}, Tags: []string{"api"}}
	for range 2 { // the second time there is nothing to record
		if _, err := b.Mark(t.Context(), agent(), mark); err != nil {
			t.Fatal(err)
		}
	}
	want := []run.Mark{{Key: "contract", Tags: []string{"api"}}, {Key: "size", Tags: []string{"api"}}}
	for name, s := range map[string]*run.Service{"this process": b.Service, "another": b.service(t)} {
		now, err := s.Look(t.Context(), agent(), run.Ref{Handle: a.Handle})
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
	forked, err := b.Fork(t.Context(), agent(), run.ForkRequest{Ref: run.Ref{Handle: a.Handle}})
	if err != nil {
		t.Fatal(err)
	}
	if d, err := b.Look(t.Context(), agent(), run.Ref{Handle: forked.Handle}); err != nil || cmp.Diff(want, d.Marks) != "" {
		t.Errorf("the fork has the marks %v, %v", d, err)
	}
	// Many commands later, behind snapshots, they are still there.
	h := legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN " + strings.Repeat("x", 9000)}).Handle
	h = legal(t, b.Service, run.ContinueRequest{Handle: h, Output: "ok"}).Handle
	legal(t, b.Service, run.ContinueRequest{Handle: h, Answer: confirm()})
	if d, err := b.service(t).Look(t.Context(), agent(), run.Ref{RunID: a.RunID}); err != nil || cmp.Diff(want, d.Marks) != "" {
		t.Errorf("behind a snapshot the run has the marks %v, %v", d, err)
	}
}

// Marks are bounded, and nobody marks another's run.
func TestMarksAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
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
		if _, err := b.Mark(t.Context(), agent(), r); refusalBy(t, err, run.RuleMarks).Next == nil {
			t.Errorf("%s: no call that works", name)
		}
	}
	if _, err := b.Mark(t.Context(), agent(), run.MarkRequest{Ref: ref, Keys: many[:500]}); err != nil {
		t.Fatal(err)
	}
	_, err := b.Mark(t.Context(), agent(), run.MarkRequest{Ref: ref, Keys: []string{"one more"}})
	wantRule(t, err, run.RuleMarks)
	stranger := run.Caller{Principal: guideway.Principal{User: "eve"}}
	_, err = b.Mark(t.Context(), stranger, run.MarkRequest{Ref: ref, Keys: []string{"k"}})
	wantRule(t, err, run.RuleUnknownHandle)
}

// Admit judges variables as Continue does, and sets none.
func TestAdmitSetsNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	ref := run.Ref{Handle: a.Handle}
	if err := b.Admit(t.Context(), agent(), ref, map[string]any{"size": "large"}); err != nil {
		t.Error(err)
	}
	err := b.Admit(t.Context(), agent(), ref, map[string]any{"currentIteration": 3})
	wantRule(t, err, engine.RuleServerVariable)
	if d, err := b.Look(t.Context(), agent(), ref); err != nil || len(d.Variables) > 0 || d.Current != a.Handle {
		t.Errorf("the run is now %+v, %v", d, err)
	}
}

// observer remembers what it is told.
type observer struct {
	mu   sync.Mutex
	seen []run.Committed
	// viewed are the runs that came into view.
	viewed []string
}

func (o *observer) Seen(_ context.Context, r run.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.viewed = append(o.viewed, r.ID)
}

func (o *observer) Committed(_ context.Context, c run.Committed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.seen = append(o.seen, c)
}

// An observer is told of every command with its facts, and of what a fork takes
// over as nothing new.
func TestTheObserverIsTold(t *testing.T) {
	t.Parallel()
	o := &observer{}
	b := newBench(t, func(opts *run.Options) { opts.Observer = o })
	a := start(t, b.Service, "guarded", nil)
	if _, err := b.Continue(t.Context(), agent(), run.ContinueRequest{Handle: a.Handle, Output: "no"}); err == nil {
		t.Fatal("no refusal")
	}
	legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	if _, err := b.Fork(t.Context(), agent(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}}); err != nil {
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
			t.Errorf("told of %+v", c)
		}
	}
	if want := []string{"run_started", "", "step_completed", ""}; !slices.Equal(kinds, want) {
		t.Errorf("told of %q, want %q", kinds, want)
	}
}

// A run comes into view where a process lists it or makes its state of the journal,
// and not with each command.
func TestTheObserverSeesARunOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", nil)
	o := &observer{}
	other := b.service(t, func(opts *run.Options) { opts.Observer = o })
	for range 3 {
		if _, err := other.Status(t.Context(), agent(), run.Ref{RunID: a.RunID}); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(o.viewed, []string{a.RunID}) {
		t.Errorf("looked at three times, seen %q", o.viewed)
	}
	if _, err := other.List(t.Context(), agent(), run.Filter{}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(o.viewed, []string{a.RunID, a.RunID}) {
		t.Errorf("listed, seen %q", o.viewed)
	}
}

// What a run was behind one of its events is what it was then, whatever came since.
func TestBehind(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	a := start(t, b.Service, "guarded", map[string]any{"n": 1})
	var want []run.Details
	for range 3 {
		d, err := b.Look(t.Context(), agent(), run.Ref{RunID: a.RunID})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, *d)
		if a.Position.Kind != engine.PositionStep {
			break
		}
		a = legal(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN", Context: map[string]any{"n": len(want) + 1}})
	}
	for _, was := range want {
		c, err := b.Behind(t.Context(), agent(), run.Ref{RunID: was.ID}, was.Seq)
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
		if _, err := b.Behind(t.Context(), agent(), run.Ref{RunID: a.RunID}, seq); guideway.ErrorCode(err) != guideway.CodeInvalid {
			t.Errorf("behind %d: %v", seq, err)
		}
	}
	if _, err := b.Behind(t.Context(), run.Caller{Principal: guideway.Principal{User: "eve"}}, run.Ref{RunID: a.RunID}, 1); guideway.ErrorCode(err) != guideway.CodeNotFound {
		t.Errorf("somebody else's: %v", err)
	}
}
