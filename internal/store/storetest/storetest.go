// Package storetest contains the contract tests of run.Journal and of the store of session
// documents. Every implementation passes them.
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
	"github.com/guideway-dev/guideway/internal/cluster"
	"github.com/guideway-dev/guideway/internal/engine"
	hookstate "github.com/guideway-dev/guideway/internal/hooks/state"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// Store is the interface under test.
type Store interface {
	run.Journal
	session.Store
	hookstate.ListStore
	cluster.Store
	// PinKey stores the first fingerprint and returns the stored fingerprint. With an empty
	// fingerprint it only reads, and returns nil if no fingerprint is stored.
	PinKey(ctx context.Context, fingerprint []byte) (kept []byte, err error)
}

// Opener opens a store. Each call opens the same data again, as another process would. The
// tests close every store, some of them twice.
type Opener func(t *testing.T) Store

// Exercise runs the tests. fresh creates an empty store and returns its Opener. It is
// called once per subtest, and subtests run in parallel.
func Exercise(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	groups := []struct {
		name  string
		tests []subtest
	}{
		{"runs", runTests()},
		{"conflicts", conflictTests()},
		{"finding", listTests()},
		{"search", searchTests()},
		{"feed", feedTests()},
		{"documents", documentTests()},
		{"key", keyTests()},
		{"state of hooks", hookStateTests()},
		{"instances", instanceTests()},
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

// subtest tests one rule of the contract.
type subtest struct {
	name string
	run  func(t *testing.T, f *fixture)
}

// fixture is the store of one subtest.
type fixture struct{ Opener }

// openStore opens a store that is closed after the test.
func (f *fixture) openStore(t *testing.T) Store {
	t.Helper()
	s := f.Opener(t)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// startTime returns the time at which runs and documents are created. It has microseconds.
func startTime() time.Time { return time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC) }

// minutesAfter returns a time some minutes after startTime.
func minutesAfter(minutes int) time.Time {
	return startTime().Add(time.Duration(minutes) * time.Minute)
}

// newRecord returns the record of a run with one event.
func newRecord(id, user string) run.Record {
	return run.Record{
		ID: id, User: user, Client: "suite", Workflow: "coding-task", Name: "Coding task", Version: "1.2.0",
		Hash: "sha256:" + id, Goal: "the goal of " + user, Project: run.Project{ID: "0123456789ab", Path: "/work/it", Branch: "main", Commit: "c0ffee"},
		Status: engine.StatusRunning, Kind: engine.PositionStep, Step: "plan", Title: "Plan it",
		Created: startTime(), Updated: startTime(), Seq: 1, Head: []byte("head-1"), Handle: "h_" + id + "_1",
	}
}

// newEvent returns an event with a text.
func newEvent(seq int64, text string) run.Event {
	data, err := json.Marshal(map[string]string{"text": text})
	if err != nil {
		panic(err) // unreachable: the map has only strings
	}
	return run.Event{
		Seq: seq, At: startTime().Add(time.Duration(seq) * time.Microsecond), Kind: "step_completed",
		By: run.By{User: "somebody", Client: "suite", Via: run.ViaAgent}, Data: data, MAC: fmt.Appendf(nil, "mac-%d-%s", seq, text),
	}
}

// newDefinition returns a definition for a record.
func newDefinition(r run.Record) run.Definition {
	return run.Definition{Hash: r.Hash, Text: `{"id":"` + r.Workflow + `"}`}
}

// createCommit returns the commit that creates a run.
func createCommit(r run.Record) run.Commit {
	c := run.Commit{Record: r, Handle: r.Handle, Terms: words.Of(r.SearchText())}
	for seq := int64(1); seq <= r.Seq; seq++ {
		c.Events = append(c.Events, newEvent(seq, r.ID))
	}
	return c
}

// appendCommit returns a commit of one event after a record.
func appendCommit(r run.Record, text string) run.Commit {
	seq := r.Seq + 1
	c := run.Commit{Expected: r.Seq, Events: []run.Event{newEvent(seq, text)}, Handle: fmt.Sprintf("h_%s_%d_%s", r.ID, seq, text)}
	r.Seq, r.Handle, r.Head = seq, c.Handle, fmt.Appendf(nil, "head-%d", seq)
	r.Done++
	r.Updated = r.Updated.Add(time.Second)
	c.Record = r
	return c
}

// createRun creates a run or fails the test.
func createRun(t *testing.T, s run.Journal, r run.Record) run.Record {
	t.Helper()
	requireNoError(t, s.Create(t.Context(), newDefinition(r), createCommit(r)))
	return r
}

// appendEvent appends an event to a run or fails the test.
func appendEvent(t *testing.T, s run.Journal, r run.Record, text string) run.Record {
	t.Helper()
	c := appendCommit(r, text)
	requireNoError(t, s.Append(t.Context(), c))
	return c.Record
}

// newDocument returns a session document.
func newDocument(user, project, workflow, id string) session.Document {
	return session.Document{
		Ref: session.Ref{User: user, Project: project, Workflow: workflow, ID: id}, ProjectPath: "/work/" + project,
		Created: startTime(), Updated: startTime(), Revision: 1,
		Data: map[string]any{"title": "the " + id, "progress": json.Number("42")},
	}
}

func requireNoError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

// checkCode fails the test unless an error has a code.
func checkCode(t *testing.T, err error, code guideway.Code, what string) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("%s: got the code %q (%v), want %q", what, got, err, code)
	}
}

