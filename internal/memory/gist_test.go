package memory_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/memory"
	"github.com/guideway-dev/guideway/internal/run"
)

// watched is a journal that notes which events are read, and tells of gists.
type watched struct {
	run.Journal
	kept chan run.Gist

	mu sync.Mutex
	// read are the events that were asked for.
	read map[int64]bool
}

func watch(into *watched) func(*parts) {
	return func(p *parts) {
		into.Journal, into.kept, into.read = p.run.Journal, make(chan run.Gist, 16), map[int64]bool{}
		p.run.Journal = into
		p.keeper.Off = true // what looks for missing checkpoints reads events, too
	}
}

func (w *watched) Events(ctx context.Context, id string, after int64, limit int) ([]run.Event, error) {
	list, err := w.Journal.Events(ctx, id, after, limit)
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range list {
		w.read[e.Seq] = true
	}
	return list, err
}

func (w *watched) KeepGist(ctx context.Context, id string, g run.Gist) error {
	err := w.Journal.KeepGist(ctx, id, g)
	if err == nil {
		w.kept <- g
	}
	return err
}

// next waits for the next gist that is kept.
func (w *watched) next(t *testing.T) run.Gist {
	t.Helper()
	select {
	case g := <-w.kept:
		return g
	case <-time.After(time.Minute): // so that it fails and does not hang
		t.Fatal("nothing is kept")
		return run.Gist{}
	}
}

// count gives how many events were read from one to another.
func (w *watched) count(from, to int64) (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for seq := range w.read {
		if seq >= from && seq <= to {
			n++
		}
	}
	return n
}

const longFlow = `{"id":"long","name":"Long","description":"d","version":"1.0.0","steps":[
	{"id":"rounds","type":"loop","title":"Rounds","loop":{"type":"for","count":900,"maxIterations":900},"body":[
		{"id":"work","title":"Work","prompt":"Work."}]}]}`

// walkFar makes a run of a few hundred events, and gives it with the gist that was
// kept of it beside the answers.
func walkFar(t *testing.T, r *rig, w *watched) (*run.Answer, run.Gist) {
	t.Helper()
	a, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "long", Goal: "go far"})
	must(t, err)
	for i := 0; ; i++ {
		a, err = step(t.Context(), r, a, fmt.Sprintf("Part %d was moved to file-%d.go. The tests of part %d pass.", i, i, i))
		must(t, err)
		select {
		case g := <-w.kept:
			return a, g
		default:
		}
		if i > 800 {
			t.Fatal("of a run that goes on and on nothing is kept")
		}
	}
}

func long900(p *parts) { p.run.Definitions = shelf{"long": longFlow} }

func summaryOf(t *testing.T, r *rig, id string) *memory.Summary {
	t.Helper()
	b, err := r.Brief(t.Context(), ada(), id)
	must(t, err)
	if b.Summary == nil || b.Summary.Text == "" {
		t.Fatal("the run has no summary")
	}
	return b.Summary
}

// The first question about a long run in a new process reads no chapter that another
// process has summarised, and tells what that would tell.
func TestSummarisedChaptersAreNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var first, second watched
	r := reopen(t, dir, long900, watch(&first))
	a, g := walkFar(t, r, &first)
	if g.Seq < 150 {
		t.Fatalf("a story was kept at event %d", g.Seq)
	}
	want := summaryOf(t, r, a.RunID)
	r.close()

	r = reopen(t, dir, long900, watch(&second))
	if d := cmp.Diff(want, summaryOf(t, r, a.RunID)); d != "" {
		t.Errorf("in a new process (-want +got):\n%s", d)
	}
	// The last one in it is read, and the one before that, to see that they are
	// those that it is of; behind it all are.
	d, err := r.runs.Look(t.Context(), ada(), run.Ref{RunID: a.RunID})
	must(t, err)
	snapshot := int64(40) // the run's own state may be behind by so many
	if n := second.count(1, min(g.Seq, d.Seq-snapshot)-2); n > 0 {
		t.Errorf("%d events were read that are summarised up to %d", n, g.Seq)
	}
	if n := int64(second.count(g.Seq+1, d.Seq)); n != d.Seq-g.Seq {
		t.Errorf("of %d events that are not summarised %d were read", d.Seq-g.Seq, n)
	}
}

