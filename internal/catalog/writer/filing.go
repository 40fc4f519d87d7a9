// Package writer writes documents into the directories of sources, for people who
// edit them: whole or not at all, against the version that a change began from,
// and nowhere out of the directory.
package writer

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// maxBytes bounds what is read of a file: no document is larger.
const maxBytes = 1 << 20

// Writable tells the directories of this user and of the project from what is
// built in and what others answer for.
func Writable(s catalog.SourceInfo) bool {
	return s.Kind == "dir" && s.Location != "" && (s.Trust == catalog.TrustUser || s.Trust == catalog.TrustProject)
}

// Base names a version of a text.
func Base(text []byte) string {
	sum := sha256.Sum256(text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Format is that of a document's text: "json" or "yaml".
func Format(text string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "json"
	}
	return "yaml"
}

// Change is a new text for a document of a source.
type Change struct {
	// Name is the document's within the source, with slashes.
	Name string
	Text string
	// Base is the version that the change began from; empty where there was none.
	Base string
}

// Read gives the text of a document; the error is fs.ErrNotExist where there is
// none.
func Read(info catalog.SourceInfo, name string) ([]byte, error) {
	root, err := os.OpenRoot(info.Location)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readIn(root, name)
}

// Save puts a text in place of the version that the change began from. Where that
// is not what is there any more, the code of the error is guideway.CodeConflict
// and nothing was written. Nothing is written out of the source's directory, by a
// link neither.
func Save(info catalog.SourceInfo, c Change) error {
	return within(info, func(root *os.Root) error {
		mode, err := check(root, info, c.Name, c.Base)
		if err != nil {
			return err
		}
		if dir := filepath.Dir(c.Name); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return unwritable(info, err)
			}
		}
		if err := replace(root, c.Name, c.Text, mode); err != nil {
			return unwritable(info, err)
		}
		return nil
	})
}

// Remove deletes a document, if it is the version that base names.
func Remove(info catalog.SourceInfo, name, base string) error {
	return within(info, func(root *os.Root) error {
		if base == "" {
			return guideway.Errorf(guideway.CodeInvalid, "which version of %s is to be deleted is not said", name).
				WithFix("name the version that you have looked at")
		}
		if _, err := check(root, info, name, base); err != nil {
			return err
		}
		if err := root.Remove(name); err != nil {
			return unwritable(info, err)
		}
		return nil
	})
}

// within opens the source's directory, which is made where there is none.
func within(info catalog.SourceInfo, do func(*os.Root) error) error {
	if err := os.MkdirAll(info.Location, 0o755); err != nil { // as an editor makes it
		return unwritable(info, err)
	}
	root, err := os.OpenRoot(info.Location)
	if err != nil {
		return unwritable(info, err)
	}
	defer func() { _ = root.Close() }()
	return do(root)
}

// check says whether what is there is what a change began from, and gives the
// rights that its file is to have.
func check(root *os.Root, info catalog.SourceInfo, name, base string) (fs.FileMode, error) {
	mode := fs.FileMode(0o644)
	switch now, err := readIn(root, name); {
	case errors.Is(err, fs.ErrNotExist):
		if base != "" {
			return 0, guideway.Errorf(guideway.CodeConflict, "%s was deleted since this change began", name).
				WithFix("save it as a new file, or leave it")
		}
	case err != nil:
		return 0, unwritable(info, err)
	case base == "":
		return 0, guideway.Errorf(guideway.CodeConflict, "%s has a file %s already", info.Name, name).
			WithFix("open that one, or choose another id")
	case Base(now) != base:
		return 0, guideway.Errorf(guideway.CodeConflict, "%s was changed since this change began", name).
			WithFix("look at what is there now, and bring the two together")
	default:
		if stat, err := root.Stat(name); err == nil {
			mode = stat.Mode().Perm()
		}
	}
	return mode, nil
}

func readIn(root *os.Root, name string) ([]byte, error) {
	file, err := safeopen.OpenIn(root, name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	return io.ReadAll(io.LimitReader(file, maxBytes+1))
}

// replace writes beside the file and renames. The name begins with a dot, which
// sources pass over.
func replace(root *os.Root, name, text string, mode fs.FileMode) error {
	beside := filepath.Join(filepath.Dir(name), ".saving-"+filepath.Base(name))
	_ = root.Remove(beside) // of a program that was killed
	file, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.WriteString(file, text)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		_ = root.Remove(beside)
	}
	return err
}

func unwritable(info catalog.SourceInfo, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "write to %s: %w", info.Name, err).
		WithFix("make %s writable for this user", info.Location)
}
