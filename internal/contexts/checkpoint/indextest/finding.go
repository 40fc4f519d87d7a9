package indextest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/testutil/searchcases"
)

func testFilters(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	var all []checkpoint.Record
	for i, change := range []func(r *checkpoint.Record){
		func(*checkpoint.Record) {},
		func(r *checkpoint.Record) { r.Workflow = "review" },
		func(r *checkpoint.Record) { r.Project = "ba9876543210" },
		func(r *checkpoint.Record) { r.Tags = []string{"red"} },
		func(r *checkpoint.Record) { r.Tags = []string{"green", "red"} },
		func(r *checkpoint.Record) { r.Run = "" },
		func(r *checkpoint.Record) { r.Kind = checkpoint.KindAuto },
	} {
		r := newRecord(testSeries(), int64(i)+1)
		change(&r)
		mustSucceed(t, x.Apply(t.Context(), addChange(r, "")))
		all = append(all, r)
	}
	other := newRecord(checkpoint.SeriesKey{User: "ada", Session: "play"}, 1)
	mustSucceed(t, x.Apply(t.Context(), addChange(other, "")))
	id := func(list ...int) []string {
		var out []string
		for _, i := range list {
			out = append(out, all[i].ID)
		}
		return out
	}
	wantList(t, x, checkpoint.Filter{}, append([]string{other.ID}, id(6, 5, 4, 3, 2, 1, 0)...)...)
	wantList(t, x, checkpoint.Filter{Session: "play"}, other.ID)
	wantList(t, x, checkpoint.Filter{User: "ada", Workflow: "review"}, id(1)...)
	wantList(t, x, checkpoint.Filter{Project: "ba9876543210"}, id(2)...)
	wantList(t, x, checkpoint.Filter{Tags: []string{"red"}}, id(4, 3)...)
	wantList(t, x, checkpoint.Filter{Tags: []string{"green", "red"}}, id(4)...)
	wantList(t, x, checkpoint.Filter{Run: "r_work", Limit: 2}, id(6, 4)...)
	wantList(t, x, checkpoint.Filter{Session: "work", Since: minuteTime(6)}, id(6, 5)...)
	wantList(t, x, checkpoint.Filter{Session: "work", Until: minuteTime(2)}, id(0)...) // Until is exclusive
	wantList(t, x, checkpoint.Filter{Parent: all[0].ID}, id(1)...)
	wantList(t, x, checkpoint.Filter{Heads: true}, other.ID, all[6].ID)
	wantList(t, x, checkpoint.Filter{User: "ada", Session: "work", Workflow: "coding-task", Project: "0123456789ab", Tags: []string{"tested"}, Since: minuteTime(6), Until: minuteTime(7)}, id(5)...)
	wantList(t, x, checkpoint.Filter{User: "nobody"})
}

func testPaging(t *testing.T, f *fixture) {
	const total, page = 130, 9
	x := f.openIndex(t)
	for i := range total {
		series := checkpoint.SeriesKey{User: "ada", Session: fmt.Sprintf("s%d", i%13)}
		r := newRecord(series, int64(i/13)+1)
		r.Created = minuteTime(i / 4) // several records have the same time
		mustSucceed(t, x.Apply(t.Context(), addChange(r, "common")))
	}
	list, err := x.Checkpoints(t.Context(), checkpoint.Filter{})
	mustSucceed(t, err)
	wantEqual(t, "checkpoints without a limit", len(list), 100)
	for name, f := range map[string]checkpoint.Filter{"plain": {User: "ada"}, "words": {User: "ada", Query: words.Parse("common")}} {
		f.Limit = page
		var seen []string
		for len(seen) <= total {
			list, err := x.Checkpoints(t.Context(), f)
			mustSucceed(t, err)
			seen = append(seen, recordIDs(list)...)
			if len(list) < page {
				break
			}
			last := list[len(list)-1]
			f.Before = &checkpoint.Cursor{Pos: last.Pos, ID: last.ID}
		}
		slices.Sort(seen)
		wantEqual(t, name+": checkpoints on all pages", len(seen), total)
		wantEqual(t, name+": different checkpoints on all pages", len(slices.Compact(seen)), total)
	}
}

