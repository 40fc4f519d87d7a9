package safeopen_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

func TestOpensFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "file")
	if err := os.WriteFile(name, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for way, open := range map[string]func() (fs.File, error){
		"by name":      func() (fs.File, error) { return safeopen.Open(name) },
		"by a link":    func() (fs.File, error) { return safeopen.Open(filepath.Join(dir, "link")) },
		"below a root": func() (fs.File, error) { return safeopen.OpenIn(root, "link") },
		"in a system":  func() (fs.File, error) { return safeopen.In(root).Open("file") },
	} {
		file, err := open()
		if err != nil {
			t.Errorf("%s: %v", way, err)
			continue
		}
		if got, err := io.ReadAll(file); err != nil || string(got) != "text" {
			t.Errorf("%s: %q, %v", way, got, err)
		}
		_ = file.Close()
	}
	if _, err := safeopen.Open(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing file returned %v", err)
	}
	if entries, err := fs.ReadDir(safeopen.In(root), "."); err != nil || len(entries) != 2 {
		t.Errorf("the directory lists as %v, %v", entries, err)
	}
	if _, err := fs.ReadFile(safeopen.In(root), "../file"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path that leaves the directory returned %v", err)
	}
	if _, err := safeopen.Open(dir); !errors.Is(err, safeopen.ErrSpecial) || !strings.Contains(err.Error(), "a directory") {
		t.Errorf("a directory: %v", err)
	}
}

// TestReadEndsWithItsContext checks that Read returns when its context is done, and that it
// reads at most one byte more than its limit.
func TestReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	silent, other := io.Pipe()
	t.Cleanup(func() { _ = other.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := safeopen.Read(ctx, silent, 10); !errors.Is(err, context.Canceled) {
		t.Errorf("Read of an idle pipe returned %v", err)
	}
	got, err := safeopen.Read(t.Context(), strings.NewReader("0123456789"), 3)
	if err != nil || string(got) != "0123" {
		t.Errorf("Read of ten bytes with a limit of three returned %q, %v", got, err)
	}
}
