package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

func secretFile(path string) atomicfile.File {
	return atomicfile.File{Path: path, What: "key file", MaxBytes: 16, IfSeen: "note that others may have read it"}
}

func noText() string { return "generated" }

// TestRead checks that only regular files that no other user can read are read, up to the
// maximum size. The error for a missing file is fs.ErrNotExist. Any other error has a fix,
// and no file is created.
func TestRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for text, want := range map[string]string{"": "", "a text\n": "a text\n", "more than sixteen bytes": "more than sixtee"} {
		path := write("good", text, 0o600)
		if got, err := secretFile(path).Read(); err != nil || got != want {
			t.Errorf("%q is read as %q, %v", text, got, err)
		}
		if got, created, err := secretFile(path).ReadOrCreate(noText); err != nil || created || got != want {
			t.Errorf("%q is read as %q, created %v, %v", text, got, created, err)
		}
	}
	if _, err := secretFile(filepath.Join(dir, "none")).Read(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read of a missing file returned %v", err)
	}
	bad := map[string]guideway.Code{dir: guideway.CodeInvalid}
	if runtime.GOOS != "windows" {
		bad[write("of all", "text", 0o644)] = guideway.CodeForbidden
		bad[write("readable by the group", "text", 0o640)] = guideway.CodeForbidden
		bad[write("to be executed", "text", 0o601)] = guideway.CodeForbidden
		bad[filepath.Join(write("a file", "text", 0o600), "below")] = guideway.CodeUnavailable
		if os.Getuid() != 0 {
			bad[write("unreadable", "text", 0o200)] = guideway.CodeUnavailable
		}
	}
	for path, code := range bad {
		_, err := secretFile(path).Read()
		if guideway.ErrorCode(err) != code || guideway.ErrorFix(err) == "" || !strings.Contains(err.Error(), "key file") {
			t.Errorf("%s: %v, want %s", path, err, code)
		}
		_, created, err := secretFile(path).ReadOrCreate(noText)
		if guideway.ErrorCode(err) != code || created {
			t.Errorf("%s: created %v, %v, want %s", path, created, err, code)
		}
	}
}

// TestReadOrCreate checks that a missing file is created once, together with its
// directories, and that a dangling link is kept.
func TestReadOrCreate(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a", "b", "c", "file")
	for i := range 2 {
		text, created, err := secretFile(path).ReadOrCreate(noText)
		if err != nil || text != "generated" || created != (i == 0) {
			t.Errorf("call %d: %q, created %v, %v", i+1, text, created, err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != "generated" {
		t.Errorf("the file contains %q, %v", got, err)
	}
	for dir := filepath.Dir(path); filepath.Base(dir) != "a"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", dir, info, err)
		}
	}
	// A dangling link cannot be read, and no file can be created in its place.
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink("nothing", link); err != nil {
		t.Skip("links are not supported:", err)
	}
	if _, created, err := secretFile(link).ReadOrCreate(noText); err == nil || created {
		t.Errorf("a dangling link: created %v, %v", created, err)
	}
	if text, err := os.Readlink(link); err != nil || text != "nothing" {
		t.Errorf("the link is %q, %v", text, err)
	}
}

// TestUnusableDirectory checks that no function reports success for a directory that is a
// file or is missing.
func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Create":         atomicfile.Create(filepath.Join(file, "x"), "text"),
		"Replace":        atomicfile.Replace(filepath.Join(file, "x"), "text"),
		"MakeDir":        atomicfile.MakeDir(filepath.Join(file, "x")),
		"MakeDir itself": atomicfile.MakeDir(file),
		"SyncDir":        atomicfile.SyncDir(filepath.Join(filepath.Dir(file), "none")),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, err := range map[string]error{
		"MakeDir": atomicfile.MakeDir(filepath.Dir(file)), "SyncDir": atomicfile.SyncDir(filepath.Dir(file)),
	} {
		if err != nil {
			t.Errorf("%s of a directory: %v", name, err)
		}
	}
}
