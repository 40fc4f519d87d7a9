package postgres_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/guideway-dev/guideway/internal/session"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestSummariesReadNoData checks that a list of summaries does not read the data of the
// documents.
func TestSummariesReadNoData(t *testing.T) {
	t.Parallel()
	u := newSchemaURL(t)
	s := openStore(t, postgres.Options{URL: u})
	for _, id := range []string{"old", "new"} {
		requireNoError(t, s.CreateDocument(t.Context(), session.Document{
			Ref: session.Ref{User: "ann", Project: "p", Workflow: "w", ID: id}, Revision: 1,
			Data: map[string]any{"dashboard": map[string]any{"title": id}},
		}, nil))
	}
	titles := func() map[string]string {
		list, err := s.Summaries(t.Context(), session.Filter{Ref: session.Ref{User: "ann"}})
		requireNoError(t, err)
		found := map[string]string{}
		for _, summary := range list {
			found[summary.ID] = string(summary.Dashboard)
		}
		return found
	}
	want := map[string]string{"old": `{"title":"old"}`, "new": `{"title":"new"}`}
	execSQL(t, u, `update documents set data = 'no JSON' where id = 'new'`)
	if diff := cmp.Diff(want, titles()); diff != "" {
		t.Errorf("the data was read (-want +got):\n%s", diff)
	}
}
