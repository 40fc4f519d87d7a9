// Package writer writes documents into the directories of sources, for people who edit
// them: atomically, only if the document is unchanged since it was read, and never outside
// of the directory.
package writer

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
	"github.com/guideway-dev/guideway/internal/platform/digest"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// maxBytes is the default size limit of a document. A larger file is not read completely.
const maxBytes = 1 << 20

// IsWritable reports whether a source is a directory of the user or the project.
func IsWritable(s catalog.SourceInfo) bool {
	return s.Kind == "dir" && s.Location != "" && (s.Trust == catalog.TrustUser || s.Trust == catalog.TrustProject)
}

// Version identifies the version of a text.
func Version(text []byte) string {
	return "sha256:" + digest.Hex(text)
}

// Format returns the format of a document's text: "json" or "yaml".
func Format(text string) string {
	if strings.HasPrefix(strings.TrimSpace(text), "{") {
		return "json"
	}
	return "yaml"
}

// Change is a new text for a document of a source.
type Change struct {
	// Name is the name of the document in the source, with slashes.
	Name string
	Text string
	// Base is the version that was edited; empty for a new document.
	Base string
}

// Read returns the text of a document; the error is fs.ErrNotExist if it does not exist.
func Read(info catalog.SourceInfo, name string) ([]byte, error) {
	root, err := os.OpenRoot(info.Location)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	return readIn(root, name)
}

// Save replaces the version that was edited. If the document has changed since, the error
// has guideway.CodeConflict and nothing is written. It writes nothing outside of the
// source's directory, not even through a link.
func Save(info catalog.SourceInfo, c Change) error {
	return inSourceDir(info, func(root *os.Root) error {
		mode, err := checkBase(root, info, c.Name, c.Base)
		if err != nil {
			return err
		}
		if dir := filepath.Dir(c.Name); dir != "." {
			if err := root.MkdirAll(dir, 0o755); err != nil {
				return writeError(info, err)
			}
		}
		if err := replaceFile(root, c.Name, c.Text, mode); err != nil {
			return writeError(info, err)
		}
		return nil
	})
}

// Remove deletes a document if its version is base.
func Remove(info catalog.SourceInfo, name, base string) error {
	return inSourceDir(info, func(root *os.Root) error {
		if base == "" {
			return guideway.Errorf(guideway.CodeInvalid, "the request to delete the file %s does not state the version of the file", name).
				WithFix("set \"base\" to the version of the text that you reviewed")
		}
		if _, err := checkBase(root, info, name, base); err != nil {
			return err
		}
		if err := root.Remove(name); err != nil {
			return writeError(info, err)
		}
		return nil
	})
}

// inSourceDir opens the source's directory, and creates it if it does not exist.
func inSourceDir(info catalog.SourceInfo, do func(*os.Root) error) error {
	if err := atomicfile.MakeDirMode(info.Location, 0o755); err != nil { // 0755 is the mode that an editor would give the directory
		return writeError(info, err)
	}
	root, err := os.OpenRoot(info.Location)
	if err != nil {
		return writeError(info, err)
	}
	defer func() { _ = root.Close() }()
	return do(root)
}

// checkBase checks that the document has the version base, and returns the mode for its
// file.
func checkBase(root *os.Root, info catalog.SourceInfo, name, base string) (fs.FileMode, error) {
	mode := fs.FileMode(0o644)
	switch now, err := readIn(root, name); {
	case errors.Is(err, fs.ErrNotExist):
		if base != "" {
			return 0, guideway.Errorf(guideway.CodeConflict, "the file %s was deleted from the source %s after you read it", name, info.Name).
				WithFix("reload the source; to restore the file, save its text as a new file, without a base version")
		}
	case err != nil:
		return 0, writeError(info, err)
	case base == "":
		return 0, guideway.Errorf(guideway.CodeConflict, "the source %s already has a file %s", info.Name, name).
			WithFix("open and change the existing file, or choose a different id")
	case Version(now) != base:
		return 0, guideway.Errorf(guideway.CodeConflict, "the file %s of the source %s was changed after you read it", name, info.Name).
			WithFix("reload the file, and repeat your change on the current version")
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

// replaceFile writes a temporary file and renames it. The name of the temporary file begins
// with a dot, so that sources skip it.
func replaceFile(root *os.Root, name, text string, mode fs.FileMode) error {
	beside := filepath.Join(filepath.Dir(name), ".saving-"+filepath.Base(name))
	_ = root.Remove(beside) // left by a killed program
	file, err := root.OpenFile(beside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	atomicfile.KeepOwner(file)
	if err = writeSynced(file, text); err == nil {
		err = root.Rename(beside, name)
	}
	if err != nil {
		_ = root.Remove(beside)
	}
	return err
}

// syncedFile is the part of a file that writeSynced uses.
type syncedFile interface {
	io.WriteCloser
	Sync() error
}

// writeSynced writes a text, makes it durable, and closes the file. Only then may the file
// take the place of another one.
func writeSynced(file syncedFile, text string) error {
	_, err := io.WriteString(file, text)
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

func writeError(info catalog.SourceInfo, err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "change the source %s: %w", info.Name, err).
		WithFix("make sure that %s is readable and writable for this user and has free space", info.Location)
}
