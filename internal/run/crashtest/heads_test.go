package crashtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/run"
)

// TestHeadsMayBeBehind checks that missing or truncated heads are not an error, and that
// edited heads are one.
func TestHeadsMayBeBehind(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		edit func(text []byte) []byte
		// bad reports whether the edit must be detected.
		bad bool
	}{
		{"no heads", func([]byte) []byte { return nil }, false},
		{"without the last line", func(b []byte) []byte { return b[:1+lastLine(b[:len(b)-1])] }, false},
		{"without half of the last line", func(b []byte) []byte { return b[:len(b)-20] }, false},
		{"a line whose end is missing", func(b []byte) []byte { return b[:len(b)-1] }, false},
		{"an edited line", func(b []byte) []byte {
			b = slices.Clone(b)
			b[len(b)/2] ^= 1
			return b
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := newTamperTest(t)
			for _, name := range headFiles(t, c.place) {
				text, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				if text = test.edit(text); text == nil {
					err = os.Remove(name)
				} else {
					err = os.WriteFile(name, text, 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			if test.bad {
				c.withStore(func(d *workerState) {
					report, err := d.service.Verify(t.Context(), "")
					if err == nil && len(report.Faults) == 0 {
						t.Error("Verify reports no faults")
					}
					if err != nil && guideway.ErrorFix(err) == "" {
						t.Errorf("the error of Verify has no fix: %v", err)
					}
				})
				return
			}
			c.checkFaults()
			c.withStore(func(d *workerState) { c.advanceRun(d, c.first, 3) })
			c.checkFaults()
		})
	}
}

func lastLine(text []byte) int { return strings.LastIndexByte(string(text), '\n') }

// headFiles returns the names of the head files.
func headFiles(t *testing.T, p workerPlace) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir(filepath.Join(p.Dir, stateName), func(name string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			if info, err := e.Info(); err == nil && info.Size() > 0 {
				names = append(names, name)
			}
		}
		return err
	})
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no heads: %v", err)
	}
	return names
}

// TestAnotherKeyFitsNothing checks that a journal cannot be used with a wrong key.
func TestAnotherKeyFitsNothing(t *testing.T) {
	t.Parallel()
	c, other := newTamperTest(t), newTamperTest(t)
	key, err := os.ReadFile(other.place.keyPath())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.place.keyPath(), key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(c.place.Dir, stateName)); err != nil {
		t.Fatal(err)
	}
	c.withStore(func(d *workerState) { c.checkStopped(d) })
	c.checkFaults(c.newFault(1, run.FaultEdited), run.Fault{Run: c.second, Seq: 1, Kind: run.FaultEdited})
}
