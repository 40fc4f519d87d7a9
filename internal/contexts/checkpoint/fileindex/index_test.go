package fileindex_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/fileindex"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/indextest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestContract runs the suite of all indexes on files.
func TestContract(t *testing.T) {
	t.Parallel()
	indextest.Exercise(t, func(t *testing.T) indextest.Opener {
		dir := filepath.Join(t.TempDir(), "made", "index")
		return func(t *testing.T) indextest.Index {
			t.Helper()
			x, err := fileindex.Open(fileindex.Options{Dir: dir})
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
	})
}

// TestMemory runs the suite of all indexes in memory.
func TestMemory(t *testing.T) {
	t.Parallel()
	indextest.Exercise(t, func(t *testing.T) indextest.Opener {
		x, err := fileindex.Open(fileindex.Options{})
		if err != nil {
			t.Fatal(err)
		}
		return func(*testing.T) indextest.Index { return x }
	})
}

// TestDamagedFile checks that a modified file is renamed and that Lost reports it.
func TestDamagedFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	x, err := fileindex.Open(fileindex.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	key := checkpoint.SeriesKey{User: "ada", Session: "work"}
	r := checkpoint.Record{ID: "c_1", SeriesKey: key, Number: 1, Kind: checkpoint.KindManual, Sum: []byte{1}, Name: "first"}
	if err := x.Apply(t.Context(), checkpoint.Change{Series: key, Add: &r}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %v (%v)", files, err)
	}
	info, err := os.Stat(files[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v (%v)", info.Mode().Perm(), err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	// It is still valid JSON, with different content.
	if err := os.WriteFile(files[0], []byte(strings.Replace(string(text), "first", "worst", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := fileindex.Open(fileindex.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if !again.Lost() {
		t.Error("the damage was not noticed")
	}
	if list, err := again.Checkpoints(t.Context(), checkpoint.Filter{}); err != nil || len(list) != 0 {
		t.Errorf("it has %v (%v)", list, err)
	}
	if _, err := os.Stat(files[0] + ".bad"); err != nil {
		t.Errorf("the file was not put aside: %v", err)
	}
}
