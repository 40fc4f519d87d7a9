package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/session"
)

// documentTests are about session documents.
func documentTests() []subtest {
	return []subtest{
		{"a document comes back as it was written", documentRoundTrip},
		{"create never overwrites", documentCreateTwice},
		{"an update sees the last version and counts", documentUpdate},
		{"an update that fails changes nothing", documentUpdateFails},
		{"updates at once do not lose each other's", documentContention},
		{"delete hides, restore brings back", documentDelete},
		{"a filter chooses by every part of the key", documentFilter},
		{"a summary has the dashboard alone", documentSummaries},
		{"the log is kept, newest first", documentLog},
		{"projects count documents and runs", projects},
	}
}

// one gives the document of a reference, or ends the test.
func one(t *testing.T, s session.Finder, ref session.Ref) session.Document {
	t.Helper()
	list, err := s.Documents(t.Context(), session.Filter{Ref: ref})
	must(t, err)
	if len(list) != 1 {
		t.Fatalf("%d documents of %+v", len(list), ref)
	}
	return list[0]
}

// put is a change that sets a key.
func put(key string, value any) func(session.Document) (session.Document, []session.LogEntry, error) {
	return func(d session.Document) (session.Document, []session.LogEntry, error) {
		data := maps.Clone(d.Data)
		data[key] = value
		d.Data = data
		d.Updated = d.Updated.Add(1000)
		return d, nil, nil
	}
}

func documentRoundTrip(t *testing.T, f *fixture) {
	s := f.open(t)
	d := newDocument("ada", "0123456789ab", "bug-investigation", "AUTH-1234")
	d.Updated = at(1)
	d.Data = map[string]any{
		"big": json.Number("123456789012345678901234567890"), "small": json.Number("1.10"), "exp": json.Number("1e400"),
		"text": "é <&> 🚀 \" \\ \u2028", "null": nil, "true": true, "empty": map[string]any{}, "list": []any{json.Number("1"), "two", []any{}},
		"a.b": map[string]any{"": "no name", "deep": map[string]any{"er": json.Number("0")}},
	}
	must(t, s.CreateDocument(t.Context(), d, nil))
	want(t, "document", one(t, s, d.Ref), d)
	want(t, "document in another process", one(t, f.open(t), d.Ref), d)
	empty := newDocument("ada", "0123456789ab", "w", "empty")
	empty.Data = map[string]any{}
	must(t, s.CreateDocument(t.Context(), empty, nil))
	want(t, "empty document", one(t, s, empty.Ref), empty)
}

func documentCreateTwice(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	must(t, stores[0].CreateDocument(ctx, d, nil))
	again := d
	again.Data = map[string]any{"other": true}
	wantCode(t, stores[1].CreateDocument(ctx, again, nil), guideway.CodeConflict, "the same reference")
	want(t, "document", one(t, stores[0], d.Ref), d)
	// Each part of the reference makes it another one.
	for _, ref := range []session.Ref{
		{User: "bob", Project: "0123456789ab", Workflow: "w", ID: "id"},
		{User: "ada", Project: "ba9876543210", Workflow: "w", ID: "id"},
		{User: "ada", Project: "0123456789ab", Workflow: "v", ID: "id"},
		{User: "ada", Project: "0123456789ab", Workflow: "w", ID: "ID"},
	} {
		other := d
		other.Ref = ref
		must(t, stores[0].CreateDocument(ctx, other, nil))
	}
	errs := together(crowd, func(i int) error {
		return stores[i%2].CreateDocument(ctx, newDocument("ada", "0123456789ab", "w", "raced"), nil)
	})
	oneWins(t, errs)
}

