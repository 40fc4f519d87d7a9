package crashtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway/internal/run"
)

// copyTo keeps the files elsewhere; what is not there is not there in the copy.
func copyTo(t *testing.T, files []string, dir string) {
	t.Helper()
	for _, name := range files {
		to := filepath.Join(dir, filepath.Base(name))
		data, err := os.ReadFile(name)
		if os.IsNotExist(err) {
			if err := os.RemoveAll(to); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestRollbackIsFound puts an older copy of the database back.
func TestRollbackIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// open has the copy made while a process has the database open, so
		// that it has a write-ahead log.
		open bool
	}{{"a copy of a closed database", false}, {"a copy with its log", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := scene(t)
			elsewhere := t.TempDir()
			if test.open {
				w := hire(t, c.place).MustOpen()
				w.MustDo(order{Do: opStart, Goal: "a third run"})
				copyTo(t, c.files(), elsewhere)
				w.Kill()
			} else {
				copyTo(t, c.files(), elsewhere)
			}
			var late string
			c.with(func(d *desk) {
				c.advance(d, c.first, 4)
				late = c.start(d, "a late run")
			})
			c.expect()
			var back []string
			for _, name := range c.files() {
				back = append(back, filepath.Join(elsewhere, filepath.Base(name)))
			}
			copyTo(t, back, filepath.Dir(c.place.database()))
			want := []run.Fault{c.fault(c.events+1, run.FaultTruncated), {Run: late, Seq: 1, Kind: run.FaultMissing}}
			c.expect(want...)

			c.with(func(d *desk) { c.advance(d, c.first, 1) })
			found := c.verify()
			if !slices.ContainsFunc(found, func(f run.Fault) bool { return f.Run == c.first }) {
				t.Errorf("after one more command the rollback is forgotten: %+v", found)
			}
			c.with(func(d *desk) { c.advance(d, c.first, 8) })
			found = c.verify()
			if !slices.ContainsFunc(found, func(f run.Fault) bool { return f.Run == c.first && f.Kind == run.FaultReplaced }) {
				t.Errorf("once the run is longer than it was, the rollback is forgotten: %+v", found)
			}
			c.with(func(d *desk) {
				if err := d.service.AcceptRestore(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			c.expect()
			c.with(func(d *desk) { c.advance(d, c.first, 2) })
			c.expect()
		})
	}
}
