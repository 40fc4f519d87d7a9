package blob

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/guideway-dev/guideway"
)

func openFiles(t *testing.T, o FilesOptions) *Files {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	f, err := OpenFiles(o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFlippedBits checks that any changed bit, truncation or extension of a blob is
// detected.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	f := openFiles(t, FilesOptions{})
	data := bytes.Repeat([]byte("content "), 20)
	name, err := f.Put(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	path := f.blobPath(name)
	rapid.Check(t, func(t *rapid.T) {
		spoilt := bytes.Clone(data)
		switch i := rapid.IntRange(0, len(data)-1).Draw(t, "at"); rapid.SampledFrom([]string{"flip", "cut", "add"}).Draw(t, "how") {
		case "flip":
			spoilt[i] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		case "cut":
			spoilt = spoilt[:i]
		case "add":
			spoilt = append(spoilt, spoilt[i])
		}
		if err := os.WriteFile(path, spoilt, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Get(context.Background(), name); !errors.Is(err, ErrCorrupt) {
			t.Fatalf("Get returned %v", err)
		}
	})
	// Another Put repairs the blob.
	if _, err := f.Put(t.Context(), data); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Get(t.Context(), name); err != nil || !bytes.Equal(got, data) {
		t.Errorf("after the repair Get returned %v", err)
	}
}

// TestEveryStepFails injects each error at each step of a write: the error must have a code
// and a fix, the blob must have its whole content or not exist, and the next write must
// succeed.
func TestEveryStepFails(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"create", "write", "sync", "rename", "sync dir"} {
		for _, cause := range []error{syscall.ENOSPC, syscall.EIO, syscall.EDQUOT} {
			t.Run(fmt.Sprint(step, " ", cause), func(t *testing.T) {
				t.Parallel()
				broken := false
				f := openFiles(t, FilesOptions{fault: func(at, _ string) error {
					if broken && at == step {
						return cause
					}
					return nil
				}})
				data := []byte("content of " + step)
				broken = true
				_, err := f.Put(t.Context(), data)
				if guideway.ErrorCode(err) != guideway.CodeUnavailable || !errors.Is(err, cause) || guideway.ErrorFix(err) == "" {
					t.Fatalf("the error is %v (%s)", err, guideway.ErrorCode(err))
				}
				if IsFull(err) != (cause != syscall.EIO) { //nolint:errorlint // the errors are the values in the table, not wrapped
					t.Errorf("a full disk is not distinguished from a disk error: %v", err)
				}
				if got, err := f.Get(t.Context(), NameOf(data)); err == nil && !bytes.Equal(got, data) {
					t.Errorf("a part of the blob is stored: %q", got)
				} else if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
					t.Errorf("Get returned %v", err)
				}
				broken = false
				if name, err := f.Put(t.Context(), data); err != nil {
					t.Error(err)
				} else if got, err := f.Get(t.Context(), name); err != nil || !bytes.Equal(got, data) {
					t.Errorf("at the end Get returned %q, %v", got, err)
				}
				if left := countLeftovers(t, f); left > 0 {
					t.Errorf("%d temporary files remain", left)
				}
			})
		}
	}
}

func countLeftovers(t *testing.T, f *Files) (n int) {
	t.Helper()
	err := filepath.WalkDir(f.Dir(), func(_ string, entry fs.DirEntry, err error) error {
		if strings.HasPrefix(entry.Name(), tempPrefix) {
			n++
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestSweepLeftovers checks that files of unfinished writes are removed after a while, and
// not before.
func TestSweepLeftovers(t *testing.T) {
	t.Parallel()
	f := openFiles(t, FilesOptions{})
	name, err := f.Put(t.Context(), []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Dir(f.blobPath(name))
	old, young, foreign := filepath.Join(dir, tempPrefix+"old"), filepath.Join(dir, tempPrefix+"young"), filepath.Join(dir, "notes.txt")
	for _, path := range []string{old, young, foreign} {
		if err := os.WriteFile(path, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-2 * staleAfter)
	for _, path := range []string{old, foreign} {
		if err := os.Chtimes(path, past, past); err != nil {
			t.Fatal(err)
		}
	}
	swept, err := f.Sweep(t.Context(), func(Info) bool { return true })
	if err != nil || swept.Leftovers != 1 || swept.Blobs != 0 {
		t.Errorf("Sweep returned %+v (%v)", swept, err)
	}
	for path, there := range map[string]bool{old: false, young: true, foreign: true, f.blobPath(name): true} {
		if _, err := os.Stat(path); (err == nil) != there {
			t.Errorf("%s: Stat returned %v", path, err)
		}
	}
}

// TestErased checks that the bytes of an erased slot are overwritten with zeros.
func TestErased(t *testing.T) {
	t.Parallel()
	f := openFiles(t, FilesOptions{})
	if err := f.CreateSlot(t.Context(), "key-1", []byte("wrapped")); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "link")
	if err := os.Link(f.slotPath("key-1"), other); err != nil {
		t.Skip("the file system has no hard links")
	}
	if err := f.EraseSlot(t.Context(), "key-1"); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(other); err != nil || !bytes.Equal(got, make([]byte, len("wrapped"))) {
		t.Errorf("the bytes are %q (%v)", got, err)
	}
}

// TestReserve checks that the disk space can be reserved and released, both repeatedly.
func TestReserve(t *testing.T) {
	t.Parallel()
	f := openFiles(t, FilesOptions{})
	for range 2 {
		if err := f.HoldReserve(); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(f.reservePath()); err != nil || info.Size() != reserveBytes || info.Mode().Perm() != 0o600 {
		t.Errorf("the reserve is %v (%v)", info, err)
	}
	for range 2 {
		if err := f.ReleaseReserve(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stat(f.reservePath()); !os.IsNotExist(err) {
		t.Errorf("the reserve exists: %v", err)
	}
}

// TestEachReportsErrors checks that Each returns the error of its callback with a code and a
// fix, and that Each and Sweep fail if the directory or the size of a file cannot be read.
func TestEachReportsErrors(t *testing.T) {
	t.Parallel()
	f := openFiles(t, FilesOptions{Dir: filepath.Join(t.TempDir(), "contexts")})
	if _, err := f.Put(t.Context(), []byte("text")); err != nil {
		t.Fatal(err)
	}
	plain, coded := errors.New("no"), guideway.Errorf(guideway.CodeConflict, "no")
	each := func(result error) error {
		return f.Each(t.Context(), func(Info) error { return result })
	}
	if err := each(nil); err != nil {
		t.Errorf("no error: %v", err)
	}
	if err := each(plain); !errors.Is(err, plain) || guideway.ErrorCode(err) != guideway.CodeUnavailable || guideway.ErrorFix(err) == "" {
		t.Errorf("the error of a visit: %v", err)
	}
	if err := each(coded); guideway.ErrorCode(err) != guideway.CodeConflict {
		t.Errorf("an error with a code: %v", err)
	}
	if runtime.GOOS == "windows" {
		return // Windows reports a missing directory if a file is in its place
	}
	if os.Geteuid() != 0 { // root can access every file
		dirs, err := filepath.Glob(filepath.Join(f.Dir(), "blobs", "*"))
		if err != nil || len(dirs) == 0 {
			t.Fatalf("the directories of blobs are %q, %v", dirs, err)
		}
		for _, mode := range []os.FileMode{0o600, 0o700} {
			for _, dir := range dirs {
				if err := os.Chmod(dir, mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := each(nil); (err == nil) != (mode == 0o700) {
				t.Errorf("with the mode %v: %v", mode, err)
			}
		}
	}
	if err := errors.Join(os.Rename(f.Dir(), f.Dir()+"-moved"), os.WriteFile(f.Dir(), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := each(nil); guideway.ErrorCode(err) != guideway.CodeUnavailable || !errors.Is(err, syscall.ENOTDIR) {
		t.Errorf("a file in the place of the directory: %v", err)
	}
	if swept, err := f.Sweep(t.Context(), func(Info) bool { return true }); err == nil {
		t.Errorf("it was swept: %+v", swept)
	}
}

// TestOtherFilesAreNoSlots checks that files in the directory of the slots whose names are not
// keys, such as those of unfinished writes, are not listed.
func TestOtherFilesAreNoSlots(t *testing.T) {
	t.Parallel()
	f := openFiles(t, FilesOptions{})
	if err := f.CreateSlot(t.Context(), "key-1", []byte("value")); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".tmp-123", "key-1.bak", "key-1~", "Key-2", "key 3", "key-" + strings.Repeat("x", 150)} {
		if err := os.WriteFile(f.slotPath(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, prefix := range []string{"", "key-"} {
		if list, err := f.Slots(t.Context(), prefix); err != nil || len(list) != 1 || list[0].Key != "key-1" {
			t.Errorf("the slots with the prefix %q are %v, %v", prefix, list, err)
		}
	}
}