func documentUpdate(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	must(t, stores[0].CreateDocument(ctx, d, nil))
	for i := range 6 {
		before := one(t, stores[(i+1)%2], d.Ref)
		got, err := stores[i%2].UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
			want(t, "what the change gets", d, before)
			return put(fmt.Sprint("key", i), json.Number(fmt.Sprint(i)))(d)
		})
		must(t, err)
		want(t, "revision", got.Revision, int64(i)+2)
		want(t, "document", one(t, stores[(i+1)%2], d.Ref), got)
	}
	want(t, "keys", len(one(t, stores[0], d.Ref).Data), len(d.Data)+6)
	_, err := stores[0].UpdateDocument(ctx, session.Ref{User: "bob", Project: "0123456789ab", Workflow: "w", ID: "id"}, put("a", "b"))
	wantCode(t, err, guideway.CodeNotFound, "somebody else's document")
}

func documentUpdateFails(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	must(t, s.CreateDocument(ctx, d, nil))
	before, err := s.Latest(ctx)
	must(t, err)
	refused := errors.New("not like this")
	_, err = s.UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d.Data["title"] = "half done"
		return d, []session.LogEntry{{At: at(1), Revision: 2, Message: "half done"}}, refused
	})
	if !errors.Is(err, refused) || err.Error() != refused.Error() {
		t.Fatalf("got the error %v, want the one of the change as it is", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of a change was swallowed")
			}
		}()
		_, _ = s.UpdateDocument(ctx, d.Ref, func(session.Document) (session.Document, []session.LogEntry, error) { panic("a defect") })
	}()
	want(t, "document", one(t, s, d.Ref), d)
	entries, err := s.ValidationLog(ctx, d.Ref, 10)
	must(t, err)
	want(t, "log entries", len(entries), 0)
	after, err := s.Latest(ctx)
	must(t, err)
	want(t, "position of the feed", after, before)
	_, err = s.UpdateDocument(ctx, d.Ref, put("later", true)) // the store goes on working
	must(t, err)
}

func documentContention(t *testing.T, f *fixture) {
	const writers = 20
	stores, ctx := []Store{f.open(t), f.open(t)}, t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	d.Data = map[string]any{}
	must(t, stores[0].CreateDocument(ctx, d, nil))
	errs := together(writers, func(i int) error {
		_, err := stores[i%2].UpdateDocument(ctx, d.Ref, put(fmt.Sprint("key", i), true))
		return err
	})
	for _, err := range errs {
		must(t, err)
	}
	got := one(t, stores[0], d.Ref)
	want(t, "keys", len(got.Data), writers)
	want(t, "revision", got.Revision, int64(writers)+1)
}

func documentDelete(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	entry := session.LogEntry{At: at(1), Revision: 1, Pointer: "/title", Message: "odd"}
	must(t, s.CreateDocument(ctx, d, []session.LogEntry{entry}))
	gone := func() {
		t.Helper()
		list, err := s.Documents(ctx, session.Filter{Ref: session.Ref{User: "ada"}})
		must(t, err)
		want(t, "documents", len(list), 0)
		_, err = s.UpdateDocument(ctx, d.Ref, put("a", "b"))
		wantCode(t, err, guideway.CodeNotFound, "update")
		wantCode(t, s.DeleteDocument(ctx, d.Ref, at(3)), guideway.CodeNotFound, "delete")
		list2, err := s.Projects(ctx, "ada")
		must(t, err)
		want(t, "projects", len(list2), 0)
	}
	wantCode(t, s.RestoreDocument(ctx, d.Ref, at(2)), guideway.CodeNotFound, "restore of what is there")
	must(t, s.DeleteDocument(ctx, d.Ref, at(2)))
	gone()
	must(t, s.RestoreDocument(ctx, d.Ref, at(4)))
	want(t, "restored document", one(t, s, d.Ref), d)
	entries, err := s.ValidationLog(ctx, d.Ref, 10)
	must(t, err)
	want(t, "restored log", entries, []session.LogEntry{entry})
	must(t, s.DeleteDocument(ctx, d.Ref, at(5)))
	gone()
	fresh := d
	fresh.Data = map[string]any{"fresh": true}
	must(t, s.CreateDocument(ctx, fresh, nil)) // replaces the deleted one
	want(t, "new document", one(t, s, d.Ref), fresh)
	entries, err = s.ValidationLog(ctx, d.Ref, 10)
	must(t, err)
	want(t, "log of the new document", len(entries), 0)
	wantCode(t, s.RestoreDocument(ctx, d.Ref, at(6)), guideway.CodeNotFound, "restore of what was replaced")
	none := session.Ref{User: "ada", Project: "0123456789ab", Workflow: "w", ID: "none"}
	wantCode(t, s.DeleteDocument(ctx, none, at(7)), guideway.CodeNotFound, "delete of nothing")
	wantCode(t, s.RestoreDocument(ctx, none, at(7)), guideway.CodeNotFound, "restore of nothing")
}

