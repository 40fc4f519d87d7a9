//go:build unix

package atomicfile_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

const otherUser = 54321

// newForeignDir returns a directory of another user, and a file of root outside that
// directory.
func newForeignDir(t *testing.T) (dir, rootFile string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a directory to another user")
	}
	dir, rootFile = filepath.Join(t.TempDir(), "foreign"), filepath.Join(t.TempDir(), "secret")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(dir, otherUser, otherUser); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(rootFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, rootFile
}

func uidOf(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

// TestOwnerOfLinkedFilesIsKept checks that no file of root changes its owner if another user
// has created links to it at the names where root creates files.
func TestOwnerOfLinkedFilesIsKept(t *testing.T) {
	t.Parallel()
	dir, secret := newForeignDir(t)
	rootDir := t.TempDir()
	for name, link := range map[string]func(string) error{
		"symlink":  func(path string) error { return os.Symlink(secret, path) },
		"hardlink": func(path string) error { return os.Link(secret, path) },
		"dirlink":  func(path string) error { return os.Symlink(rootDir, path) },
		"dangling": func(path string) error { return os.Symlink(filepath.Join(rootDir, "none"), path) },
	} {
		for use, do := range map[string]func(string) error{
			"ensure":  atomicfile.EnsureFile,
			"create":  func(path string) error { return atomicfile.Create(path, "x") },
			"makedir": atomicfile.MakeDir,
			"append": func(path string) error {
				file, err := atomicfile.OpenAppend(path)
				if err == nil {
					err = file.Close()
				}
				return err
			},
			"replace": func(path string) error { return atomicfile.Replace(path, "x") },
		} {
			path := filepath.Join(dir, name+use)
			if err := link(path); err != nil {
				t.Fatal(err)
			}
			_ = do(path)
			if uidOf(t, secret) != 0 || uidOf(t, rootDir) != 0 {
				t.Fatalf("%s of a %s changed the owner of root's file", use, name)
			}
		}
	}
	entries, err := os.ReadDir(rootDir)
	for _, entry := range entries {
		if uidOf(t, filepath.Join(rootDir, entry.Name())) != 0 {
			t.Errorf("%s in root's directory has another owner", entry.Name())
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOwnerOfRootsDirectoryIsKept checks that a directory of root in the directory of
// another user keeps its owner, and that everything that root creates in it belongs to root.
func TestOwnerOfRootsDirectoryIsKept(t *testing.T) {
	t.Parallel()
	dir, _ := newForeignDir(t)
	old := filepath.Join(dir, "old")
	if err := os.Mkdir(old, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.MakeDir(filepath.Join(old, "new")); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Create(filepath.Join(old, "new", "file"), "x"); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "new", "new/file"} {
		if got := uidOf(t, filepath.Join(old, name)); got != 0 {
			t.Errorf("old/%s belongs to %d", name, got)
		}
	}
}

// TestNewFilesHaveTheOwnerOfTheirDirectory checks that files and directories that root
// creates in the directory of another user belong to that user.
func TestNewFilesHaveTheOwnerOfTheirDirectory(t *testing.T) {
	t.Parallel()
	dir, _ := newForeignDir(t)
	path := filepath.Join(dir, "a", "b", "file")
	if err := atomicfile.Create(path, "one"); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(path, "two"); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.EnsureFile(path + ".lock"); err != nil {
		t.Fatal(err)
	}
	file, err := atomicfile.OpenAppend(path + ".log")
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	for _, name := range []string{"a", "a/b", "a/b/file", "a/b/file.lock", "a/b/file.log"} {
		if got := uidOf(t, filepath.Join(dir, name)); got != otherUser {
			t.Errorf("%s belongs to %d", name, got)
		}
	}
}