func testWords(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	texts := []string{
		"we decided to refactor the authentication of the gateway",
		"the tests of the parser are failing again",
		"plain text about caching",
	}
	var list []string
	for i, text := range texts {
		r := newRecord(testSeries(), int64(i)+1)
		r.Name, r.Tags = fmt.Sprint("named", i), []string{fmt.Sprint("tagged", i)}
		mustSucceed(t, x.Apply(t.Context(), addChange(r, text)))
		list = append(list, r.ID)
	}
	hidden := newRecord(testSeries(), 4)
	hidden.Name = "caching in secret"
	c := addChange(hidden, "caching in secret")
	c.Terms = nil
	mustSucceed(t, x.Apply(t.Context(), c))
	look := func(any bool, query ...string) checkpoint.Filter {
		return checkpoint.Filter{User: "ada", Query: words.Parse(strings.Join(query, " ")), Any: any}
	}
	wantList(t, x, look(false, "refactoring"), list[0])
	wantList(t, x, look(false, "REFACTOR", "gateways"), list[0])
	wantList(t, x, look(false, "refactor", "parser"))
	wantList(t, x, look(false, "failed", "test"), list[1])
	wantList(t, x, look(false, "named2"), list[2])
	wantList(t, x, look(false, "tagged1"), list[1])
	wantList(t, x, look(false, "coding"), list[2], list[1], list[0]) // the word occurs in the workflow
	wantList(t, x, look(false, "cache"), list[2])
	wantList(t, x, look(false, "zeppelin"))
	wantList(t, x, look(true, "authentication", "gateway", "parser"), list[0], list[1])
	wantList(t, x, look(true, "zeppelin", "cache"), list[2])
	for _, hostile := range []string{`"`, `""`, "AND", "OR", "NOT", "NEAR(", "*", "text:", "scope", `a" OR "b`, "'; drop table checkpoints;--", "&|!", "(", "\x00", "ünï", strings.Repeat("x", 5000)} {
		for _, any := range []bool{false, true} {
			if _, err := x.Checkpoints(t.Context(), look(any, hostile)); err != nil {
				t.Errorf("%.20q: %v", hostile, err)
			}
		}
	}
	// A removed record is not found.
	gone, err := x.Checkpoint(t.Context(), list[2])
	mustSucceed(t, err)
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: testSeries(), Remove: removals(gone), At: minuteTime(9)}))
	wantList(t, x, look(false, "cache"))
}

func testSearchCases(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	ids := map[string]string{}
	for name, text := range searchcases.Texts() {
		r := newRecord(checkpoint.SeriesKey{User: "ada", Session: name}, 1)
		ids[name] = r.ID
		mustSucceed(t, x.Apply(t.Context(), addChange(r, text)))
	}
	for _, c := range searchcases.Cases() {
		list, err := x.Checkpoints(t.Context(), checkpoint.Filter{User: "ada", Query: words.Parse(c.Query)})
		mustSucceed(t, err)
		var want []string
		for _, name := range c.Found {
			want = append(want, ids[name])
		}
		slices.Sort(want)
		wantEqual(t, "what "+c.Query+" finds", slices.Sorted(slices.Values(recordIDs(list))), want)
	}
	// A whole word ranks before the beginning of a word.
	whole := newRecord(checkpoint.SeriesKey{User: "ada", Session: "whole"}, 1)
	mustSucceed(t, x.Apply(t.Context(), addChange(whole, "auth")))
	newer := newRecord(checkpoint.SeriesKey{User: "ada", Session: "newer"}, 1)
	mustSucceed(t, x.Apply(t.Context(), addChange(newer, "authority")))
	list, err := x.Checkpoints(t.Context(), checkpoint.Filter{User: "ada", Query: words.Parse("auth zeppelin"), Any: true})
	mustSucceed(t, err)
	if len(list) != 3 || list[0].ID != whole.ID {
		t.Errorf("the best match is not the whole word: %v", recordIDs(list))
	}
}