func documentFilter(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	for i, key := range []string{"p1 w1 a", "p1 w1 b", "p1 w2 a", "p2 w1 a", "p2 w2 c"} {
		var project, workflow, id string
		_, err := fmt.Sscan(key, &project, &workflow, &id)
		must(t, err)
		d := newDocument("ada", project, workflow, id)
		d.Updated = at(i)
		must(t, s.CreateDocument(ctx, d, nil))
	}
	must(t, s.CreateDocument(ctx, newDocument("bob", "p1", "w1", "a"), nil))
	list := func(filter session.Filter) []string {
		documents, err := s.Documents(ctx, filter)
		must(t, err)
		var keys []string
		for _, d := range documents {
			keys = append(keys, d.Project+" "+d.Workflow+" "+d.ID)
		}
		return keys
	}
	all := []string{"p2 w2 c", "p2 w1 a", "p1 w2 a", "p1 w1 b", "p1 w1 a"}
	want(t, "all", list(session.Filter{Ref: session.Ref{User: "ada"}}), all)
	want(t, "by project", list(session.Filter{Ref: session.Ref{User: "ada", Project: "p1"}}), all[2:])
	want(t, "by workflow", list(session.Filter{Ref: session.Ref{User: "ada", Workflow: "w2"}}), []string{all[0], all[2]})
	want(t, "by id", list(session.Filter{Ref: session.Ref{User: "ada", ID: "a"}}), []string{all[1], all[2], all[4]})
	want(t, "by all", list(session.Filter{Ref: session.Ref{User: "ada", Project: "p1", Workflow: "w1", ID: "b"}}), []string{all[3]})
	want(t, "by limit", list(session.Filter{Ref: session.Ref{User: "ada"}, Limit: 2}), all[:2])
	want(t, "of bob", list(session.Filter{Ref: session.Ref{User: "bob"}}), []string{"p1 w1 a"})
	want(t, "of nobody", list(session.Filter{}), []string(nil)) // no user is not every user
}

// documentSummaries: the list of summaries is that of the documents, whatever
// became of them, with dashboards that are bounded.
func documentSummaries(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	check := func(what string) {
		t.Helper()
		for _, filter := range []session.Filter{
			{},
			{Ref: session.Ref{User: "ada"}},
			{Ref: session.Ref{User: "ada"}, Limit: 2},
			{Ref: session.Ref{User: "ada", Project: "p1", Workflow: "w", ID: "3"}},
			{Ref: session.Ref{User: "bob", Workflow: "w"}},
		} {
			documents, err := s.Documents(ctx, filter)
			must(t, err)
			var expected []session.Summary
			for _, d := range documents {
				summary, err := d.Summary()
				must(t, err)
				expected = append(expected, summary)
			}
			got, err := f.open(t).Summaries(ctx, filter)
			must(t, err)
			want(t, fmt.Sprintf("%s: summaries of %+v", what, filter), got, expected)
		}
	}
	dashboards := []any{
		nil, "all is well",
		map[string]any{},
		[]any{json.Number("1")},
		map[string]any{"title": "é <&> 🚀", "progress": json.Number("1.10"), "a.b": nil, "odd": "\x00"},
		map[string]any{"title": "large", "log": strings.Repeat("x", 2*session.MaxDashboard)},
		strings.Repeat("y", 2*session.MaxDashboard),
	}
	for i, dashboard := range dashboards {
		d := newDocument("ada", "p1", "w", fmt.Sprint(i))
		d.Updated = at(i)
		d.Data = map[string]any{"dashboard": dashboard, "notes": strings.Repeat("z", 10_000)}
		must(t, s.CreateDocument(ctx, d, nil))
	}
	must(t, s.CreateDocument(ctx, newDocument("bob", "p1", "w", "3"), nil))
	check("new")
	large, err := s.Summaries(ctx, session.Filter{Ref: session.Ref{User: "ada", ID: "5"}})
	must(t, err)
	want(t, "a large dashboard", string(large[0].Dashboard), `{"title":"large"}`)
	ref := session.Ref{User: "ada", Project: "p1", Workflow: "w", ID: "3"}
	for _, dashboard := range []any{map[string]any{"title": "another"}, nil} {
		_, err := s.UpdateDocument(ctx, ref, put("dashboard", dashboard))
		must(t, err)
		check("updated")
	}
	must(t, s.DeleteDocument(ctx, ref, at(20)))
	check("deleted")
	must(t, s.RestoreDocument(ctx, ref, at(21)))
	check("restored")
	must(t, s.DeleteDocument(ctx, ref, at(22)))
	d := newDocument("ada", "p1", "w", "3")
	d.Data = map[string]any{"dashboard": "fresh"}
	must(t, s.CreateDocument(ctx, d, nil))
	check("replaced")
}

