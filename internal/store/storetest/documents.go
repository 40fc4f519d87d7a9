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

// documentTests cover session documents.
func documentTests() []subtest {
	return []subtest{
		{"a document is read unchanged", testDocumentRoundTrip},
		{"create never overwrites", testDocumentCreateTwice},
		{"an update gets the last version and increments the revision", testDocumentUpdate},
		{"an update that fails changes nothing", testDocumentUpdateFails},
		{"concurrent updates are not lost", testDocumentContention},
		{"restore undoes delete", testDocumentDelete},
		{"a filter matches every part of the key", testDocumentFilter},
		{"a summary contains only the dashboard", testDocumentSummaries},
		{"the log is stored, newest first", testDocumentLog},
		{"projects count documents and runs", testProjects},
	}
}

// readDocument returns a document or fails the test.
func readDocument(t *testing.T, s session.Finder, ref session.Ref) session.Document {
	t.Helper()
	list, err := s.Documents(t.Context(), session.Filter{Ref: ref})
	requireNoError(t, err)
	if len(list) != 1 {
		t.Fatalf("%d documents of %+v", len(list), ref)
	}
	return list[0]
}

// setKey returns a change that sets a key.
func setKey(key string, value any) func(session.Document) (session.Document, []session.LogEntry, error) {
	return func(d session.Document) (session.Document, []session.LogEntry, error) {
		data := maps.Clone(d.Data)
		data[key] = value
		d.Data = data
		d.Updated = d.Updated.Add(1000)
		return d, nil, nil
	}
}

func testDocumentRoundTrip(t *testing.T, f *fixture) {
	s := f.openStore(t)
	d := newDocument("ada", "0123456789ab", "bug-investigation", "AUTH-1234")
	d.Updated = minutesAfter(1)
	d.Data = map[string]any{
		"big": json.Number("123456789012345678901234567890"), "small": json.Number("1.10"), "exp": json.Number("1e400"),
		"text": "é <&> 🚀 \" \\ \u2028", "null": nil, "true": true, "empty": map[string]any{}, "list": []any{json.Number("1"), "two", []any{}},
		"a.b": map[string]any{"": "no name", "deep": map[string]any{"er": json.Number("0")}},
	}
	requireNoError(t, s.CreateDocument(t.Context(), d, nil))
	checkEqual(t, "document", readDocument(t, s, d.Ref), d)
	checkEqual(t, "document in another process", readDocument(t, f.openStore(t), d.Ref), d)
	empty := newDocument("ada", "0123456789ab", "w", "empty")
	empty.Data = map[string]any{}
	requireNoError(t, s.CreateDocument(t.Context(), empty, nil))
	checkEqual(t, "empty document", readDocument(t, s, empty.Ref), empty)
}

func testDocumentCreateTwice(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	requireNoError(t, stores[0].CreateDocument(ctx, d, nil))
	again := d
	again.Data = map[string]any{"other": true}
	checkCode(t, stores[1].CreateDocument(ctx, again, nil), guideway.CodeConflict, "the same reference")
	checkEqual(t, "document", readDocument(t, stores[0], d.Ref), d)
	// A document with the same id but another user, project or workflow is a different
	// document.
	for _, ref := range []session.Ref{
		{User: "bob", Project: "0123456789ab", Workflow: "w", ID: "id"},
		{User: "ada", Project: "ba9876543210", Workflow: "w", ID: "id"},
		{User: "ada", Project: "0123456789ab", Workflow: "v", ID: "id"},
		{User: "ada", Project: "0123456789ab", Workflow: "w", ID: "ID"},
	} {
		other := d
		other.Ref = ref
		requireNoError(t, stores[0].CreateDocument(ctx, other, nil))
	}
	errs := runConcurrently(concurrency, func(i int) error {
		return stores[i%2].CreateDocument(ctx, newDocument("ada", "0123456789ab", "w", "raced"), nil)
	})
	checkOneSucceeds(t, errs)
}

