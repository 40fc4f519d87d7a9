package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/run"
)

// findingTests are about lists of runs.
func findingTests() []subtest {
	return []subtest{
		{"a filter chooses by every field", filters},
		{"lists begin with the last changed", newestFirst},
		{"a list goes on behind its last record", paging},
		{"users do not see each other's runs", usersApart},
	}
}

// idsOf gives the ids of records, in their order.
func idsOf(list []run.Record) []string {
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// wantRuns ends the test where a filter does not choose these runs, in order.
func wantRuns(t *testing.T, s run.Index, f run.Filter, expected ...string) {
	t.Helper()
	list, err := s.Runs(t.Context(), f)
	must(t, err)
	want(t, fmt.Sprintf("runs of %+v", f), idsOf(list), expected)
}

// fill makes runs of different kinds, each changed a minute after the one
// before.
func fill(t *testing.T, s run.Journal) {
	t.Helper()
	for i, change := range []func(r *run.Record){
		func(*run.Record) {},
		func(r *run.Record) { r.User = "bob" },
		func(r *run.Record) { r.Project = run.Project{ID: "ba9876543210", Path: "/work/other"} },
		func(r *run.Record) { r.Workflow = "review" },
		func(r *run.Record) { r.Status, r.Person = engine.StatusWaiting, true },
		func(r *run.Record) { r.Status = engine.StatusWaiting },
		func(r *run.Record) { r.Status = engine.StatusCompleted },
		func(r *run.Record) { r.Status = engine.StatusAborted },
	} {
		r := newRecord(fmt.Sprintf("r_%d", i), "ada")
		change(&r)
		r.Updated = at(i)
		create(t, s, r)
	}
}

func filters(t *testing.T, f *fixture) {
	s := f.open(t)
	fill(t, s)
	wantRuns(t, s, run.Filter{}, "r_7", "r_6", "r_5", "r_4", "r_3", "r_2", "r_1", "r_0")
	wantRuns(t, s, run.Filter{User: "bob"}, "r_1")
	wantRuns(t, s, run.Filter{Project: "ba9876543210"}, "r_2")
	wantRuns(t, s, run.Filter{Workflow: "review"}, "r_3")
	wantRuns(t, s, run.Filter{Person: true}, "r_4")
	wantRuns(t, s, run.Filter{Statuses: []engine.Status{engine.StatusWaiting}}, "r_5", "r_4")
	wantRuns(t, s, run.Filter{Statuses: []engine.Status{engine.StatusAborted, engine.StatusCompleted}}, "r_7", "r_6")
	wantRuns(t, s, run.Filter{Since: at(6)}, "r_7", "r_6")
	wantRuns(t, s, run.Filter{Until: at(2)}, "r_1", "r_0") // exclusively
	wantRuns(t, s, run.Filter{Since: at(2), Until: at(2).Add(time.Microsecond)}, "r_2")
	wantRuns(t, s, run.Filter{User: "ada", Limit: 2}, "r_7", "r_6")
	wantRuns(t, s, run.Filter{User: "ada", Project: "0123456789ab", Workflow: "coding-task", Since: at(1), Statuses: []engine.Status{engine.StatusWaiting}, Person: true}, "r_4")
	wantRuns(t, s, run.Filter{User: "bob", Person: true})
	wantRuns(t, s, run.Filter{User: "nobody"})
}

func newestFirst(t *testing.T, f *fixture) {
	s := f.open(t)
	fill(t, s)
	r, err := s.Run(t.Context(), "r_3")
	must(t, err)
	r.Updated = at(60)
	grow(t, s, r, "again")
	wantRuns(t, s, run.Filter{User: "ada", Limit: 3}, "r_3", "r_7", "r_6")
	list, err := s.Runs(t.Context(), run.Filter{Limit: 1})
	must(t, err)
	got, err := s.Run(t.Context(), "r_3")
	must(t, err)
	wantRecord(t, list[0], got) // lists give whole records
}

func paging(t *testing.T, f *fixture) {
	const total, page = 130, 9
	s, ctx := f.open(t), t.Context()
	for i := range total {
		r := newRecord(fmt.Sprintf("r_%03d", i), "ada")
		r.Updated = at(i / 4) // several at the same time
		create(t, s, r)
	}
	list, err := s.Runs(ctx, run.Filter{})
	must(t, err)
	want(t, "runs without a limit", len(list), 100)
	filter, seen := run.Filter{User: "ada", Limit: page}, []run.Record(nil)
	for len(seen) <= total {
		list, err := s.Runs(ctx, filter)
		must(t, err)
		seen = append(seen, list...)
		if len(list) < page {
			break
		}
		filter.Before = &list[len(list)-1]
	}
	if !slices.IsSortedFunc(seen, func(a, b run.Record) int { return b.Updated.Compare(a.Updated) }) {
		t.Error("the pages together are not in order")
	}
	ids := idsOf(seen)
	slices.Sort(ids)
	want(t, "runs on all pages", len(ids), total)
	want(t, "different runs on all pages", len(slices.Compact(ids)), total)
}

func usersApart(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	for _, user := range []string{"ada", "bob", "ADA", "ada ", "a%", ""} {
		r := newRecord("r_of_"+user, user)
		r.Goal = "mend the shared gate"
		create(t, s, r)
	}
	for _, user := range []string{"ada", "bob", "ADA", "ada ", "a%"} {
		wantRuns(t, s, run.Filter{User: user}, "r_of_"+user)
		hits, err := s.Search(ctx, run.Search{Filter: run.Filter{User: user}, Words: []string{"gate"}})
		must(t, err)
		if len(hits) != 1 || hits[0].Record.User != user {
			t.Fatalf("%q finds %+v", user, hits)
		}
		projects, err := s.Projects(ctx, user)
		must(t, err)
		if len(projects) != 1 || projects[0].Runs != 1 {
			t.Fatalf("%q has the projects %+v", user, projects)
		}
	}
}
