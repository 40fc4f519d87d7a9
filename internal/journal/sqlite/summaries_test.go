package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/session"
)

// TestSummariesReadNoData: a list of summaries does not touch the data, however
// much of it there is; of documents that an earlier version has written, or
// changed while this one had the file open too, it does.
func TestSummariesReadNoData(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), testFile)
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	old, err := Open(ctx, Options{Path: path, steps: steps[:1]})
	if err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}
	execute(t, path, `INSERT INTO documents (user, project, workflow, id, project_path, created, updated, revision, data)
		VALUES ('ann', 'p', 'w', 'old', '/p', 1, 1, 1, CAST('{"dashboard":{"title":"of old"}}' AS BLOB))`)
	s := openAt(t, Options{Path: path})
	ref := session.Ref{User: "ann", Project: "p", Workflow: "w", ID: "new"}
	d := session.Document{Ref: ref, Revision: 1, Data: map[string]any{"dashboard": map[string]any{"title": "new"}}}
	if err := s.CreateDocument(ctx, d, nil); err != nil {
		t.Fatal(err)
	}
	titles := func() map[string]string {
		list, err := s.Summaries(ctx, session.Filter{Ref: session.Ref{User: "ann"}})
		if err != nil {
			t.Fatal(err)
		}
		found := map[string]string{}
		for _, summary := range list {
			found[summary.ID] = string(summary.Dashboard)
		}
		return found
	}
	want := map[string]string{"old": `{"title":"of old"}`, "new": `{"title":"new"}`}
	if diff := cmp.Diff(want, titles()); diff != "" {
		t.Errorf("of an older file (-want +got):\n%s", diff)
	}
	execute(t, path, `UPDATE documents SET data = CAST('no JSON' AS BLOB) WHERE id = 'new'`)
	if diff := cmp.Diff(want, titles()); diff != "" {
		t.Errorf("the data were read (-want +got):\n%s", diff)
	}
	execute(t, path, `UPDATE documents SET data = CAST('{"dashboard":1}' AS BLOB), revision = 2 WHERE id = 'new'`)
	want["new"] = "1"
	if diff := cmp.Diff(want, titles()); diff != "" {
		t.Errorf("changed by an earlier version (-want +got):\n%s", diff)
	}
}