func documentLog(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	entry := func(revision int64, n int) session.LogEntry {
		return session.LogEntry{At: at(n), Revision: revision, Pointer: fmt.Sprintf("/list/%d", n), Message: fmt.Sprintf("entry %d", n)}
	}
	must(t, s.CreateDocument(ctx, d, []session.LogEntry{entry(1, 1), entry(1, 2)}))
	must(t, s.CreateDocument(ctx, newDocument("bob", "0123456789ab", "w", "id"), []session.LogEntry{entry(1, 99)}))
	_, err := s.UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		return d, []session.LogEntry{entry(2, 3)}, nil
	})
	must(t, err)
	log := func(limit int) []session.LogEntry {
		entries, err := s.ValidationLog(ctx, d.Ref, limit)
		must(t, err)
		return entries
	}
	want(t, "log", log(10), []session.LogEntry{entry(2, 3), entry(1, 2), entry(1, 1)})
	want(t, "the newest", log(1), []session.LogEntry{entry(2, 3)})
	entries, err := s.ValidationLog(ctx, session.Ref{User: "ada", Project: "0123456789ab", Workflow: "w", ID: "none"}, 10)
	must(t, err)
	want(t, "log of nothing", len(entries), 0)
}

func projects(t *testing.T, f *fixture) {
	s, ctx := f.open(t), t.Context()
	for i, id := range []string{"a", "b"} {
		d := newDocument("ada", "p1", "review", id)
		d.Updated = at(i + 1)
		must(t, s.CreateDocument(ctx, d, nil))
	}
	must(t, s.CreateDocument(ctx, newDocument("ada", "p2", "review", "a"), nil))
	must(t, s.CreateDocument(ctx, newDocument("bob", "p3", "review", "a"), nil))
	for i, project := range []run.Project{{ID: "p1", Path: "/work/p1/tree"}, {ID: "p4", Path: "/work/p4"}, {}} {
		r := newRecord(fmt.Sprintf("r_%d", i), "ada")
		r.Project, r.Updated = project, at(10+i)
		create(t, s, r)
	}
	got, err := s.Projects(ctx, "ada")
	must(t, err)
	want(t, "projects", got, []session.ProjectSummary{ // the last changed first
		{ID: "p4", Path: "/work/p4", Updated: at(11), Runs: 1, Workflows: []string{"coding-task"}},
		{ID: "p1", Path: "/work/p1/tree", Updated: at(10), Sessions: 2, Runs: 1, Workflows: []string{"coding-task", "review"}},
		{ID: "p2", Path: "/work/p2", Updated: epoch(), Sessions: 1, Workflows: []string{"review"}},
	})
	got, err = s.Projects(ctx, "nobody")
	must(t, err)
	want(t, "projects of nobody", len(got), 0)
}
