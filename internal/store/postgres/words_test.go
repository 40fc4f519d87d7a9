package postgres_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/store/postgres"
)

// TestSearchOfCommonWords checks a search for a word that very many runs contain: the
// filters for the user and the project apply, at most 100 runs are returned, and a run that
// also has a rare word is the first.
func TestSearchOfCommonWords(t *testing.T) {
	t.Parallel()
	s := openStore(t, postgres.Options{URL: newSchemaURL(t)})
	d, c := newTestRun("r_old", "ada", "repair the service")
	c.Record.Project.ID = "ba9876543210"
	requireNoError(t, s.Create(t.Context(), d, c))
	createSimilarRuns(t, s, postgres.CommonRows+200)
	find := func(f run.Filter, query string) []string {
		hits, err := s.Search(t.Context(), run.Search{Filter: f, Query: words.Parse(query)})
		requireNoError(t, err)
		var ids []string
		for _, h := range hits {
			ids = append(ids, h.Record.ID)
		}
		return ids
	}
	for _, user := range []string{"", "ada"} {
		if got := find(run.Filter{User: user, Project: "ba9876543210"}, "service"); !slices.Equal(got, []string{"r_old"}) {
			t.Errorf("user %q finds in the project %v", user, got)
		}
		if got := find(run.Filter{User: user}, "service"); len(got) != 100 {
			t.Errorf("user %q: %d hits", user, len(got))
		}
	}
	rare := fmt.Sprintf("number%d", 7)
	if got := find(run.Filter{User: "ada", Limit: 3}, "service "+rare+" gateway"); len(got) != 3 || got[0] != "r_000007" {
		t.Errorf("a search with a rare word finds %v", got)
	}
	if got := find(run.Filter{User: "bob"}, "service"); got != nil {
		t.Errorf("a different user finds %v", got)
	}
}