func testDocumentUpdate(t *testing.T, f *fixture) {
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	requireNoError(t, stores[0].CreateDocument(ctx, d, nil))
	for i := range 6 {
		before := readDocument(t, stores[(i+1)%2], d.Ref)
		got, err := stores[i%2].UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
			checkEqual(t, "document passed to the change", d, before)
			return setKey(fmt.Sprint("key", i), json.Number(fmt.Sprint(i)))(d)
		})
		requireNoError(t, err)
		checkEqual(t, "revision", got.Revision, int64(i)+2)
		checkEqual(t, "document", readDocument(t, stores[(i+1)%2], d.Ref), got)
	}
	checkEqual(t, "keys", len(readDocument(t, stores[0], d.Ref).Data), len(d.Data)+6)
	_, err := stores[0].UpdateDocument(ctx, session.Ref{User: "bob", Project: "0123456789ab", Workflow: "w", ID: "id"}, setKey("a", "b"))
	checkCode(t, err, guideway.CodeNotFound, "a document of another user")
}

func testDocumentUpdateFails(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	requireNoError(t, s.CreateDocument(ctx, d, nil))
	before, err := s.Latest(ctx)
	requireNoError(t, err)
	refused := errors.New("not like this")
	_, err = s.UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		d.Data["title"] = "half done"
		return d, []session.LogEntry{{At: minutesAfter(1), Revision: 2, Message: "half done"}}, refused
	})
	if !errors.Is(err, refused) || err.Error() != refused.Error() {
		t.Fatalf("got the error %v, want the error that the change returned", err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic of a change was not propagated")
			}
		}()
		_, _ = s.UpdateDocument(ctx, d.Ref, func(session.Document) (session.Document, []session.LogEntry, error) { panic("a defect") })
	}()
	checkEqual(t, "document", readDocument(t, s, d.Ref), d)
	entries, err := s.ValidationLog(ctx, d.Ref, 10)
	requireNoError(t, err)
	checkEqual(t, "log entries", len(entries), 0)
	after, err := s.Latest(ctx)
	requireNoError(t, err)
	checkEqual(t, "position of the feed", after, before)
	_, err = s.UpdateDocument(ctx, d.Ref, setKey("later", true)) // the store still works
	requireNoError(t, err)
}

func testDocumentContention(t *testing.T, f *fixture) {
	const writers = 20
	stores, ctx := []Store{f.openStore(t), f.openStore(t)}, t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	d.Data = map[string]any{}
	requireNoError(t, stores[0].CreateDocument(ctx, d, nil))
	errs := runConcurrently(writers, func(i int) error {
		_, err := stores[i%2].UpdateDocument(ctx, d.Ref, setKey(fmt.Sprint("key", i), true))
		return err
	})
	for _, err := range errs {
		requireNoError(t, err)
	}
	got := readDocument(t, stores[0], d.Ref)
	checkEqual(t, "keys", len(got.Data), writers)
	checkEqual(t, "revision", got.Revision, int64(writers)+1)
}

func testDocumentDelete(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	entry := session.LogEntry{At: minutesAfter(1), Revision: 1, Pointer: "/title", Message: "odd"}
	requireNoError(t, s.CreateDocument(ctx, d, []session.LogEntry{entry}))
	gone := func() {
		t.Helper()
		list, err := s.Documents(ctx, session.Filter{Ref: session.Ref{User: "ada"}})
		requireNoError(t, err)
		checkEqual(t, "documents", len(list), 0)
		_, err = s.UpdateDocument(ctx, d.Ref, setKey("a", "b"))
		checkCode(t, err, guideway.CodeNotFound, "update")
		checkCode(t, s.DeleteDocument(ctx, d.Ref, minutesAfter(3)), guideway.CodeNotFound, "delete")
		list2, err := s.Projects(ctx, "ada")
		requireNoError(t, err)
		checkEqual(t, "projects", len(list2), 0)
	}
	checkCode(t, s.RestoreDocument(ctx, d.Ref, minutesAfter(2)), guideway.CodeNotFound, "restore of an existing document")
	requireNoError(t, s.DeleteDocument(ctx, d.Ref, minutesAfter(2)))
	gone()
	requireNoError(t, s.RestoreDocument(ctx, d.Ref, minutesAfter(4)))
	checkEqual(t, "restored document", readDocument(t, s, d.Ref), d)
	entries, err := s.ValidationLog(ctx, d.Ref, 10)
	requireNoError(t, err)
	checkEqual(t, "restored log", entries, []session.LogEntry{entry})
	requireNoError(t, s.DeleteDocument(ctx, d.Ref, minutesAfter(5)))
	gone()
	fresh := d
	fresh.Data = map[string]any{"fresh": true}
	requireNoError(t, s.CreateDocument(ctx, fresh, nil)) // replaces the deleted document
	checkEqual(t, "new document", readDocument(t, s, d.Ref), fresh)
	entries, err = s.ValidationLog(ctx, d.Ref, 10)
	requireNoError(t, err)
	checkEqual(t, "log of the new document", len(entries), 0)
	checkCode(t, s.RestoreDocument(ctx, d.Ref, minutesAfter(6)), guideway.CodeNotFound, "restore of a replaced document")
	checkCode(t, s.PurgeDocument(ctx, d.Ref), guideway.CodeNotFound, "erasure of a document that is not deleted")
	requireNoError(t, s.DeleteDocument(ctx, d.Ref, minutesAfter(6)))
	requireNoError(t, s.PurgeDocument(ctx, d.Ref))
	checkCode(t, s.RestoreDocument(ctx, d.Ref, minutesAfter(6)), guideway.CodeNotFound, "restore of an erased document")
	none := session.Ref{User: "ada", Project: "0123456789ab", Workflow: "w", ID: "none"}
	checkCode(t, s.DeleteDocument(ctx, none, minutesAfter(7)), guideway.CodeNotFound, "delete of a missing document")
	checkCode(t, s.RestoreDocument(ctx, none, minutesAfter(7)), guideway.CodeNotFound, "restore of a missing document")
}

