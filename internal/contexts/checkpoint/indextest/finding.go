package indextest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

func filters(t *testing.T, f *fixture) {
	x := f.index(t)
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
		r := newRecord(key(), int64(i)+1)
		change(&r)
		must(t, x.Apply(t.Context(), adding(r, "")))
		all = append(all, r)
	}
	other := newRecord(checkpoint.LineKey{User: "ada", Session: "play"}, 1)
	must(t, x.Apply(t.Context(), adding(other, "")))
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
	wantList(t, x, checkpoint.Filter{Session: "work", Since: at(6)}, id(6, 5)...)
	wantList(t, x, checkpoint.Filter{Session: "work", Until: at(2)}, id(0)...) // exclusively
	wantList(t, x, checkpoint.Filter{Parent: all[0].ID}, id(1)...)
	wantList(t, x, checkpoint.Filter{Heads: true}, other.ID, all[6].ID)
	wantList(t, x, checkpoint.Filter{User: "ada", Session: "work", Workflow: "coding-task", Project: "0123456789ab", Tags: []string{"tested"}, Since: at(6), Until: at(7)}, id(5)...)
	wantList(t, x, checkpoint.Filter{User: "nobody"})
}

func paging(t *testing.T, f *fixture) {
	const total, page = 130, 9
	x := f.index(t)
	for i := range total {
		line := checkpoint.LineKey{User: "ada", Session: fmt.Sprintf("s%d", i%13)}
		r := newRecord(line, int64(i/13)+1)
		r.Created = at(i / 4) // several at the same time
		must(t, x.Apply(t.Context(), adding(r, "common")))
	}
	list, err := x.Checkpoints(t.Context(), checkpoint.Filter{})
	must(t, err)
	want(t, "checkpoints without a limit", len(list), 100)
	for name, f := range map[string]checkpoint.Filter{"plain": {User: "ada"}, "words": {User: "ada", Words: []string{"common"}}} {
		f.Limit = page
		var seen []string
		for len(seen) <= total {
			list, err := x.Checkpoints(t.Context(), f)
			must(t, err)
			seen = append(seen, ids(list)...)
			if len(list) < page {
				break
			}
			last := list[len(list)-1]
			f.Before = &checkpoint.Cursor{Pos: last.Pos, ID: last.ID}
		}
		slices.Sort(seen)
		want(t, name+": checkpoints on all pages", len(seen), total)
		want(t, name+": different ones on all pages", len(slices.Compact(seen)), total)
	}
}

func words(t *testing.T, f *fixture) {
	x := f.index(t)
	texts := []string{
		"we decided to refactor the authentication of the gateway",
		"the tests of the parser are failing again",
		"plain text about caching",
	}
	var list []string
	for i, text := range texts {
		r := newRecord(key(), int64(i)+1)
		r.Name, r.Tags = fmt.Sprint("named", i), []string{fmt.Sprint("tagged", i)}
		must(t, x.Apply(t.Context(), adding(r, text)))
		list = append(list, r.ID)
	}
	hidden := newRecord(key(), 4)
	hidden.Name = "caching in secret"
	c := adding(hidden, "caching in secret")
	c.NoWords = true
	must(t, x.Apply(t.Context(), c))
	look := func(any bool, query ...string) checkpoint.Filter {
		return checkpoint.Filter{User: "ada", Words: query, Any: any}
	}
	wantList(t, x, look(false, "refactoring"), list[0])
	wantList(t, x, look(false, "REFACTOR", "gateways"), list[0])
	wantList(t, x, look(false, "refactor", "parser"))
	wantList(t, x, look(false, "failed", "test"), list[1])
	wantList(t, x, look(false, "named2"), list[2])
	wantList(t, x, look(false, "tagged1"), list[1])
	wantList(t, x, look(false, "coding"), list[2], list[1], list[0]) // of the workflow
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
	// What is removed is found no more.
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: key(), Remove: []string{list[2]}, At: at(9)}))
	wantList(t, x, look(false, "cache"))
}

