// Package indextest contains the tests that every checkpoint index must pass.
package indextest

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/blob"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
)

// Index is the interface under test.
type Index interface {
	checkpoint.Index
	Close() error
}

// Opener opens an index. Each call opens the same data again, like another process. The
// suite closes the indexes.
type Opener func(t *testing.T) Index

// Exercise runs the suite. fresh creates an empty index and returns its opener; it is
// called once per subtest, and subtests run in parallel.
func Exercise(t *testing.T, fresh func(t *testing.T) Opener) {
	t.Helper()
	for _, test := range []struct {
		name string
		run  func(t *testing.T, f *fixture)
	}{
		{"an added record is returned, also to another process", comesBack},
		{"a number is assigned only once", numberOnce},
		{"concurrent adds neither lose nor repeat a number", testConcurrentAdds},
		{"a conflicting change has no effect", allOrNone},
		{"a form is swapped only if it is unchanged", testSwaps},
		{"a chain has all bases of a checkpoint", testChains},
		{"a needed base is not removed, and successors get a different parent", testRemoves},
		{"deleted ids are remembered", testDeletedIDs},
		{"a filter matches every field", testFilters},
		{"a list continues after a record", testPaging},
		{"words are stemmed, and never operators", testWords},
		{"words, beginnings of words, parts of identifiers and pairs of characters are found", testSearchCases},
		{"series have totals", testSeriesLists},
		{"fragments are separate from checkpoints", testFragments},
		{"users do not see each other's checkpoints", usersApart},
		{"the audit log is in order", testAudit},
		{"hostile texts are returned unchanged", testHostileWords},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, &fixture{open: fresh(t)})
		})
	}
}

// fixture is the data of one subtest.
type fixture struct{ open Opener }

// openIndex opens an index that is closed after the test.
func (f *fixture) openIndex(t *testing.T) Index {
	t.Helper()
	x := f.open(t)
	t.Cleanup(func() {
		if err := x.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return x
}

// startTime returns the time from which the tests count minutes. It has microseconds.
func startTime() time.Time { return time.Date(2026, 11, 20, 9, 30, 0, 123456000, time.UTC) }

func minuteTime(minutes int) time.Time { return startTime().Add(time.Duration(minutes) * time.Minute) }

// testSeries returns the series of most tests.
func testSeries() checkpoint.SeriesKey { return checkpoint.SeriesKey{User: "ada", Session: "work"} }

// newRecord returns a record of a series.
func newRecord(series checkpoint.SeriesKey, number int64) checkpoint.Record {
	id := fmt.Sprintf("c_%s_%s_%d", series.User, series.Session, number)
	sum := sha256.Sum256([]byte(id))
	r := checkpoint.Record{
		ID: id, SeriesKey: series, Run: "r_" + series.Session, RunSeq: 10 * number, Number: number, Link: number - 1,
		Workflow: "coding-task", Project: "0123456789ab", Agent: "agent", Name: "step " + fmt.Sprint(number),
		Tags: []string{"green", "tested"}, Kind: checkpoint.KindManual, Created: minuteTime(int(number)), Bytes: 1000, Tokens: 250, Sum: sum[:],
		Form: checkpoint.Form{Blob: blobOf(id, "whole"), Stored: 100},
	}
	if number > 1 {
		r.Parent = fmt.Sprintf("c_%s_%s_%d", series.User, series.Session, number-1)
	}
	return r
}

func blobOf(id, form string) blob.Name { return blob.NameOf([]byte(id + form)) }

// addChange returns the change that adds a record with the words of a text.
func addChange(r checkpoint.Record, text string) checkpoint.Change {
	return checkpoint.Change{
		Series: r.SeriesKey, Add: &r, Terms: words.Of(r.Name, strings.Join(r.Tags, " "), r.Workflow, text), At: r.Created, Touch: true,
		Audit: []checkpoint.Entry{{At: r.Created, Action: checkpoint.ActionSave, SeriesKey: r.SeriesKey, Checkpoint: r.ID, Client: "suite"}},
	}
}

// addRecords adds n checkpoints to a series.
func addRecords(t *testing.T, x Index, series checkpoint.SeriesKey, n int) []checkpoint.Record {
	t.Helper()
	var list []checkpoint.Record
	for i := range n {
		r := newRecord(series, int64(i)+1)
		mustSucceed(t, x.Apply(t.Context(), addChange(r, "")))
		list = append(list, r)
	}
	return list
}

func mustSucceed(t *testing.T, err error) {
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

// wantEqual compares two values. It treats nil and empty lists as equal, and ignores positions,
// which the index assigns.
func wantEqual(t *testing.T, what string, got, expected any) {
	t.Helper()
	if diff := cmp.Diff(expected, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(checkpoint.Record{}, "Pos")); diff != "" {
		t.Fatalf("%s (-want +got):\n%s", what, diff)
	}
}

// recordIDs returns the ids of records, in their order.
func recordIDs(list []checkpoint.Record) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.ID)
	}
	return out
}

// wantList fails the test if a filter does not select these records, in order.
func wantList(t *testing.T, x Index, f checkpoint.Filter, expected ...string) {
	t.Helper()
	list, err := x.Checkpoints(t.Context(), f)
	mustSucceed(t, err)
	wantEqual(t, fmt.Sprintf("checkpoints of %+v", f), recordIDs(list), expected)
}