func testDocumentFilter(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	for i, key := range []string{"p1 w1 a", "p1 w1 b", "p1 w2 a", "p2 w1 a", "p2 w2 c"} {
		var project, workflow, id string
		_, err := fmt.Sscan(key, &project, &workflow, &id)
		requireNoError(t, err)
		d := newDocument("ada", project, workflow, id)
		d.Updated = minutesAfter(i)
		requireNoError(t, s.CreateDocument(ctx, d, nil))
	}
	requireNoError(t, s.CreateDocument(ctx, newDocument("bob", "p1", "w1", "a"), nil))
	list := func(filter session.Filter) []string {
		documents, err := s.Documents(ctx, filter)
		requireNoError(t, err)
		var keys []string
		for _, d := range documents {
			keys = append(keys, d.Project+" "+d.Workflow+" "+d.ID)
		}
		return keys
	}
	all := []string{"p2 w2 c", "p2 w1 a", "p1 w2 a", "p1 w1 b", "p1 w1 a"}
	checkEqual(t, "all", list(session.Filter{Ref: session.Ref{User: "ada"}}), all)
	checkEqual(t, "by project", list(session.Filter{Ref: session.Ref{User: "ada", Project: "p1"}}), all[2:])
	checkEqual(t, "by workflow", list(session.Filter{Ref: session.Ref{User: "ada", Workflow: "w2"}}), []string{all[0], all[2]})
	checkEqual(t, "by id", list(session.Filter{Ref: session.Ref{User: "ada", ID: "a"}}), []string{all[1], all[2], all[4]})
	checkEqual(t, "by all", list(session.Filter{Ref: session.Ref{User: "ada", Project: "p1", Workflow: "w1", ID: "b"}}), []string{all[3]})
	checkEqual(t, "by limit", list(session.Filter{Ref: session.Ref{User: "ada"}, Limit: 2}), all[:2])
	checkEqual(t, "of bob", list(session.Filter{Ref: session.Ref{User: "bob"}}), []string{"p1 w1 a"})
	checkEqual(t, "empty user", list(session.Filter{}), []string(nil)) // an empty user matches no document
}

