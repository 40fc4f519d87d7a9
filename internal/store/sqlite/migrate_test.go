package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestMigrateWords checks that texts that an older version indexed are found by all of their
// words after the migration, and that the file no longer has the texts of runs.
func TestMigrateWords(t *testing.T) {
	t.Parallel()
	ctx, path := t.Context(), filepath.Join(t.TempDir(), testFile)
	old := openTestStore(t, Options{Path: path, migrations: migrations()[:termsVersion-1]})
	c := newTestCommit("r_a", 1, "")
	c.Terms = []string{"Refactored validateJWT wondrously"} // an older version indexed texts
	if err := putCommit(ctx, old, c); err != nil {
		t.Fatal(err)
	}
	r := checkpoint.Record{ID: "c_a", SeriesKey: checkpoint.SeriesKey{User: "ada", Session: "s"}, Number: 1, Sum: []byte{1}}
	if err := old.Apply(ctx, checkpoint.Change{Series: r.SeriesKey, Add: &r, Terms: []string{"authentication\nnotes"}}); err != nil {
		t.Fatal(err)
	}
	if err := old.Close(); err != nil {
		t.Fatal(err)
	}

	s := openTestStore(t, Options{Path: path})
	for _, query := range []string{"jwt", "refactoring", "validate", "wondr"} {
		hits, err := s.Search(ctx, run.Search{Query: words.Parse(query)})
		if err != nil || len(hits) != 1 || hits[0].Record.ID != "r_a" {
			t.Errorf("%s finds %+v, %v", query, hits, err)
		}
	}
	for _, query := range []string{"auth", "authenticated", "note"} {
		list, err := s.Checkpoints(ctx, checkpoint.Filter{User: "ada", Query: words.Parse(query)})
		if err != nil || len(list) != 1 {
			t.Errorf("%s finds %+v, %v", query, list, err)
		}
	}
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), "Refactored") {
		t.Errorf("the file has the text of a run, %v", err)
	}
}
