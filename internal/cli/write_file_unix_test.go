//go:build unix

package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/cli/app"
)

// TestForcedPrivateFiles checks that an export which overwrites a file is private, whatever
// the mode of that file was, and that it follows no link and opens no pipe. Without --force
// nothing changes.
func TestForcedPrivateFiles(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		prepare  func(path, other string) error
		replaced bool
	}{
		"readable file": {func(path, _ string) error {
			return errors.Join(os.WriteFile(path, []byte("a longer old text"), 0o600), os.Chmod(path, 0o644))
		}, true},
		"hard link":     {func(path, other string) error { return os.Link(other, path) }, true},
		"link":          {func(path, other string) error { return os.Symlink(other, path) }, false},
		"dangling link": {func(path, other string) error { return os.Symlink(other+"-none", path) }, false},
		"device":        {func(path, _ string) error { return os.Symlink(os.DevNull, path) }, false},
		"pipe":          {func(path, _ string) error { return syscall.Mkfifo(path, 0o600) }, false},
		"directory":     {func(path, _ string) error { return os.Mkdir(path, 0o700) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
			path := filepath.Join(dir, "run.json")
			if err := errors.Join(os.WriteFile(other, []byte("other"), 0o600), tt.prepare(path, other)); err != nil {
				t.Fatal(err)
			}
			before, err := os.Lstat(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := app.WriteNewFile(path, []byte("new"), 0o600, false); guideway.ErrorCode(err) != guideway.CodeConflict {
				t.Errorf("without force: %v", err)
			}
			err = app.WriteNewFile(path, []byte("new"), 0o600, true)
			after, statErr := os.Lstat(path)
			if statErr != nil {
				t.Fatal(statErr)
			}
			if tt.replaced {
				if text, readErr := os.ReadFile(path); err != nil || readErr != nil || string(text) != "new" || after.Mode() != 0o600 {
					t.Errorf("%q with the mode %v: %v, %v", text, after.Mode(), err, readErr)
				}
			} else if guideway.ErrorCode(err) != guideway.CodeConflict || !strings.Contains(err.Error(), "not a regular file") || after.Mode() != before.Mode() {
				t.Errorf("%v, and the mode %v", err, after.Mode())
			}
			if text, err := os.ReadFile(other); err != nil || string(text) != "other" {
				t.Errorf("the other file has %q, %v", text, err)
			}
			if _, err := os.Lstat(other + "-none"); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the target of the link: %v", err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("%v remain, %v", entries, err)
			}
		})
	}
}

// TestForcedPublicFiles checks that overwriting a public file follows a link, and keeps the
// mode of the target.
func TestForcedPublicFiles(t *testing.T) {
	t.Parallel()
	target := filepath.Join(t.TempDir(), "target")
	path := filepath.Join(t.TempDir(), "hook.json")
	if err := errors.Join(os.WriteFile(target, []byte("a longer old text"), 0o600), os.Symlink(target, path)); err != nil {
		t.Fatal(err)
	}
	err := app.WriteNewFile(path, []byte("new"), 0o644, true)
	text, readErr := os.ReadFile(target)
	info, statErr := os.Stat(target)
	if err := errors.Join(err, readErr, statErr); err != nil || string(text) != "new" || info.Mode() != 0o600 {
		t.Errorf("%q, %v", text, err)
	}
}