// testDocumentSummaries checks that summaries match the documents after every kind of
// change, and that the size of dashboards is bounded.
func testDocumentSummaries(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
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
			requireNoError(t, err)
			var expected []session.Summary
			for _, d := range documents {
				summary, err := d.Summary()
				requireNoError(t, err)
				expected = append(expected, summary)
			}
			got, err := f.openStore(t).Summaries(ctx, filter)
			requireNoError(t, err)
			checkEqual(t, fmt.Sprintf("%s: summaries of %+v", what, filter), got, expected)
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
		d.Updated = minutesAfter(i)
		d.Data = map[string]any{"dashboard": dashboard, "notes": strings.Repeat("z", 10_000)}
		requireNoError(t, s.CreateDocument(ctx, d, nil))
	}
	requireNoError(t, s.CreateDocument(ctx, newDocument("bob", "p1", "w", "3"), nil))
	check("new")
	large, err := s.Summaries(ctx, session.Filter{Ref: session.Ref{User: "ada", ID: "5"}})
	requireNoError(t, err)
	checkEqual(t, "a large dashboard", string(large[0].Dashboard), `{"title":"large"}`)
	ref := session.Ref{User: "ada", Project: "p1", Workflow: "w", ID: "3"}
	for _, dashboard := range []any{map[string]any{"title": "another"}, nil} {
		_, err := s.UpdateDocument(ctx, ref, setKey("dashboard", dashboard))
		requireNoError(t, err)
		check("updated")
	}
	requireNoError(t, s.DeleteDocument(ctx, ref, minutesAfter(20)))
	check("deleted")
	requireNoError(t, s.RestoreDocument(ctx, ref, minutesAfter(21)))
	check("restored")
	requireNoError(t, s.DeleteDocument(ctx, ref, minutesAfter(22)))
	d := newDocument("ada", "p1", "w", "3")
	d.Data = map[string]any{"dashboard": "fresh"}
	requireNoError(t, s.CreateDocument(ctx, d, nil))
	check("replaced")
}

func testDocumentLog(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	d := newDocument("ada", "0123456789ab", "w", "id")
	entry := func(revision int64, n int) session.LogEntry {
		return session.LogEntry{At: minutesAfter(n), Revision: revision, Pointer: fmt.Sprintf("/list/%d", n), Message: fmt.Sprintf("entry %d", n)}
	}
	requireNoError(t, s.CreateDocument(ctx, d, []session.LogEntry{entry(1, 1), entry(1, 2)}))
	requireNoError(t, s.CreateDocument(ctx, newDocument("bob", "0123456789ab", "w", "id"), []session.LogEntry{entry(1, 99)}))
	_, err := s.UpdateDocument(ctx, d.Ref, func(d session.Document) (session.Document, []session.LogEntry, error) {
		return d, []session.LogEntry{entry(2, 3)}, nil
	})
	requireNoError(t, err)
	log := func(limit int) []session.LogEntry {
		entries, err := s.ValidationLog(ctx, d.Ref, limit)
		requireNoError(t, err)
		return entries
	}
	checkEqual(t, "log", log(10), []session.LogEntry{entry(2, 3), entry(1, 2), entry(1, 1)})
	checkEqual(t, "the newest", log(1), []session.LogEntry{entry(2, 3)})
	entries, err := s.ValidationLog(ctx, session.Ref{User: "ada", Project: "0123456789ab", Workflow: "w", ID: "none"}, 10)
	requireNoError(t, err)
	checkEqual(t, "log of a missing document", len(entries), 0)
}

func testProjects(t *testing.T, f *fixture) {
	s, ctx := f.openStore(t), t.Context()
	for i, id := range []string{"a", "b"} {
		d := newDocument("ada", "p1", "review", id)
		d.Updated = minutesAfter(i + 1)
		requireNoError(t, s.CreateDocument(ctx, d, nil))
	}
	requireNoError(t, s.CreateDocument(ctx, newDocument("ada", "p2", "review", "a"), nil))
	requireNoError(t, s.CreateDocument(ctx, newDocument("bob", "p3", "review", "a"), nil))
	for i, project := range []run.Project{{ID: "p1", Path: "/work/p1/tree"}, {ID: "p4", Path: "/work/p4"}, {}} {
		r := newRecord(fmt.Sprintf("r_%d", i), "ada")
		r.Project, r.Updated = project, minutesAfter(10+i)
		createRun(t, s, r)
	}
	got, err := s.Projects(ctx, "ada")
	requireNoError(t, err)
	checkEqual(t, "projects", got, []session.ProjectSummary{ // the last changed project first
		{ID: "p4", Path: "/work/p4", Updated: minutesAfter(11), Runs: 1, Workflows: []string{"coding-task"}},
		{ID: "p1", Path: "/work/p1/tree", Updated: minutesAfter(10), Sessions: 2, Runs: 1, Workflows: []string{"coding-task", "review"}},
		{ID: "p2", Path: "/work/p2", Updated: startTime(), Sessions: 1, Workflows: []string{"review"}},
	})
	got, err = s.Projects(ctx, "nobody")
	requireNoError(t, err)
	checkEqual(t, "projects of an empty user", len(got), 0)
}
