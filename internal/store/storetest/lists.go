package storetest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/engine"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// listTests cover lists of runs.
func listTests() []subtest {
	return []subtest{
		{"a filter matches every field", testFilters},
		{"lists begin with the last changed run", testNewestFirst},
		{"a page continues after the last record of the previous one", testPaging},
		{"users do not see each other's runs", testUserIsolation},
	}
}

// idsOf returns the ids of records in their order.
func idsOf(list []run.Record) []string {
	var ids []string
	for _, r := range list {
		ids = append(ids, r.ID)
	}
	return ids
}

// checkRunList fails the test unless a filter matches these runs in this order.
func checkRunList(t *testing.T, s run.Index, f run.Filter, expected ...string) {
	t.Helper()
	list, err := s.Runs(t.Context(), f)
	requireNoError(t, err)
	checkEqual(t, fmt.Sprintf("runs of %+v", f), idsOf(list), expected)
}

// createRuns creates runs of different kinds, each changed a minute after the previous one.
func createRuns(t *testing.T, s run.Journal) {
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
		r.Updated = minutesAfter(i)
		createRun(t, s, r)
	}
}

func testFilters(t *testing.T, f *fixture) {
	s := f.openStore(t)
	createRuns(t, s)
	checkRunList(t, s, run.Filter{}, "r_7", "r_6", "r_5", "r_4", "r_3", "r_2", "r_1", "r_0")
	checkRunList(t, s, run.Filter{Users: []string{"bob", "eve"}}, "r_1")
	checkRunList(t, s, run.Filter{IDs: []string{"r_1", "r_3", "r_none"}}, "r_3", "r_1")
	checkRunList(t, s, run.Filter{User: "bob"}, "r_1")
	checkRunList(t, s, run.Filter{Project: "ba9876543210"}, "r_2")
	checkRunList(t, s, run.Filter{Workflow: "review"}, "r_3")
	checkRunList(t, s, run.Filter{Person: true}, "r_4")
	checkRunList(t, s, run.Filter{Statuses: []engine.Status{engine.StatusWaiting}}, "r_5", "r_4")
	checkRunList(t, s, run.Filter{Statuses: []engine.Status{engine.StatusAborted, engine.StatusCompleted}}, "r_7", "r_6")
	checkRunList(t, s, run.Filter{Since: minutesAfter(6)}, "r_7", "r_6")
	checkRunList(t, s, run.Filter{Until: minutesAfter(2)}, "r_1", "r_0") // Until is exclusive
	checkRunList(t, s, run.Filter{Since: minutesAfter(2), Until: minutesAfter(2).Add(time.Microsecond)}, "r_2")
	checkRunList(t, s, run.Filter{User: "ada", Limit: 2}, "r_7", "r_6")
	checkRunList(t, s, run.Filter{User: "ada", Project: "0123456789ab", Workflow: "coding-task", Since: minutesAfter(1), Statuses: []engine.Status{engine.StatusWaiting}, Person: true}, "r_4")
	checkRunList(t, s, run.Filter{User: "bob", Person: true})
	checkRunList(t, s, run.Filter{User: "nobody"})
}

func testNewestFirst(t *testing.T, f *fixture) {
	s := f.openStore(t)
	createRuns(t, s)
	r, err := s.Run(t.Context(), "r_3")
	requireNoError(t, err)
	r.Updated = minutesAfter(60)
	appendEvent(t, s, r, "again")
	checkRunList(t, s, run.Filter{User: "ada", Limit: 3}, "r_3", "r_7", "r_6")
	list, err := s.Runs(t.Context(), run.Filter{Limit: 1})
	requireNoError(t, err)
	got, err := s.Run(t.Context(), "r_3")
	requireNoError(t, err)
	checkRecord(t, list[0], got) // lists return complete records
}

func testPaging(t *testing.T, f *fixture) {
	const total, page = 130, 9
	s, ctx := f.openStore(t), t.Context()
	for i := range total {
		r := newRecord(fmt.Sprintf("r_%03d", i), "ada")
		r.Updated = minutesAfter(i / 4) // several runs per timestamp
		createRun(t, s, r)
	}
	list, err := s.Runs(ctx, run.Filter{})
	requireNoError(t, err)
	checkEqual(t, "runs without a limit", len(list), 100)
	filter, seen := run.Filter{User: "ada", Limit: page}, []run.Record(nil)
	for len(seen) <= total {
		list, err := s.Runs(ctx, filter)
		requireNoError(t, err)
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
	checkEqual(t, "runs on all pages", len(ids), total)
	checkEqual(t, "different runs on all pages", len(slices.Compact(ids)), total)
}

func testUserIsolation(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	for _, user := range []string{"ada", "bob", "ADA", "ada ", "a%", ""} {
		r := newRecord("r_of_"+user, user)
		r.Goal = "repair the shared gate"
		createRun(t, s, r)
	}
	for _, user := range []string{"ada", "bob", "ADA", "ada ", "a%"} {
		checkRunList(t, s, run.Filter{User: user}, "r_of_"+user)
		hits, err := s.Search(ctx, run.Search{Filter: run.Filter{User: user}, Query: words.Parse("gate")})
		requireNoError(t, err)
		if len(hits) != 1 || hits[0].Record.User != user {
			t.Fatalf("%q finds %+v", user, hits)
		}
		projects, err := s.Projects(ctx, user)
		requireNoError(t, err)
		if len(projects) != 1 || projects[0].Runs != 1 {
			t.Fatalf("%q has the projects %+v", user, projects)
		}
	}
}