func testSeriesLists(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	addRecords(t, x, testSeries(), 3)
	play := checkpoint.SeriesKey{User: "ada", Session: "play"}
	addRecords(t, x, play, 1)
	got, err := x.Series(t.Context(), testSeries())
	mustSucceed(t, err)
	work := checkpoint.Series{
		SeriesKey: testSeries(), Run: "r_work", Workflow: "coding-task", Project: "0123456789ab", Last: 3, Count: 3, Stored: 300, Bytes: 3000, Touched: minuteTime(3),
	}
	wantEqual(t, "the series", got, work)
	totals, err := x.Totals(t.Context())
	mustSucceed(t, err)
	wantEqual(t, "the totals", totals, checkpoint.Totals{Series: 2, Count: 4, Bytes: 4000, Stored: 400})
	list, err := x.ListSeries(t.Context(), checkpoint.SeriesFilter{})
	mustSucceed(t, err)
	if len(list) != 2 || list[0].Session != "play" || list[1].Session != "work" {
		t.Fatalf("the series are %+v", list)
	}
	// A touch moves a series to the end of the list. A touch with an earlier time does not
	// move it.
	for _, when := range []time.Time{minuteTime(60), minuteTime(50)} {
		mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: play, At: when, Touch: true}))
	}
	mustSucceed(t, x.Apply(t.Context(), checkpoint.Change{Series: checkpoint.SeriesKey{User: "ada", Session: "none"}, At: minuteTime(70), Touch: true}))
	list, err = x.ListSeries(t.Context(), checkpoint.SeriesFilter{User: "ada"})
	mustSucceed(t, err)
	if len(list) != 2 || list[1].Session != "play" || !list[1].Touched.Equal(minuteTime(60)) {
		t.Fatalf("the series are %+v", list)
	}
	list, err = x.ListSeries(t.Context(), checkpoint.SeriesFilter{Before: minuteTime(60), Limit: 5})
	mustSucceed(t, err)
	wantEqual(t, "series before", list, []checkpoint.Series{work})
	none, err := x.Series(t.Context(), checkpoint.SeriesKey{User: "ada", Session: "none"})
	mustSucceed(t, err)
	wantEqual(t, "a missing series", none, checkpoint.Series{SeriesKey: checkpoint.SeriesKey{User: "ada", Session: "none"}})
}

func usersApart(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	users := []string{"ada", "bob", "ADA", "ada ", "a%", "a_a"}
	for _, user := range users {
		r := newRecord(checkpoint.SeriesKey{User: user, Session: "work"}, 1)
		mustSucceed(t, x.Apply(t.Context(), addChange(r, "shared word")))
	}
	for _, user := range users {
		id := newRecord(checkpoint.SeriesKey{User: user, Session: "work"}, 1).ID
		wantList(t, x, checkpoint.Filter{User: user}, id)
		wantList(t, x, checkpoint.Filter{User: user, Query: words.Parse("shared")}, id)
		series, err := x.Series(t.Context(), checkpoint.SeriesKey{User: user, Session: "work"})
		mustSucceed(t, err)
		wantEqual(t, "checkpoints of "+user, series.Count, 1)
		notes, err := x.Notes(t.Context(), user, 10)
		mustSucceed(t, err)
		if len(notes) != 1 || notes[0].User != user {
			t.Fatalf("%q has the notes %+v", user, notes)
		}
	}
	// A change of one series does not affect another.
	c := checkpoint.Change{Series: checkpoint.SeriesKey{User: "bob", Session: "work"}, Remove: removals(newRecord(testSeries(), 1)), At: minuteTime(1)}
	if err := x.Apply(t.Context(), c); err == nil {
		t.Error("another user's checkpoint was removed")
	}
}

func testAudit(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	addRecords(t, x, testSeries(), 2)
	load := checkpoint.Entry{At: minuteTime(30), Action: checkpoint.ActionLoad, SeriesKey: testSeries(), Checkpoint: "c_1", Client: "suite", Detail: "two\nlines"}
	mustSucceed(t, x.Note(t.Context(), []checkpoint.Entry{load}))
	mustSucceed(t, x.Note(t.Context(), nil))
	notes, err := f.openIndex(t).Notes(t.Context(), "ada", 2)
	mustSucceed(t, err)
	wantEqual(t, "the last notes", notes, []checkpoint.Entry{load, addChange(newRecord(testSeries(), 2), "").Audit[0]})
}

func testHostileWords(t *testing.T, f *fixture) {
	x := f.openIndex(t)
	for i, text := range []string{"", "ünïcödé 日本語 🙂", `quo"te ' back\slash`, "new\nline\ttab", "$1 %s ? ;--", strings.Repeat("long ", 40)} {
		series := checkpoint.SeriesKey{User: "u" + text, Session: "s" + text}
		r := newRecord(series, 1)
		r.ID = fmt.Sprint("c_hostile_", i)
		r.Workflow, r.Project, r.Agent, r.Name, r.Tags = text, text, text, text, []string{"t" + text}
		mustSucceed(t, x.Apply(t.Context(), addChange(r, text)))
		got, err := x.Checkpoint(t.Context(), r.ID)
		mustSucceed(t, err)
		wantEqual(t, fmt.Sprintf("the record with %.20q", text), got, r)
		wantList(t, x, checkpoint.Filter{User: series.User, Session: series.Session, Tags: r.Tags}, r.ID)
	}
}
