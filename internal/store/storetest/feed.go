package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// patience ends a test that hangs; nothing is measured by it.
const patience = 60 * time.Second

// feedTests are about telling of changes.
func feedTests() []subtest {
	return []subtest{
		{"every change is told once, with what it is about", feedTells},
		{"the feed comes in pages, in order", feedPages},
		{"a watcher of another process is woken", watchWakes},
		{"a watch ends with its context", watchEnds},
		{"a reader that follows sees every change once, in order", feedFollows},
	}
}

func feedTells(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	r = grow(t, s, r, "two")
	d := newDocument("bob", "0123456789ab", "review", "doc-1")
	must(t, s.CreateDocument(ctx, d, nil))
	_, err := s.UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d.Updated = at(3)
		return d, nil, nil
	})
	must(t, err)
	must(t, s.DeleteDocument(ctx, d.Ref, at(4)))
	must(t, s.RestoreDocument(ctx, d.Ref, at(5)))
	ofRun := func(at time.Time, op string, seq int64) run.Change {
		return run.Change{
			At: at, Subject: run.SubjectRun, Op: op, User: "ada", ID: "r_a",
			Workflow: r.Workflow, Project: r.Project.ID, Seq: seq,
		}
	}
	ofDocument := func(at time.Time, op string, seq int64) run.Change {
		return run.Change{
			At: at, Subject: run.SubjectSession, Op: op, User: "bob", ID: "doc-1",
			Workflow: "review", Project: "0123456789ab", Seq: seq,
		}
	}
	list, reset, err := f.open(t).Changes(ctx, 0, 100)
	must(t, err)
	if reset {
		t.Error("nothing was pruned, but the feed says so")
	}
	for i := range list {
		if i > 0 && list[i].Pos <= list[i-1].Pos {
			t.Errorf("position %d comes behind %d", list[i].Pos, list[i-1].Pos)
		}
		if list[i].Subject == run.SubjectRun { // they may stay empty, and must not be wrong
			if list[i].Workflow == "" {
				list[i].Workflow = r.Workflow
			}
			if list[i].Project == "" {
				list[i].Project = r.Project.ID
			}
		}
	}
	latest, err := s.Latest(ctx)
	must(t, err)
	want(t, "the last position", latest, list[len(list)-1].Pos)
	for i := range list {
		list[i].Pos = 0
	}
	want(t, "changes", list, []run.Change{
		ofRun(epoch(), run.OpCreated, 1), ofRun(r.Updated, run.OpChanged, 2),
		ofDocument(epoch(), run.OpCreated, 1), ofDocument(at(3), run.OpChanged, 2),
		ofDocument(at(4), run.OpDeleted, 2), ofDocument(at(5), run.OpCreated, 2),
	})
}

func feedPages(t *testing.T, f *fixture) {
	const total = 30
	s, ctx := f.open(t), t.Context()
	for i := range total {
		create(t, s, newRecord(fmt.Sprintf("r_%02d", i), "ada"))
	}
	var after int64
	for i := 0; i < total; {
		list, reset, err := s.Changes(ctx, after, 7)
		must(t, err)
		if reset || len(list) == 0 || len(list) > 7 {
			t.Fatalf("%d changes behind %d, reset %v", len(list), after, reset)
		}
		for _, c := range list {
			want(t, "id", c.ID, fmt.Sprintf("r_%02d", i))
			after, i = c.Pos, i+1
		}
	}
	list, reset, err := s.Changes(ctx, after, 7)
	must(t, err)
	if len(list) != 0 || reset {
		t.Fatalf("%d changes behind the last one, reset %v", len(list), reset)
	}
}

func watchWakes(t *testing.T, f *fixture) {
	here, there := f.open(t), f.open(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	own, foreign := here.Watch(ctx), there.Watch(ctx)
	follow := func(s Store, woken <-chan struct{}, after int64) int64 {
		for {
			list, _, err := s.Changes(ctx, after, 100)
			must(t, err)
			if len(list) > 0 {
				return list[len(list)-1].Pos
			}
			if _, open := <-woken; !open {
				t.Fatal("a watcher was not woken by a change")
			}
		}
	}
	var a, b int64
	r := create(t, here, newRecord("r_a", "ada"))
	for i := range 5 {
		a, b = follow(here, own, a), follow(there, foreign, b)
		r = grow(t, here, r, fmt.Sprint(i))
	}
}

func watchEnds(t *testing.T, f *fixture) {
	s := f.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	var watches []<-chan struct{}
	for range 5 {
		watches = append(watches, s.Watch(ctx))
	}
	still := s.Watch(t.Context())
	cancel()
	for _, w := range watches {
		for range w { // it is closed, perhaps behind a value
			continue
		}
	}
	for range s.Watch(ctx) { // one that has ended before it began
		continue
	}
	create(t, s, newRecord("r_a", "ada"))
	if _, open := <-still; !open {
		t.Error("another watch was ended")
	}
}

// feedFollows has goroutines in two processes write, and readers in both
// follow by Watch and Changes.
func feedFollows(t *testing.T, f *fixture) {
	const share = 15
	stores := []Store{f.open(t), f.open(t)}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	type followed struct {
		changes []run.Change
		err     error
	}
	readers := make(chan followed, 2)
	for _, s := range stores {
		woken := s.Watch(ctx)
		go func() {
			list, err := follow(ctx, s, woken, crowd*share)
			readers <- followed{list, err}
		}()
	}
	errs := together(crowd, func(i int) error {
		s, r := stores[i%2], newRecord(fmt.Sprintf("r_%d", i), "ada")
		if err := s.Create(ctx, definitionOf(r), first(r)); err != nil {
			return err
		}
		for n := range share - 1 {
			c := next(r, fmt.Sprint(n))
			if err := s.Append(ctx, c); err != nil {
				return err
			}
			r = c.Record
		}
		return nil
	})
	for _, err := range errs {
		must(t, err)
	}
	for range stores {
		got := <-readers
		must(t, got.err)
		last, seqs := int64(0), map[string]int64{}
		for _, c := range got.changes {
			if c.Pos <= last {
				t.Fatalf("position %d comes behind %d", c.Pos, last)
			}
			if c.Seq != seqs[c.ID]+1 {
				t.Fatalf("of %s the change %d comes behind %d", c.ID, c.Seq, seqs[c.ID])
			}
			last, seqs[c.ID] = c.Pos, c.Seq
		}
		want(t, "changes", len(got.changes), crowd*share)
	}
}

// follow reads changes until there are so many.
func follow(ctx context.Context, s run.Feed, woken <-chan struct{}, most int) ([]run.Change, error) {
	var seen []run.Change
	var after int64
	for {
		list, reset, err := s.Changes(ctx, after, 10)
		if err != nil || reset {
			return seen, fmt.Errorf("behind %d: reset %v, %w", after, reset, err)
		}
		seen = append(seen, list...)
		if len(seen) >= most {
			return seen, nil
		}
		if len(list) > 0 {
			after = list[len(list)-1].Pos
			continue
		}
		if _, open := <-woken; !open {
			return seen, fmt.Errorf("the watch ended behind %d changes: %w", len(seen), ctx.Err())
		}
	}
}