func lines(t *testing.T, f *fixture) {
	x := f.index(t)
	fill(t, x, key(), 3)
	play := checkpoint.LineKey{User: "ada", Session: "play"}
	fill(t, x, play, 1)
	got, err := x.Line(t.Context(), key())
	must(t, err)
	work := checkpoint.Line{
		LineKey: key(), Run: "r_work", Workflow: "coding-task", Project: "0123456789ab", Last: 3, Count: 3, Stored: 300, Bytes: 3000, Touched: at(3),
	}
	want(t, "the line", got, work)
	totals, err := x.Totals(t.Context())
	must(t, err)
	want(t, "the totals", totals, checkpoint.Totals{Lines: 2, Count: 4, Bytes: 4000, Stored: 400})
	list, err := x.Lines(t.Context(), checkpoint.LineFilter{})
	must(t, err)
	if len(list) != 2 || list[0].Session != "play" || list[1].Session != "work" {
		t.Fatalf("the lines are %+v", list)
	}
	// A touch moves a line to the end, but never back.
	for _, when := range []time.Time{at(60), at(50)} {
		must(t, x.Apply(t.Context(), checkpoint.Change{Line: play, At: when, Touch: true}))
	}
	must(t, x.Apply(t.Context(), checkpoint.Change{Line: checkpoint.LineKey{User: "ada", Session: "none"}, At: at(70), Touch: true}))
	list, err = x.Lines(t.Context(), checkpoint.LineFilter{User: "ada"})
	must(t, err)
	if len(list) != 2 || list[1].Session != "play" || !list[1].Touched.Equal(at(60)) {
		t.Fatalf("the lines are %+v", list)
	}
	list, err = x.Lines(t.Context(), checkpoint.LineFilter{Before: at(60), Limit: 5})
	must(t, err)
	want(t, "lines before", list, []checkpoint.Line{work})
	none, err := x.Line(t.Context(), checkpoint.LineKey{User: "ada", Session: "none"})
	must(t, err)
	want(t, "a line that is not there", none, checkpoint.Line{LineKey: checkpoint.LineKey{User: "ada", Session: "none"}})
}

func usersApart(t *testing.T, f *fixture) {
	x := f.index(t)
	users := []string{"ada", "bob", "ADA", "ada ", "a%", "a_a"}
	for _, user := range users {
		r := newRecord(checkpoint.LineKey{User: user, Session: "work"}, 1)
		must(t, x.Apply(t.Context(), adding(r, "shared word")))
	}
	for _, user := range users {
		id := newRecord(checkpoint.LineKey{User: user, Session: "work"}, 1).ID
		wantList(t, x, checkpoint.Filter{User: user}, id)
		wantList(t, x, checkpoint.Filter{User: user, Words: []string{"shared"}}, id)
		line, err := x.Line(t.Context(), checkpoint.LineKey{User: user, Session: "work"})
		must(t, err)
		want(t, "checkpoints of "+user, line.Count, 1)
		notes, err := x.Notes(t.Context(), user, 10)
		must(t, err)
		if len(notes) != 1 || notes[0].User != user {
			t.Fatalf("%q has the notes %+v", user, notes)
		}
	}
	// A change of one line does not reach into another.
	c := checkpoint.Change{Line: checkpoint.LineKey{User: "bob", Session: "work"}, Remove: []string{newRecord(key(), 1).ID}, At: at(1)}
	if err := x.Apply(t.Context(), c); err == nil {
		t.Error("another user's checkpoint was removed")
	}
}

func audits(t *testing.T, f *fixture) {
	x := f.index(t)
	fill(t, x, key(), 2)
	load := checkpoint.Entry{At: at(30), Action: checkpoint.ActionLoad, LineKey: key(), Checkpoint: "c_1", Client: "suite", Detail: "two\nlines"}
	must(t, x.Note(t.Context(), []checkpoint.Entry{load}))
	must(t, x.Note(t.Context(), nil))
	notes, err := f.index(t).Notes(t.Context(), "ada", 2)
	must(t, err)
	want(t, "the last notes", notes, []checkpoint.Entry{load, adding(newRecord(key(), 2), "").Audit[0]})
}

func hostile(t *testing.T, f *fixture) {
	x := f.index(t)
	for i, text := range []string{"", "ünïcödé 日本語 🙂", `quo"te ' back\slash`, "new\nline\ttab", "$1 %s ? ;--", strings.Repeat("long ", 40)} {
		line := checkpoint.LineKey{User: "u" + text, Session: "s" + text}
		r := newRecord(line, 1)
		r.ID = fmt.Sprint("c_hostile_", i)
		r.Workflow, r.Project, r.Agent, r.Name, r.Tags = text, text, text, text, []string{"t" + text}
		must(t, x.Apply(t.Context(), adding(r, text)))
		got, err := x.Checkpoint(t.Context(), r.ID)
		must(t, err)
		want(t, fmt.Sprintf("the record with %.20q", text), got, r)
		wantList(t, x, checkpoint.Filter{User: line.User, Session: line.Session, Tags: r.Tags}, r.ID)
	}
}
