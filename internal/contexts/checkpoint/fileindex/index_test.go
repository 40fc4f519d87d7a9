package fileindex_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/fileindex"
	"github.com/guideway-dev/guideway/internal/contexts/checkpoint/indextest"
)

// writeSeries writes a series with one checkpoint to a directory and returns its file.
func writeSeries(t *testing.T, dir string) (file string) {
	t.Helper()
	x, err := fileindex.Open(fileindex.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer x.Close()
	key := checkpoint.SeriesKey{User: "ada", Session: "work"}
	r := checkpoint.Record{ID: "c_1", SeriesKey: key, Number: 1, Kind: checkpoint.KindManual, Sum: []byte{1}, Name: "first"}
	if err := x.Apply(t.Context(), checkpoint.Change{Series: key, Add: &r}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("the files are %v (%v)", files, err)
	}
	return files[0]
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestContract runs the test suite that every index must pass, with indexes in files.
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

// TestMemory runs the test suite that every index must pass, with indexes in memory.
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
	file := writeSeries(t, dir)
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the mode is %v (%v)", info.Mode().Perm(), err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The file is still valid JSON, with different content.
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), "first", "worst", 1)), 0o600); err != nil {
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
		t.Errorf("the index has %v (%v)", list, err)
	}
	if _, err := os.Stat(file + ".bad"); err != nil {
		t.Errorf("the file was not renamed: %v", err)
	}
}

// TestOtherFormats checks that a file of another format is not changed, and that the error
// names the file, both formats and a fix.
func TestOtherFormats(t *testing.T) {
	t.Parallel()
	for member, want := range map[string][]string{
		"":            {"format 1", "checkpoint verify --rebuild"},
		`,"format":9`: {"format 9", "the version of Guideway that wrote the file"},
	} {
		dir := t.TempDir()
		file := writeSeries(t, dir)
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, body, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		body = strings.Replace(body, `,"format":2`, member, 1)
		old := fmt.Sprintf("%x\n%s\n", sha256.Sum256([]byte(body)), body)
		if err := os.WriteFile(file, []byte(old), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = fileindex.Open(fileindex.Options{Dir: dir})
		if !errors.Is(err, fileindex.ErrFormat) || guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Fatalf("the error is %v", err)
		}
		message := err.Error() + guideway.ErrorFix(err)
		for _, part := range append(want, file, "supports format 2") {
			if !strings.Contains(message, part) {
				t.Errorf("%q lacks %q", message, part)
			}
		}
		if now, err := os.ReadFile(file); err != nil || string(now) != old {
			t.Errorf("the file is now %s (%v)", now, err)
		}
	}
}
