package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/session"
)

// TestSummariesReadNoData checks that a list of summaries does not read the data of the
// documents.
func TestSummariesReadNoData(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), testFile)
	s := openTestStore(t, Options{Path: path})
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
	want := map[string]string{"new": `{"title":"new"}`}
	execStatements(t, path, `UPDATE documents SET data = CAST('no JSON' AS BLOB) WHERE id = 'new'`)
	if diff := cmp.Diff(want, titles()); diff != "" {
		t.Errorf("the data was read (-want +got):\n%s", diff)
	}
}
