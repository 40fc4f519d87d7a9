// Package storetest is the contract of a journal and of a store of session
// documents as tests. Every implementation passes it.
package storetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Store is what the suite exercises.
type Store interface {
	run.Journal
	session.Store
	// PinKey keeps the first fingerprint of a key that it is given, for good, and
	// answers the one that is kept. Without one it only looks; nil is none.
	PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error)
}

// Opener opens a store. Each call opens the same data again, as another process
// would. The suite closes what it opens, and may close it twice.
type Opener func(t *testing.T) Store

// Exercise runs the suite. fresh makes an empty store and gives the way to open
// it; it is called once for every subtest, and subtests run in parallel.
func Exercise(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	groups := []struct {
		name  string
		tests []subtest
	}{
		{"runs", runTests()},
		{"conflicts", conflictTests()},
		{"finding", findingTests()},
		{"search", searchTests()},
		{"feed", feedTests()},
		{"documents", documentTests()},
		{"key", keyTests()},
		{"hostile", hostileTests()},
		{"model", modelTests()},
	}
	for _, group := range groups {
		for _, test := range group.tests {
			t.Run(group.name+"/"+test.name, func(t *testing.T) {
				t.Parallel()
				test.run(t, &fixture{Opener: fresh(t)})
			})
		}
	}
}

// subtest is one promise of the contract.
type subtest struct {
	name string
	run  func(t *testing.T, f *fixture)
}

// fixture is the data of one subtest.
type fixture struct{ Opener }

// open opens a store that is closed with the test.
func (f *fixture) open(t *testing.T) Store {
	t.Helper()
	s := f.Opener(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// epoch is when the suite's first event happens. It has microseconds.
func epoch() time.Time { return time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC) }

// at is a time some minutes after the epoch.
func at(minutes int) time.Time { return epoch().Add(time.Duration(minutes) * time.Minute) }

// newRecord gives the record of a run that was begun with one event.
func newRecord(id, user string) run.Record {
	return run.Record{
		ID: id, User: user, Client: "suite", Workflow: "coding-task", Name: "Coding task", Version: "1.2.0",
		Hash: "sha256:" + id, Goal: "an aim of " + user, Project: run.Project{ID: "0123456789ab", Path: "/work/it", Branch: "main", Commit: "c0ffee"},
		Status: engine.StatusRunning, Kind: engine.PositionStep, Step: "plan", Title: "Plan it",
		Created: epoch(), Updated: epoch(), Seq: 1, Head: []byte("head-1"), Handle: "h_" + id + "_1",
	}
}

// newEvent gives an event with data that tells it from others.
func newEvent(seq int64, text string) run.Event {
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // a map of strings
	}
	return run.Event{
		Seq: seq, At: epoch().Add(time.Duration(seq) * time.Microsecond), Kind: "step_completed",
		By: run.By{User: "somebody", Client: "suite", Via: run.ViaAgent}, Data: data, MAC: fmt.Appendf(nil, "mac-%d-%s", seq, text),
	}
}

// definitionOf gives a definition for a record.
func definitionOf(r run.Record) run.Definition {
	return run.Definition{Hash: r.Hash, Text: `{"id":"` + r.Workflow + `"}`}
}

// first is the commit that creates a run.
func first(r run.Record) run.Commit {
	c := run.Commit{Record: r, Handle: r.Handle}
	for seq := int64(1); seq <= r.Seq; seq++ {
		c.Events = append(c.Events, newEvent(seq, r.ID))
	}
	return c
}

// next is a commit of one event behind a record.
func next(r run.Record, text string) run.Commit {
	seq := r.Seq + 1
	c := run.Commit{Expected: r.Seq, Events: []run.Event{newEvent(seq, text)}, Handle: fmt.Sprintf("h_%s_%d_%s", r.ID, seq, text)}
	r.Seq, r.Handle, r.Head = seq, c.Handle, fmt.Appendf(nil, "head-%d", seq)
	r.Done++
	r.Updated = r.Updated.Add(time.Second)
	c.Record = r
	return c
}

