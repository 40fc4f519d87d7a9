package storetest

import (
	"bytes"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// runTests are about one run by one caller: what is written is what is read.
func runTests() []subtest {
	return []subtest{
		{"an empty store says that nothing is there", emptyStore},
		{"a run comes back as it was written, in another process too", roundTrip},
		{"an append moves the record, the events and the handle", appendMoves},
		{"events come in pages, in order", eventPages},
		{"a snapshot is replaced, kept, and never mixed up", snapshots},
		{"a definition is stored once", definitions},
		{"a key gives the outcome of its command", outcomes},
		{"every handle of a run stays known", handles},
		{"a closed store says so and can be closed again", closed},
	}
}

func emptyStore(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	_, err := s.Run(ctx, "r_none")
	wantCode(t, err, guideway.CodeNotFound, "Run")
	_, err = s.Handle(ctx, "h_none")
	wantCode(t, err, guideway.CodeNotFound, "Handle")
	_, err = s.Definition(ctx, "sha256:none")
	wantCode(t, err, guideway.CodeNotFound, "Definition")
	_, err = s.Outcome(ctx, "r_none", "", "key")
	wantCode(t, err, guideway.CodeNotFound, "Outcome of a run")
	_, err = s.Outcome(ctx, "", "ada", "key")
	wantCode(t, err, guideway.CodeNotFound, "Outcome of a user")
	wantCode(t, s.Append(ctx, next(newRecord("r_none", "ada"), "x")), guideway.CodeNotFound, "Append")
	events, err := s.Events(ctx, "r_none", 0, 10)
	must(t, err)
	want(t, "events", len(events), 0)
	snap, err := s.Snapshot(ctx, "r_none")
	must(t, err)
	if snap != nil {
		t.Fatalf("a run that is not there has a snapshot: %+v", snap)
	}
	runs, err := s.Runs(ctx, run.Filter{})
	must(t, err)
	want(t, "runs", len(runs), 0)
	hits, err := s.Search(ctx, run.Search{Words: []string{"anything"}})
	must(t, err)
	want(t, "hits", len(hits), 0)
	latest, err := s.Latest(ctx)
	must(t, err)
	want(t, "latest", latest, int64(0))
	changes, reset, err := s.Changes(ctx, 0, 10)
	must(t, err)
	if len(changes) != 0 || reset {
		t.Fatalf("an empty feed has %d changes, reset %v", len(changes), reset)
	}
}

// fullRecord has every field set to something of its own.
func fullRecord() run.Record {
	r := newRecord("r_full", "ada")
	r.Status, r.Kind, r.Step, r.Title, r.Person = engine.StatusWaiting, engine.PositionGate, "approve", "Approve it", true
	r.Done, r.Parent, r.ParentSeq = 7, "r_parent", 12
	r.Updated, r.Seq, r.Head = at(5), 2, []byte{0, 1, 2, 0xFF}
	return r
}

func roundTrip(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := fullRecord()
	c := first(r)
	c.Events[0].Data = nil
	c.Events[1].Data = []byte("{ \"a\" :\t1.0,\n\"b\": \"\\u00e9é<&\", \"b\": 1e400 }") // kept byte for byte
	c.Events[1].By = run.By{Via: run.ViaServer}
	must(t, s.Create(ctx, definitionOf(r), c))
	for _, store := range []Store{s, f.open(t)} {
		got, err := store.Run(ctx, r.ID)
		must(t, err)
		wantRecord(t, got, r)
		events, err := store.Events(ctx, r.ID, 0, 10)
		must(t, err)
		want(t, "events", events, c.Events)
		h, err := store.Handle(ctx, r.Handle)
		must(t, err)
		want(t, "handle", h, run.Handle{Token: r.Handle, Run: r.ID, Seq: 2})
		d, err := store.Definition(ctx, r.Hash)
		must(t, err)
		want(t, "definition", d, definitionOf(r))
	}
}

func appendMoves(t *testing.T, f *fixture) {
	s, other, ctx := f.open(t), f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	c := next(r, "two")
	c.Events = append(c.Events, newEvent(3, "three"))
	c.Record.Seq, c.Record.Status, c.Record.Person = 3, engine.StatusWaiting, true
	c.Record.Kind, c.Record.Step, c.Record.Title = engine.PositionGate, "gate", "A gate"
	must(t, other.Append(ctx, c))
	got, err := s.Run(ctx, r.ID)
	must(t, err)
	wantRecord(t, got, c.Record)
	// A commit without a new handle keeps the one that there is.
	quiet := next(c.Record, "four")
	quiet.Handle, quiet.Record.Handle = "", c.Record.Handle
	quiet.Record.Person, quiet.Record.Status = false, engine.StatusCompleted
	must(t, s.Append(ctx, quiet))
	got, err = other.Run(ctx, r.ID)
	must(t, err)
	wantRecord(t, got, quiet.Record)
	events := wantWhole(t, other, r.ID)
	want(t, "events", events[1:], append(c.Events, quiet.Events...))
}

func eventPages(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := newRecord("r_a", "ada")
	r.Seq = 25
	create(t, s, r)
	create(t, s, newRecord("r_b", "ada")) // another run's events stay its own
	for _, c := range []struct {
		after     int64
		limit     int
		from, num int64
	}{{0, 10, 1, 10}, {10, 10, 11, 10}, {20, 10, 21, 5}, {24, 1, 25, 1}, {25, 10, 0, 0}, {99, 10, 0, 0}, {-5, 3, 1, 3}} {
		events, err := s.Events(ctx, r.ID, c.after, c.limit)
		must(t, err)
		if int64(len(events)) != c.num || (c.num > 0 && events[0].Seq != c.from) {
			t.Errorf("after %d, limit %d: %d events, want %d from %d on", c.after, c.limit, len(events), c.num, c.from)
		}
	}
	wantWhole(t, s, r.ID)
}

func snapshots(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	a, b := create(t, s, newRecord("r_a", "ada")), newRecord("r_b", "ada")
	with := first(b)
	with.Snapshot = &run.Snapshot{Seq: 1, Head: []byte("b"), State: []byte("state of b"), MAC: []byte{0}}
	must(t, s.Create(ctx, definitionOf(b), with))
	read := func(id string) *run.Snapshot {
		snap, err := s.Snapshot(ctx, id)
		must(t, err)
		return snap
	}
	if got := read("r_a"); got != nil {
		t.Fatalf("a run without a snapshot has one: %+v", got)
	}
	c := next(a, "two")
	c.Snapshot = &run.Snapshot{Seq: 2, Head: []byte("a"), State: bytes.Repeat([]byte("state of a "), 20_000), MAC: []byte("mac")}
	must(t, s.Append(ctx, c))
	want(t, "snapshot of a", read("r_a"), c.Snapshot)
	a = grow(t, s, c.Record, "three") // nil keeps it
	want(t, "snapshot of a, kept", read("r_a"), c.Snapshot)
	c = next(a, "four")
	c.Snapshot = &run.Snapshot{Seq: 4, Head: []byte("a4"), State: []byte("new"), MAC: []byte("mac4")}
	must(t, s.Append(ctx, c))
	want(t, "snapshot of a, replaced", read("r_a"), c.Snapshot)
	want(t, "snapshot of b", read("r_b"), with.Snapshot)
}

func definitions(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	a, b := newRecord("r_a", "ada"), newRecord("r_b", "bob")
	b.Hash = a.Hash
	d := run.Definition{Hash: a.Hash, Text: "{\"title\": \"é <&> \\u0000 🚀\"}\n"}
	must(t, s.Create(ctx, d, first(a)))
	must(t, s.Create(ctx, d, first(b)))
	got, err := s.Definition(ctx, d.Hash)
	must(t, err)
	want(t, "definition", got, d)
}

func outcomes(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := newRecord("r_a", "ada")
	c := first(r)
	c.Key = "request-1"
	must(t, s.Create(ctx, definitionOf(r), c))
	got, err := s.Outcome(ctx, "", "ada", "request-1")
	must(t, err)
	want(t, "outcome of the request", got, run.Handle{Token: r.Handle, Run: r.ID, Seq: 1})
	_, err = s.Outcome(ctx, "", "bob", "request-1")
	wantCode(t, err, guideway.CodeNotFound, "somebody else's request")

	c = next(r, "two")
	c.Key = "command-1"
	must(t, s.Append(ctx, c))
	quiet := next(c.Record, "three")
	quiet.Key, quiet.Handle, quiet.Record.Handle = "command-2", "", c.Record.Handle
	must(t, s.Append(ctx, quiet))
	grow(t, s, quiet.Record, "four")
	for key, expected := range map[string]run.Handle{
		"command-1": {Token: c.Handle, Run: r.ID, Seq: 2},
		"command-2": {Token: c.Handle, Run: r.ID, Seq: 3}, // the handle that was current then
	} {
		got, err = s.Outcome(ctx, r.ID, "", key)
		must(t, err)
		want(t, "outcome of "+key, got, expected)
	}
	_, err = s.Outcome(ctx, r.ID, "", "command-3")
	wantCode(t, err, guideway.CodeNotFound, "a key that was never used")
	_, err = s.Outcome(ctx, "r_b", "", "command-1")
	wantCode(t, err, guideway.CodeNotFound, "another run's key")
}

func handles(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	expected := []run.Handle{{Token: r.Handle, Run: r.ID, Seq: 1}}
	for range 5 {
		r = grow(t, s, r, "more")
		expected = append(expected, run.Handle{Token: r.Handle, Run: r.ID, Seq: r.Seq})
	}
	for _, h := range expected {
		got, err := s.Handle(ctx, h.Token)
		must(t, err)
		want(t, "handle", got, h)
	}
	_, err := s.Handle(ctx, "")
	wantCode(t, err, guideway.CodeNotFound, "the empty handle")
}

func closed(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	r := create(t, s, newRecord("r_a", "ada"))
	woken := s.Watch(ctx)
	must(t, s.Close())
	for range woken { // it is closed, perhaps behind a value
		continue
	}
	_, err := s.Run(ctx, r.ID)
	wantCode(t, err, guideway.CodeUnavailable, "Run")
	wantCode(t, s.Append(ctx, next(r, "x")), guideway.CodeUnavailable, "Append")
	must(t, s.Close())
	wantWhole(t, f.open(t), r.ID)
}