// checkEqual compares values; nil and empty lists are equal.
func checkEqual(t *testing.T, what string, got, expected any) {
	t.Helper()
	if diff := cmp.Diff(expected, got, equateOption()); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// equateOption makes nil and empty lists equal and compares byte slices as one value.
func equateOption() cmp.Option {
	some := func(a, b []byte) bool { return len(a)+len(b) > 0 }
	return cmp.Options{cmpopts.EquateEmpty(), cmpopts.IgnoreFields(run.Event{}, "Sealed"), cmp.FilterValues(some, cmp.Comparer(bytes.Equal))}
}

// checkRecord compares records and requires times in UTC.
func checkRecord(t *testing.T, got, expected run.Record) {
	t.Helper()
	checkEqual(t, "record", got, expected)
	for _, when := range []time.Time{got.Created, got.Updated} {
		if when.Location() != time.UTC {
			t.Fatalf("a time of the record is in %s, not in UTC", when.Location())
		}
	}
}

// allEvents reads the events of a run page by page.
func allEvents(ctx context.Context, s run.Log, id string) ([]run.Event, error) {
	const page = 7
	var events []run.Event
	for {
		list, err := s.Events(ctx, id, int64(len(events)), page)
		if err != nil {
			return nil, err
		}
		if len(list) > page {
			return nil, fmt.Errorf("a page of at most %d events has %d", page, len(list))
		}
		events = append(events, list...)
		if len(list) < page {
			return events, nil
		}
	}
}

// checkEvents fails the test unless the events of a run begin at 1, have no gap, and end
// with its record.
func checkEvents(t *testing.T, s run.Journal, id string) []run.Event {
	t.Helper()
	rec, err := s.Run(t.Context(), id)
	requireNoError(t, err)
	events, err := allEvents(t.Context(), s, id)
	requireNoError(t, err)
	for i, e := range events {
		if e.Seq != int64(i)+1 {
			t.Fatalf("event %d of %s has the number %d", i+1, id, e.Seq)
		}
	}
	if rec.Seq != int64(len(events)) {
		t.Fatalf("the record of %s has %d events, the log has %d", id, rec.Seq, len(events))
	}
	return events
}

// isConflict reports whether an error is a conflict.
func isConflict(err error) bool {
	return err != nil && guideway.ErrorCode(err) == guideway.CodeConflict
}

// runConcurrently calls f in n goroutines that start at the same time and returns their
// errors in order.
func runConcurrently(n int, f func(i int) error) []error {
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

// checkOneSucceeds fails the test unless exactly one call succeeded and all others were
// conflicts.
func checkOneSucceeds(t *testing.T, errs []error) {
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
		t.Fatalf("%d of %d calls succeeded, want exactly one: %v", wins, len(errs), errors.Join(errs...))
	}
}