// create makes a run, or ends the test.
func create(t *testing.T, s run.Journal, r run.Record) run.Record {
	t.Helper()
	must(t, s.Create(t.Context(), definitionOf(r), first(r)))
	return r
}

// grow adds an event to a run, or ends the test.
func grow(t *testing.T, s run.Journal, r run.Record, text string) run.Record {
	t.Helper()
	c := next(r, text)
	must(t, s.Append(t.Context(), c))
	return c.Record
}

// newDocument gives a document.
func newDocument(user, project, workflow, id string) session.Document {
	return session.Document{
		Ref: session.Ref{User: user, Project: project, Workflow: workflow, ID: id}, ProjectPath: "/work/" + project,
		Created: epoch(), Updated: epoch(), Revision: 1,
		Data: map[string]any{"title": "the " + id, "progress": json.Number("42")},
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

// wantCode ends the test where an error does not have a code.
func wantCode(t *testing.T, err error, code guideway.Code, what string) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("%s: got the code %q (%v), want %q", what, got, err, code)
	}
}

// want compares, taking nil and empty lists as the same.
func want(t *testing.T, what string, got, expected any) {
	t.Helper()
	if diff := cmp.Diff(expected, got, alike()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// alike takes nil and empty lists as the same, and compares bytes as a whole.
func alike() cmp.Option {
	some := func(a, b []byte) bool { return len(a)+len(b) > 0 }
	return cmp.Options{cmpopts.EquateEmpty(), cmp.FilterValues(some, cmp.Comparer(bytes.Equal))}
}

// wantRecord compares records, and insists on UTC.
func wantRecord(t *testing.T, got, expected run.Record) {
	t.Helper()
	want(t, "record", got, expected)
	for _, when := range []time.Time{got.Created, got.Updated} {
		if when.Location() != time.UTC {
			t.Fatalf("a time of the record is in %s, not in UTC", when.Location())
		}
	}
}

// allEvents reads a run's events page by page.
func allEvents(ctx context.Context, s run.Log, id string) ([]run.Event, error) {
	const page = 7
	var events []run.Event
	for {
		list, err := s.Events(ctx, id, int64(len(events)), page)
		if err != nil {
			return nil, err
		}
		if len(list) > page {
			return nil, fmt.Errorf("a page of %d events has %d", page, len(list))
		}
		events = append(events, list...)
		if len(list) < page {
			return events, nil
		}
	}
}

// wantWhole ends the test where the events of a run do not begin at 1, have a
// gap, or do not end with its record.
func wantWhole(t *testing.T, s run.Journal, id string) []run.Event {
	t.Helper()
	rec, err := s.Run(t.Context(), id)
	must(t, err)
	events, err := allEvents(t.Context(), s, id)
	must(t, err)
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d of %s has the number %d", i+1, id, e.Seq)
		}
	}
	if rec.Seq != int64(len(events)) {
		t.Fatalf("the record of %s says %d events, there are %d", id, rec.Seq, len(events))
	}
	return events
}

// isConflict says whether somebody else was faster.
func isConflict(err error) bool {
	return err != nil && guideway.ErrorCode(err) == guideway.CodeConflict
}

// together calls f in so many goroutines that begin at once, and gives the
// errors in their order.
func together(n int, f func(i int) error) []error {
	errs := make([]error, n)
	start, done := make(chan struct{}), make(chan struct{})
	for i := range n {
		go func() {
			defer func() { done <- struct{}{} }()
			<-start
			errs[i] = f(i)
		}()
	}
	close(start)
	for range n {
		<-done
	}
	return errs
}

// oneWins ends the test where not exactly one call went well and all others
// were conflicts.
func oneWins(t *testing.T, errs []error) {
	t.Helper()
	wins := 0
	for _, err := range errs {
		switch {
		case err == nil:
			wins++
		case !isConflict(err):
			t.Fatalf("neither a success nor a conflict: %v", err)
		}
	}
	if wins != 1 {
		t.Fatalf("%d of %d calls went well, want exactly one: %v", wins, len(errs), errors.Join(errs...))
	}
}