// What is kept of a run and does not fit is found out, costs a reading and no more,
// and is replaced.
func TestGistsAreNotTrusted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var w watched
	r := reopen(t, dir, long900, watch(&w))
	a, g := walkFar(t, r, &w)
	other, err := r.runs.Fork(t.Context(), ada(), run.ForkRequest{Ref: run.Ref{RunID: a.RunID}})
	must(t, err)
	foreign := w.next(t) // a fork is told in short at once
	want := summaryOf(t, r, a.RunID)
	r.close()

	edited := func(change func(*run.Gist)) func(*rig, run.Journal) error {
		return func(_ *rig, j run.Journal) error {
			bad := g
			bad.Data, bad.Head = bytes.Clone(g.Data), bytes.Clone(g.Head)
			change(&bad)
			return j.KeepGist(context.Background(), a.RunID, bad)
		}
	}
	// signed is by who has the key: an earlier version, or a database that was put
	// back and went on otherwise.
	signed := func(change func(*run.Gist)) func(*rig, run.Journal) error {
		return func(r *rig, _ run.Journal) error {
			bad := g
			bad.Data, bad.Head = bytes.Clone(g.Data), bytes.Clone(g.Head)
			change(&bad)
			return r.runs.KeepGist(context.Background(), ada(), run.Ref{RunID: a.RunID}, bad)
		}
	}
	for name, spoil := range map[string]func(*rig, run.Journal) error{
		"an edited text":       edited(func(g *run.Gist) { g.Data = bytes.Replace(g.Data, []byte("moved"), []byte("never"), 1) }),
		"an edited number":     edited(func(g *run.Gist) { g.Seq-- }),
		"no MAC":               edited(func(g *run.Gist) { g.MAC = nil }),
		"half of it":           edited(func(g *run.Gist) { g.Data = g.Data[:len(g.Data)/2] }),
		"nothing":              edited(func(g *run.Gist) { *g = run.Gist{} }),
		"that of another run":  edited(func(bad *run.Gist) { *bad = foreign }),
		"another form":         signed(func(g *run.Gist) { g.Data = []byte(`{"form":0,"steps":900}`) }),
		"no JSON":              signed(func(g *run.Gist) { g.Data = []byte("moved") }),
		"other events":         signed(func(g *run.Gist) { g.Head[0]++ }),
		"events before others": signed(func(g *run.Gist) { g.Seq-- }),
	} {
		t.Run(name, func(t *testing.T) {
			var w watched
			r := reopen(t, dir, long900, watch(&w))
			must(t, spoil(r, w.Journal))
			for len(w.kept) > 0 {
				<-w.kept
			}
			if d := cmp.Diff(want, summaryOf(t, r, a.RunID)); d != "" {
				t.Fatalf("told of it (-want +got):\n%s", d)
			}
			if again := w.next(t); again.Seq < g.Seq || !bytes.HasPrefix(again.Data, []byte(`{"form":1,`)) {
				t.Errorf("in its place is %d %.40s", again.Seq, again.Data)
			}
			r.close()
		})
	}
	if foreign.Seq < g.Seq || other.RunID == a.RunID {
		t.Errorf("the fork %s was told up to %d", other.RunID, foreign.Seq)
	}
}

// A gist is the owner's, and of events that are there.
func TestGistsBelongToTheirOwner(t *testing.T) {
	t.Parallel()
	r := setup(t)
	a, err := r.runs.Start(t.Context(), ada(), run.StartRequest{WorkflowID: "move", Context: map[string]any{"files": []any{}}})
	must(t, err)
	ref := run.Ref{RunID: a.RunID}
	must(t, r.runs.KeepGist(t.Context(), ada(), ref, run.Gist{Seq: 1, Data: []byte("x")}))
	if g, err := r.runs.Gist(t.Context(), ada(), ref); err != nil || g == nil || string(g.Data) != "x" {
		t.Errorf("the owner reads %+v, %v", g, err)
	}
	bob := ada()
	bob.User = "bob"
	if g, err := r.runs.Gist(t.Context(), bob, ref); err == nil {
		t.Errorf("somebody else reads %+v", g)
	}
	if err := r.runs.KeepGist(t.Context(), bob, ref, run.Gist{Seq: 1}); err == nil {
		t.Error("somebody else writes")
	}
	for _, seq := range []int64{-1, 0, 1000} {
		if err := r.runs.KeepGist(t.Context(), ada(), ref, run.Gist{Seq: seq}); err == nil {
			t.Errorf("a gist of event %d was taken", seq)
		}
	}
}
