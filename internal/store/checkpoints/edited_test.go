package checkpoints

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite" // the driver, to edit the database directly

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
)

// TestEditedRows edits or deletes rows of the index. It checks that the last context of a
// session is still loaded, and that all contexts are available after Rebuild.
func TestEditedRows(t *testing.T) {
	t.Parallel()
	const last, middle = ` WHERE number = 12 AND session = 'work'`, ` WHERE number = 5 AND session = 'work'`
	for _, edit := range []string{
		`UPDATE checkpoints SET session = 'wprk'` + last,
		`UPDATE checkpoints SET session = 'wprk'` + middle,
		`UPDATE checkpoints SET user = 'eda'` + last,
		`UPDATE checkpoints SET id = 'c_x'` + last,
		`UPDATE checkpoints SET id = 'c_x'` + middle,
		`UPDATE checkpoints SET number = 77` + middle,
		`UPDATE checkpoints SET number = 0` + last,
		`UPDATE checkpoints SET blob = 'f00'` + last,
		`UPDATE checkpoints SET blob = 'f00', base = 'c_y', sum = x'00'` + middle,
		`UPDATE checkpoints SET blob = (SELECT blob FROM checkpoints` + last + `)` + middle,
		`UPDATE checkpoints SET base = ''` + middle,
		`UPDATE checkpoints SET base = 'c_y'` + middle,
		`UPDATE checkpoints SET base = id` + middle,
		`UPDATE checkpoints SET key = 'key-0'` + middle,
		`UPDATE checkpoints SET sum = x'0011'` + last,
		`UPDATE checkpoints SET kind = 'piece', number = 0` + last,
		`UPDATE checkpoint_lines SET session = 'wprk' WHERE session = 'work'`,
		`UPDATE checkpoint_lines SET last = 3 WHERE session = 'work'`,
		`UPDATE checkpoint_lines SET last = 3000 WHERE session = 'work'`,
		`UPDATE checkpoint_lines SET count = 3 WHERE session = 'work'`,
		`DELETE FROM checkpoint_lines`,
		`DELETE FROM checkpoints` + last,
		`DELETE FROM checkpoints`,
	} {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			o := Options{DataDir: t.TempDir()}
			c, err := Open(t.Context(), o)
			requireNoError(t, err)
			ids := make([]string, 0, 12)
			for i := range 12 {
				saveText(t, c, "play", longText(100+i))
				ids = append(ids, saveText(t, c, "work", longText(i)).ID)
			}
			requireNoError(t, c.Close())
			db, err := sql.Open("sqlite", filepath.Join(o.DataDir, databaseName))
			requireNoError(t, err)
			_, err = db.ExecContext(t.Context(), edit)
			requireNoError(t, err)
			requireNoError(t, db.Close())
			c = openTest(t, o)
			checkLast(t, c, "work", longText(11))
			_, err = c.Rebuild(t.Context())
			requireNoError(t, err)
			for i, id := range ids {
				loaded, err := c.Load(t.Context(), testPrincipal(), checkpoint.LoadRequest{ID: id})
				if err != nil || string(loaded.Context) != longText(i) || loaded.Degraded != nil || loaded.Number != int64(i+1) {
					t.Errorf("%d is %+v, %v", i, loaded, err)
				}
			}
			if saved := saveText(t, c, "work", longText(50)); saved.Number < 13 || saved.Parent != ids[11] {
				t.Errorf("the saved checkpoint has number %d after %s", saved.Number, saved.Parent)
			}
			checkLast(t, c, "work", longText(50))
			page, err := c.List(t.Context(), testPrincipal(), checkpoint.ListRequest{Limit: 100})
			requireNoError(t, err)
			report, err := c.Verify(t.Context())
			requireNoError(t, err)
			if len(page.Checkpoints) != 25 || report.Checkpoints != 25 || len(report.Damaged) > 0 {
				t.Errorf("%d listed, %d verified, damaged %v", len(page.Checkpoints), report.Checkpoints, report.Damaged)
			}
			stats, err := c.Stats(t.Context(), "ada")
			requireNoError(t, err)
			if stats.Count != 25 || stats.Series != 2 {
				t.Errorf("the totals are %s", fmt.Sprint(stats.Totals))
			}
		})
	}
}
