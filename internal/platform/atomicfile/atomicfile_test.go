package atomicfile_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// TestCreateOnce checks that if several goroutines create one file, one succeeds, all read
// its text, and no temporary file remains.
func TestCreateOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made")
	path := filepath.Join(dir, "file")
	var group sync.WaitGroup
	var mu sync.Mutex
	made := ""
	for i := range 8 {
		group.Go(func() {
			text := fmt.Sprintf("text %d", i)
			err := atomicfile.Create(path, text)
			got, readErr := os.ReadFile(path)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil && made == "":
				made = text
			case !errors.Is(err, fs.ErrExist):
				t.Errorf("Create of an existing file returned %v", err)
			}
			if readErr != nil || len(got) != len(text) {
				t.Errorf("after Create the file contains %q, %v", got, readErr)
			}
		})
	}
	group.Wait()
	if got, err := os.ReadFile(path); err != nil || string(got) != made {
		t.Errorf("the file contains %q, the created text was %q (%v)", got, made, err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%d files remain, want 1 (%v)", len(entries), err)
	}
}

func TestReplace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "made", "file")
	for _, text := range []string{"one", "a longer text", ""} {
		if err := atomicfile.Replace(path, text); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != text {
			t.Fatalf("the file contains %q, want %q (%v)", got, text, err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the mode is %v (%v)", info.Mode().Perm(), err)
		}
	}
	full := errors.New("the disk is full")
	if err := atomicfile.ReplaceWith(path, func(w io.Writer) error {
		_, _ = io.WriteString(w, "a part")
		return full
	}); !errors.Is(err, full) {
		t.Errorf("a content that cannot be written: %v", err)
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != "" {
		t.Errorf("after a failed write the file contains %q (%v)", got, err)
	}
	if err := atomicfile.Replace(filepath.Dir(path), "text"); err == nil {
		t.Error("a directory was replaced")
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("%d files remain, want 1 (%v)", len(entries), err)
	}
}

// TestEnsureFile checks that EnsureFile creates an empty private file, keeps an existing one,
// and returns the error for a file that it cannot create.
func TestEnsureFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"", "text"} {
		if err := atomicfile.EnsureFile(path); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != text {
			t.Errorf("the file contains %q, want %q (%v)", got, text, err)
		}
		if err := os.WriteFile(path, []byte("text"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := atomicfile.EnsureFile(filepath.Join(filepath.Dir(path), "missing", "file")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file in a missing directory: %v", err)
	}
}
