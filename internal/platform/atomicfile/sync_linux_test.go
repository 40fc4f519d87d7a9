package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// nobody is the id of a user without rights.
const nobody = 65534

// runAsNobody runs a function as a user without rights, if this process may do that. The
// thread of the function ends with the function, so that no other code runs as that user.
func runAsNobody(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		_, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, nobody, 0, 0)
		f()
	}()
	<-done
}

// TestUnsyncedNameIsAnError checks that Create and Replace report a name that they cannot
// make durable: the directory can be written, but not opened.
func TestUnsyncedNameIsAnError(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	dir := filepath.Join(base, "write only")
	if err := errors.Join(os.Chmod(filepath.Dir(base), 0o711), os.Mkdir(dir, 0o700), os.Chmod(dir, 0o300)); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		err := os.Chown(dir, nobody, nobody)
		runAsNobody(func() { err = errors.Join(err, os.WriteFile(filepath.Join(dir, "first"), nil, 0o600)) })
		if err != nil {
			t.Skip("no directory can be given away:", err)
		}
	}
	for name, write := range map[string]func(path, text string) error{"Create": atomicfile.Create, "Replace": atomicfile.Replace} {
		path := filepath.Join(dir, name)
		runAsNobody(func() {
			if err := write(path, "text"); !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s in a directory that cannot be opened: %v", name, err)
			}
			if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
				t.Errorf("%s was not stopped by the sync, but before: %q, %v", name, text, err)
			}
		})
	}
}

// TestUnsyncedParentIsAnError checks that MakeDir reports a parent that it cannot sync, even
// if the directory exists. The path in this test contains a link, so that its cleaned form
// has a parent that does not exist.
func TestUnsyncedParentIsAnError(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	at := func(names ...string) string { return root + "/" + strings.Join(names, "/") }
	if err := errors.Join(os.MkdirAll(at("real", "a", "b"), 0o700), os.MkdirAll(at("real", "y", "x"), 0o700), os.Symlink(at("real", "a", "b"), at("link"))); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.MakeDir(at("real", "y", "x")); err != nil {
		t.Errorf("the directory itself: %v", err)
	}
	// The path leads to real/y/x, but its cleaned form leads to a missing directory.
	if err := atomicfile.MakeDir(at("link", "..", "..", "y", "x")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a parent that is not there: %v", err)
	}
}

// TestNoFileStaysOpen checks that no function leaves a file or a directory open.
func TestNoFileStaysOpen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, public := filepath.Join(dir, "file"), filepath.Join(dir, "public")
	if err := errors.Join(os.WriteFile(public, nil, 0o600), os.Chmod(public, 0o644)); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_ = atomicfile.Create(path, "text")
		_ = atomicfile.Replace(path, "text")
		_ = atomicfile.Replace(dir, "text")
		_ = atomicfile.MakeDir(filepath.Join(dir, "a", "b"))
		_ = atomicfile.SyncDir(dir)
		_, _ = secretFile(path).Read()
		_, _ = secretFile(public).Read()
	}
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("the open files are unknown:", err)
	}
	for _, f := range list {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, dir) {
			t.Errorf("%s is still open", to)
		}
	}
}

// TestUnwritableName checks that a name that can be looked up but not created is an error
// with a fix, and that the text, which was not written to any file, is not returned.
func TestUnwritableName(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), strings.Repeat("x", 250)) // a temporary name is longer
	text, created, err := secretFile(path).ReadOrCreate(noText)
	if guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" || !errors.Is(err, syscall.ENAMETOOLONG) || text != "" || created {
		t.Errorf("%q, created %v, %v", text, created, err)
	}
}

// TestErrorHasItsCause checks that the errors for files and directories that cannot be
// opened wrap the error of the system.
func TestErrorHasItsCause(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := secretFile(filepath.Join(file, "below")).Read(); !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file below a file: %v", err)
	}
	if err := atomicfile.SyncDir(filepath.Join(filepath.Dir(file), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync a missing directory: %v", err)
	}
}
