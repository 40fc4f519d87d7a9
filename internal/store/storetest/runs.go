package storetest

import (
	"bytes"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// runTests cover a single run with a single caller.
func runTests() []subtest {
	return []subtest{
		{"an empty store returns CodeNotFound", testEmptyStore},
		{"a run is read unchanged, also by a different process", testRoundTrip},
		{"an append updates the record, the events and the handle", testAppend},
		{"events are read in pages, in order", testEventPages},
		{"a snapshot is kept or replaced, separately for each run", testSnapshots},
		{"a definition is stored once", testDefinitions},
		{"a key returns the result of its command", testOutcomes},
		{"every handle of a run stays valid", testHandles},
		{"a closed store returns errors and can be closed again", testClosed},
	}
}

func testEmptyStore(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	_, err := s.Run(ctx, "r_none")
	checkCode(t, err, guideway.CodeNotFound, "Run")
	_, err = s.Handle(ctx, "h_none")
	checkCode(t, err, guideway.CodeNotFound, "Handle")
	_, err = s.Definition(ctx, "sha256:none")
	checkCode(t, err, guideway.CodeNotFound, "Definition")
	_, err = s.Outcome(ctx, "r_none", "", "key")
	checkCode(t, err, guideway.CodeNotFound, "Outcome of a run")
	_, err = s.Outcome(ctx, "", "ada", "key")
	checkCode(t, err, guideway.CodeNotFound, "Outcome of a user")
	checkCode(t, s.Append(ctx, appendCommit(newRecord("r_none", "ada"), "x")), guideway.CodeNotFound, "Append")
	events, err := s.Events(ctx, "r_none", 0, 10)
	requireNoError(t, err)
	checkEqual(t, "events", len(events), 0)
	snap, err := s.Snapshot(ctx, "r_none")
	requireNoError(t, err)
	if snap != nil {
		t.Fatalf("a missing run has a snapshot: %+v", snap)
	}
	runs, err := s.Runs(ctx, run.Filter{})
	requireNoError(t, err)
	checkEqual(t, "runs", len(runs), 0)
	hits, err := s.Search(ctx, run.Search{Query: words.Parse("anything")})
	requireNoError(t, err)
	checkEqual(t, "hits", len(hits), 0)
	latest, err := s.Latest(ctx)
	requireNoError(t, err)
	checkEqual(t, "latest", latest, int64(0))
	changes, reset, err := s.Changes(ctx, 0, 10)
	requireNoError(t, err)
	if len(changes) != 0 || reset {
		t.Fatalf("an empty feed has %d changes, reset %v", len(changes), reset)
	}
}

// fullRecord returns a record with a value in every field.
func fullRecord() run.Record {
	r := newRecord("r_full", "ada")
	r.Status, r.Kind, r.Step, r.Title, r.Person = engine.StatusWaiting, engine.PositionGate, "approve", "Approve it", true
	r.Done, r.Parent, r.ParentSeq = 7, "r_parent", 12
	r.Updated, r.Seq, r.Head = minutesAfter(5), 2, []byte{0, 1, 2, 0xFF}
	return r
}

func testRoundTrip(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := fullRecord()
	c := createCommit(r)
	c.Events[0].Data = nil
	c.Events[1].Data = []byte("{ \"a\" :\t1.0,\n\"b\": \"\\u00e9é<&\", \"b\": 1e400 }") // stored byte for byte
	c.Events[1].By = run.By{Via: run.ViaServer}
	requireNoError(t, s.Create(ctx, newDefinition(r), c))
	for _, store := range []Store{s, f.openStore(t)} {
		got, err := store.Run(ctx, r.ID)
		requireNoError(t, err)
		checkRecord(t, got, r)
		events, err := store.Events(ctx, r.ID, 0, 10)
		requireNoError(t, err)
		checkEqual(t, "events", events, c.Events)
		h, err := store.Handle(ctx, r.Handle)
		requireNoError(t, err)
		checkEqual(t, "handle", h, run.Handle{Token: r.Handle, Run: r.ID, Seq: 2})
		d, err := store.Definition(ctx, r.Hash)
		requireNoError(t, err)
		checkEqual(t, "definition", d, newDefinition(r))
	}
}

func testAppend(t *testing.T, f *fixture) {
	s, other, ctx := f.openStore(t), f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	c := appendCommit(r, "two")
	c.Events = append(c.Events, newEvent(3, "three"))
	c.Record.Seq, c.Record.Status, c.Record.Person = 3, engine.StatusWaiting, true
	c.Record.Kind, c.Record.Step, c.Record.Title = engine.PositionGate, "gate", "A gate"
	requireNoError(t, other.Append(ctx, c))
	got, err := s.Run(ctx, r.ID)
	requireNoError(t, err)
	checkRecord(t, got, c.Record)
	// A commit without a new handle keeps the current handle.
	quiet := appendCommit(c.Record, "four")
	quiet.Handle, quiet.Record.Handle = "", c.Record.Handle
	quiet.Record.Person, quiet.Record.Status = false, engine.StatusCompleted
	requireNoError(t, s.Append(ctx, quiet))
	got, err = other.Run(ctx, r.ID)
	requireNoError(t, err)
	checkRecord(t, got, quiet.Record)
	events := checkEvents(t, other, r.ID)
	checkEqual(t, "events", events[1:], append(c.Events, quiet.Events...))
}

func testEventPages(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := newRecord("r_a", "ada")
	r.Seq = 25
	createRun(t, s, r)
	createRun(t, s, newRecord("r_b", "ada")) // events of another run are separate
	for _, c := range []struct {
		after     int64
		limit     int
		from, num int64
	}{{0, 10, 1, 10}, {10, 10, 11, 10}, {20, 10, 21, 5}, {24, 1, 25, 1}, {25, 10, 0, 0}, {99, 10, 0, 0}, {-5, 3, 1, 3}} {
		events, err := s.Events(ctx, r.ID, c.after, c.limit)
		requireNoError(t, err)
		if int64(len(events)) != c.num || (c.num > 0 && events[0].Seq != c.from) {
			t.Errorf("after %d, limit %d: %d events, want %d from %d on", c.after, c.limit, len(events), c.num, c.from)
		}
	}
	checkEvents(t, s, r.ID)
}

func testSnapshots(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	a, b := createRun(t, s, newRecord("r_a", "ada")), newRecord("r_b", "ada")
	with := createCommit(b)
	with.Snapshot = &run.Snapshot{Seq: 1, Head: []byte("b"), State: []byte("state of b"), MAC: []byte{0}}
	requireNoError(t, s.Create(ctx, newDefinition(b), with))
	read := func(id string) *run.Snapshot {
		snap, err := s.Snapshot(ctx, id)
		requireNoError(t, err)
		return snap
	}
	if got := read("r_a"); got != nil {
		t.Fatalf("a run without a snapshot has one: %+v", got)
	}
	c := appendCommit(a, "two")
	c.Snapshot = &run.Snapshot{Seq: 2, Head: []byte("a"), State: bytes.Repeat([]byte("state of a "), 20_000), MAC: []byte("mac")}
	requireNoError(t, s.Append(ctx, c))
	checkEqual(t, "snapshot of a", read("r_a"), c.Snapshot)
	a = appendEvent(t, s, c.Record, "three") // a commit without a snapshot keeps the last snapshot
	checkEqual(t, "snapshot of a, kept", read("r_a"), c.Snapshot)
	c = appendCommit(a, "four")
	c.Snapshot = &run.Snapshot{Seq: 4, Head: []byte("a4"), State: []byte("new"), MAC: []byte("mac4")}
	requireNoError(t, s.Append(ctx, c))
	checkEqual(t, "snapshot of a, replaced", read("r_a"), c.Snapshot)
	checkEqual(t, "snapshot of b", read("r_b"), with.Snapshot)
}

func testDefinitions(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	a, b := newRecord("r_a", "ada"), newRecord("r_b", "bob")
	b.Hash = a.Hash
	d := run.Definition{Hash: a.Hash, Text: "{\"title\": \"é <&> \\u0000 🚀\"}\n"}
	requireNoError(t, s.Create(ctx, d, createCommit(a)))
	requireNoError(t, s.Create(ctx, d, createCommit(b)))
	got, err := s.Definition(ctx, d.Hash)
	requireNoError(t, err)
	checkEqual(t, "definition", got, d)
}

func testOutcomes(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := newRecord("r_a", "ada")
	c := createCommit(r)
	c.Key = "request-1"
	requireNoError(t, s.Create(ctx, newDefinition(r), c))
	got, err := s.Outcome(ctx, "", "ada", "request-1")
	requireNoError(t, err)
	checkEqual(t, "outcome of the request", got, run.Handle{Token: r.Handle, Run: r.ID, Seq: 1})
	_, err = s.Outcome(ctx, "", "bob", "request-1")
	checkCode(t, err, guideway.CodeNotFound, "a request of another user")

	c = appendCommit(r, "two")
	c.Key = "command-1"
	requireNoError(t, s.Append(ctx, c))
	quiet := appendCommit(c.Record, "three")
	quiet.Key, quiet.Handle, quiet.Record.Handle = "command-2", "", c.Record.Handle
	requireNoError(t, s.Append(ctx, quiet))
	appendEvent(t, s, quiet.Record, "four")
	for key, expected := range map[string]run.Handle{
		"command-1": {Token: c.Handle, Run: r.ID, Seq: 2},
		"command-2": {Token: c.Handle, Run: r.ID, Seq: 3}, // the handle at the time of the command
	} {
		got, err = s.Outcome(ctx, r.ID, "", key)
		requireNoError(t, err)
		checkEqual(t, "outcome of "+key, got, expected)
	}
	_, err = s.Outcome(ctx, r.ID, "", "command-3")
	checkCode(t, err, guideway.CodeNotFound, "a key that was never used")
	_, err = s.Outcome(ctx, "r_b", "", "command-1")
	checkCode(t, err, guideway.CodeNotFound, "another run's key")
}

func testHandles(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	expected := []run.Handle{{Token: r.Handle, Run: r.ID, Seq: 1}}
	for range 5 {
		r = appendEvent(t, s, r, "more")
		expected = append(expected, run.Handle{Token: r.Handle, Run: r.ID, Seq: r.Seq})
	}
	for _, h := range expected {
		got, err := s.Handle(ctx, h.Token)
		requireNoError(t, err)
		checkEqual(t, "handle", got, h)
	}
	_, err := s.Handle(ctx, "")
	checkCode(t, err, guideway.CodeNotFound, "the empty handle")
}

func testClosed(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	r := createRun(t, s, newRecord("r_a", "ada"))
	woken := s.Watch(ctx)
	requireNoError(t, s.Close())
	for range woken { // the channel is closed, possibly after a value
		continue
	}
	_, err := s.Run(ctx, r.ID)
	checkCode(t, err, guideway.CodeUnavailable, "Run")
	checkCode(t, s.Append(ctx, appendCommit(r, "x")), guideway.CodeUnavailable, "Append")
	requireNoError(t, s.Close())
	checkEvents(t, f.openStore(t), r.ID)
}
