// Package indextest is the contract of an index of checkpoints as tests. Every
// implementation passes it.
package indextest

import (
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// Index is what the suite exercises.
type Index interface {
	checkpoint.Index
	Close() error
}

// Opener opens an index. Each call opens the same data again, as another process
// would. The suite closes what it opens.
type Opener func(t *testing.T) Index

// Exercise runs the suite. fresh makes an empty index and gives the way to open
// it; it is called once for every subtest, and subtests run in parallel.
func Exercise(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, f *fixture)
	}{
		{"what is added comes back, from another process too", comesBack},
		{"a number is given once", numberOnce},
		{"many at once: no number is lost or given twice", together},
		{"a change that does not fit leaves everything as it was", allOrNone},
		{"a form is swapped only for the one it was", swaps},
		{"a checkpoint's chain is what it is made of", chains},
		{"nothing that is needed is removed, and successors get another parent", removes},
		{"what is deleted is remembered", remembers},
		{"lists choose by every field", filters},
		{"lists go on behind a record", paging},
		{"words are stemmed, and never operators", words},
		{"lines add up", lines},
		{"pieces are beside the checkpoints", pieces},
		{"users do not see each other", usersApart},
		{"the audit log is in order", audits},
		{"hostile texts come back as they were", hostile},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, &fixture{open: fresh(t)})
		})
	}
}

// fixture is the data of one subtest.
type fixture struct{ open Opener }

// index opens an index that is closed with the test.
func (f *fixture) index(t *testing.T) Index {
	t.Helper()
	x := f.open(t)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

// epoch is when the suite's first checkpoint is made. It has microseconds.
func epoch() time.Time { return time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC) }

func at(minutes int) time.Time { return epoch().Add(time.Duration(minutes) * time.Minute) }

// key is the line that most tests work on.
func key() checkpoint.LineKey { return checkpoint.LineKey{User: "ada", Session: "work"} }

// newRecord gives the record of a line's checkpoint.
func newRecord(line checkpoint.LineKey, number int64) checkpoint.Record {
	id := fmt.Sprintf("c_%s_%s_%d", line.User, line.Session, number)
	sum := sha256.Sum256([]byte(id))
	r := checkpoint.Record{
		ID: id, LineKey: line, Run: "r_" + line.Session, RunSeq: 10 * number, Number: number, Link: number - 1,
		Workflow: "coding-task", Project: "0123456789ab", Agent: "agent", Name: "step " + fmt.Sprint(number),
		Tags: []string{"green", "tested"}, Kind: checkpoint.KindManual, Created: at(int(number)), Bytes: 1000, Tokens: 250, Sum: sum[:],
		Form: checkpoint.Form{Blob: blobOf(id, "whole"), Stored: 100},
	}
	if number > 1 {
		r.Parent = fmt.Sprintf("c_%s_%s_%d", line.User, line.Session, number-1)
	}
	return r
}

func blobOf(id, form string) blob.Name { return blob.NameOf([]byte(id + form)) }

// adding is the change that adds a record.
func adding(r checkpoint.Record, text string) checkpoint.Change {
	return checkpoint.Change{
		Line: r.LineKey, Add: &r, Words: text, At: r.Created, Touch: true,
		Audit: []checkpoint.Entry{{At: r.Created, Action: checkpoint.ActionSave, LineKey: r.LineKey, Checkpoint: r.ID, Client: "suite"}},
	}
}

// fill adds so many checkpoints to a line.
func fill(t *testing.T, x Index, line checkpoint.LineKey, n int) []checkpoint.Record {
	t.Helper()
	var list []checkpoint.Record
	for i := range n {
		r := newRecord(line, int64(i)+1)
		must(t, x.Apply(t.Context(), adding(r, "")))
		list = append(list, r)
	}
	return list
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%v (%s)", err, guideway.ErrorCode(err))
	}
}

func wantCode(t *testing.T, err error, code guideway.Code, what string) {
	t.Helper()
	if got := guideway.ErrorCode(err); got != code {
		t.Fatalf("%s: got the code %q (%v), want %q", what, got, err, code)
	}
}

// want compares, taking nil and empty lists as the same, and without places in
// lists: those are the index's.
func want(t *testing.T, what string, got, expected any) {
	t.Helper()
	if diff := cmp.Diff(expected, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(checkpoint.Record{}, "Pos")); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// ids gives the ids of records, in their order.
func ids(list []checkpoint.Record) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.ID)
	}
	return out
}

// wantList ends the test where a filter does not choose these records, in order.
func wantList(t *testing.T, x Index, f checkpoint.Filter, expected ...string) {
	t.Helper()
	list, err := x.Checkpoints(t.Context(), f)
	must(t, err)
	want(t, fmt.Sprintf("checkpoints of %+v", f), ids(list), expected)
}
