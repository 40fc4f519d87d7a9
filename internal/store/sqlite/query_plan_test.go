package sqlite

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/platform/words"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

// TestListsAreIndexed checks that the database has a write-ahead log, and that each list of
// checkpoints uses an index and neither scans nor sorts all checkpoints.
func TestListsAreIndexed(t *testing.T) {
	t.Parallel()
	s := openTestStore(t, Options{Path: filepath.Join(t.TempDir(), testFile)})
	var mode string
	if err := s.readers.db.QueryRowContext(t.Context(), "PRAGMA journal_mode").Scan(&mode); err != nil || mode != "wal" {
		t.Errorf("the journal is %q, %v", mode, err)
	}
	for index, f := range map[string]checkpoint.Filter{
		"checkpoints_of_user":     {User: "ann"},
		"checkpoints_in_line":     {User: "ann", Session: "s"},
		"checkpoints_of_workflow": {User: "ann", Workflow: "w"},
		"checkpoints_of_project":  {User: "ann", Project: "p"},
		"t USING PRIMARY KEY":     {User: "ann", Tags: []string{"t"}},
		"w VIRTUAL TABLE INDEX":   {User: "ann", Query: words.Parse("auth")},
	} {
		q := dialect().CheckpointsQuery(f)
		q.Text = "EXPLAIN QUERY PLAN " + q.Text
		plan, err := rows.Collect(t.Context(), s.readers, q, func(row rows.Scanner) (string, error) {
			var id, parent, unused int
			var detail string
			err := row.Scan(&id, &parent, &unused, &detail)
			return detail, err
		})
		if err != nil {
			t.Fatal(err)
		}
		all := strings.Join(plan, "\n")
		if strings.Contains(all, "SCAN c ") || strings.Contains(all, "TEMP B-TREE") || !strings.Contains(all, index) {
			t.Errorf("%s:\n%s", index, all)
		}
	}
}
