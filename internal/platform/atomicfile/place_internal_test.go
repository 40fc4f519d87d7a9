package atomicfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// TestCreateInPlace checks the creation of a file on a file system without hard links: the
// file has the text, only its owner can read it, and an existing file is kept.
func TestCreateInPlace(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "file")
	if err := createInPlace(path, "first"); err != nil {
		t.Fatal(err)
	}
	if err := createInPlace(path, "second"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("create an existing file: %v", err)
	}
	text, err := os.ReadFile(path)
	if err != nil || string(text) != "first" {
		t.Errorf("the file contains %q, %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file is %v, %v", info, err)
	}
}
