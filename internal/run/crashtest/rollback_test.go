package crashtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/guideway-dev/guideway/internal/run"
)

// copyFiles copies the files that exist and deletes the others in the target.
func copyFiles(t *testing.T, files []string, dir string) {
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

// TestRollbackIsFound checks that a restored older copy of the database is detected, also
// after further commands, until the restore is accepted.
func TestRollbackIsFound(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// open makes the copy while a process has the database open, so that there is a
		// write-ahead log.
		open bool
	}{{"a copy of a closed database", false}, {"a copy with its log", true}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newTamperTest(t)
			elsewhere := t.TempDir()
			if test.open {
				w := startWorker(t, c.place).MustOpen()
				w.MustDo(order{Do: opStart, Goal: "a third run"})
				copyFiles(t, c.databaseFiles(), elsewhere)
				w.Kill()
			} else {
				copyFiles(t, c.databaseFiles(), elsewhere)
			}
			var late string
			c.withStore(func(d *workerState) {
				c.advanceRun(d, c.first, 4)
				late = c.startRun(d, "a late run")
			})
			c.checkFaults()
			var back []string
			for _, name := range c.databaseFiles() {
				back = append(back, filepath.Join(elsewhere, filepath.Base(name)))
			}
			copyFiles(t, back, filepath.Dir(c.place.databasePath()))
			want := []run.Fault{c.newFault(c.events+1, run.FaultTruncated), {Run: late, Seq: 1, Kind: run.FaultMissing}}
			c.checkFaults(want...)

			c.withStore(func(d *workerState) { c.advanceRun(d, c.first, 1) })
			found := c.verifyJournal()
			if !slices.ContainsFunc(found, func(f run.Fault) bool { return f.Run == c.first }) {
				t.Errorf("after one more command the rollback is no longer detected: %+v", found)
			}
			c.withStore(func(d *workerState) { c.advanceRun(d, c.first, 8) })
			found = c.verifyJournal()
			if !slices.ContainsFunc(found, func(f run.Fault) bool { return f.Run == c.first && f.Kind == run.FaultReplaced }) {
				t.Errorf("once the run is longer than before, the rollback is no longer detected: %+v", found)
			}
			c.withStore(func(d *workerState) {
				if err := d.service.AcceptRestore(t.Context()); err != nil {
					t.Fatal(err)
				}
			})
			c.checkFaults()
			c.withStore(func(d *workerState) { c.advanceRun(d, c.first, 2) })
			c.checkFaults()
		})
	}
}
