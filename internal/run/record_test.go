package run_test

import (
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestEveryFieldOfARecordIsVerified checks that an edit of any field of a record that a
// person sees is found, and that the report names the field.
func TestEveryFieldOfARecordIsVerified(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		field string
		edit  func(r *run.Record)
	}{
		"the goal":                {"goal", func(r *run.Record) { r.Goal += "x" }},
		"the client":              {"client", func(r *run.Record) { r.Client += "x" }},
		"the name":                {"workflow's name", func(r *run.Record) { r.Name += "x" }},
		"the version":             {"version", func(r *run.Record) { r.Version += "x" }},
		"the project":             {"project", func(r *run.Record) { r.Project.Branch += "x" }},
		"the parent":              {"parent", func(r *run.Record) { r.Parent += "x" }},
		"the event of the parent": {"parent", func(r *run.Record) { r.ParentSeq++ }},
		"the start time":          {"start time", func(r *run.Record) { r.Created = r.Created.Add(time.Millisecond) }},
		"the last change":         {"time of the last change", func(r *run.Record) { r.Updated = r.Updated.Add(time.Millisecond) }},
		"the status":              {"status", func(r *run.Record) { r.Status = engine.StatusAborted }},
		"the kind of position":    {"position", func(r *run.Record) { r.Kind = engine.PositionContext }},
		"the step":                {"position", func(r *run.Record) { r.Step += "x" }},
		"the title of the step":   {"position", func(r *run.Record) { r.Title += "x" }},
		"who must answer":         {"position", func(r *run.Record) { r.Person = !r.Person }},
		"the completed steps":     {"number of completed steps", func(r *run.Record) { r.Done++ }},
	} {
		b := newTestBench(t)
		id := startRun(t, b.Service, "guarded", nil).RunID
		r := b.journal.records[id]
		tt.edit(&r)
		b.journal.records[id] = r
		report, err := b.newService(t).Verify(t.Context(), "")
		if err != nil {
			t.Fatal(err)
		}
		if len(report.Faults) != 1 || report.Faults[0].Kind != run.FaultRecord || !strings.Contains(report.Faults[0].Message, "the "+tt.field+" in the record") {
			t.Errorf("%s: %+v", name, report.Faults)
		}
	}
}

// TestAClockThatGoesBack checks that the events of a run are in the order of their times,
// although the clock is set back: a later event has no earlier time, and the run verifies.
func TestAClockThatGoesBack(t *testing.T) {
	t.Parallel()
	b := newTestBench(t)
	a := startRun(t, b.Service, "guarded", nil)
	before := b.journal.records[a.RunID].Updated
	b.mu.Lock()
	b.now = b.now.Add(-24 * time.Hour)
	b.mu.Unlock()
	a = mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "PLAN"})
	if at := b.journal.records[a.RunID].Updated; at.Before(before) {
		t.Errorf("the last change was at %s, and is at %s", before, at)
	}
	last := time.Time{}
	for _, e := range b.journal.events[a.RunID] {
		if e.At.Before(last) {
			t.Errorf("event %d is at %s, before %s", e.Seq, e.At, last)
		}
		last = e.At
	}
	b.mu.Lock()
	b.now = b.now.Add(48 * time.Hour)
	now := b.now
	b.mu.Unlock()
	mustContinue(t, b.Service, run.ContinueRequest{Handle: a.Handle, Output: "approve it"})
	if at := b.journal.records[a.RunID].Updated; !at.After(now) {
		t.Errorf("after the clock is right again, the last change is at %s, not after %s", at, now)
	}
	if report, err := b.newService(t).Verify(t.Context(), ""); err != nil || len(report.Faults) > 0 {
		t.Errorf("the run does not verify: %+v, %v", report, err)
	}
}
