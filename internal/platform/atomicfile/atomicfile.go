// Package atomicfile reads and writes files that are private to one user, such as token and
// key files. Replace writes atomically, and so does Create if the file system supports hard
// links.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/safeopen"
)

// File is a file with a secret.
type File struct {
	Path string
	// What is the noun for the file in messages, such as "token file".
	What string
	// IfSeen is the suggested action if other users may have read the secret.
	IfSeen string
	// MaxBytes is the maximum number of bytes that are read.
	MaxBytes int64
}

// ReadOrCreate returns the file's text. If the file does not exist, ReadOrCreate creates it
// with the text that generate returns, and created is true. Processes that start at the
// same time get the same text. An error is a *guideway.Error with a fix; the file is then
// unchanged.
func (f File) ReadOrCreate(generate func() string) (text string, created bool, err error) {
	text, err = f.Read()
	if !errors.Is(err, fs.ErrNotExist) {
		return text, false, err
	}
	text = generate()
	err = Create(f.Path, text)
	if errors.Is(err, fs.ErrExist) { // another process created the file
		text, err = f.Read()
		return text, false, err
	}
	if err != nil {
		return "", false, guideway.Errorf(guideway.CodeUnavailable, "create the %s: %w", f.What, err).
			WithFix("make the directory %s writable for this user, and check that its disk is not full", filepath.Dir(f.Path))
	}
	return text, true, nil
}

// Read returns the text of a regular file. It refuses a file to which other users have
// access, except on Windows. The error is fs.ErrNotExist if the file does not exist,
// otherwise a *guideway.Error.
func (f File) Read() (string, error) {
	file, err := f.openFile()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, f.MaxBytes))
	if err != nil {
		return "", f.readError(err)
	}
	return string(text), nil
}

func (f File) openFile() (*os.File, error) {
	// Check before opening, because opening a named pipe would block.
	info, err := os.Stat(f.Path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the %s %s is %s, not a regular file", f.What, f.Path, safeopen.Kind(info.Mode())).
			WithFix("rename %s, and restore the %s from a backup, if you have a backup", f.Path, f.What)
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(f.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err == nil {
		info, err = file.Stat()
	}
	if err != nil {
		_ = file.Close() // file may be nil
		return nil, f.readError(err)
	}
	// Windows has no permission bits; the user's profile protects the file there.
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		_ = file.Close()
		return nil, guideway.Errorf(guideway.CodeForbidden, "other users have access to the %s %s (its mode is %#o)", f.What, f.Path, perm).
			WithFix("chmod 600 %s; if others use this computer, %s", f.Path, f.IfSeen)
	}
	return file, nil
}

func (f File) readError(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "read the %s: %w", f.What, err).
		WithFix("make %s readable for this user only, with chown and chmod 600", f.Path)
}

// Create durably creates a file. The error is fs.ErrExist if the file exists. If the file
// system supports hard links, the file is a link to a complete temporary file, so that a
// process that sees the name sees the whole content.
func Create(path, text string) error {
	temp, err := writeTemp(path, writeText(text))
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	err = os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = createInPlace(path, text) // the file system does not support hard links
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace atomically and durably creates or replaces a file.
func Replace(path, text string) error { return ReplaceWith(path, writeText(text)) }

// ReplaceWith is like Replace, for a content that write writes.
func ReplaceWith(path string, write func(io.Writer) error) error {
	temp, err := writeTemp(path, write)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return SyncDir(filepath.Dir(path))
}

func writeText(text string) func(io.Writer) error {
	return func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	}
}

// writeTemp creates a private temporary file in the directory of path, and the directory if
// it is missing.
func writeTemp(path string, write func(io.Writer) error) (name string, err error) {
	dir := filepath.Dir(path)
	if err := MakeDir(dir); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // CreateTemp uses the mode 0600
	if err != nil {
		return "", err
	}
	KeepOwner(temp)
	if err = errors.Join(write(temp), temp.Sync(), temp.Close()); err != nil {
		_ = os.Remove(temp.Name())
		return "", err
	}
	return temp.Name(), nil
}

// createInPlace creates a file without hard links. Another process may see an incomplete
// file, but never a different text.
func createInPlace(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	KeepOwner(file)
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// EnsureFile creates an empty private file, such as a lock file, if it does not exist.
func EnsureFile(path string) error {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	KeepOwner(file)
	return file.Close()
}

// OpenAppend opens a private file to append to it, and creates the file if it does not
// exist.
func OpenAppend(path string) (*os.File, error) {
	_ = EnsureFile(path) // if it failed, opening the file returns the error
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
}

// MakeDir durably creates a private directory and its missing parents, with the owner of
// the directory that contains them (see KeepOwner).
func MakeDir(dir string) error { return MakeDirMode(dir, 0o700) }

// MakeDirMode is like MakeDir, for a directory with the given mode.
func MakeDirMode(dir string, mode fs.FileMode) error {
	var missing []string // the innermost first
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, at)
	}
	for _, at := range slices.Backward(missing) {
		makeOwnedDir(at, mode)
	}
	if err := os.MkdirAll(dir, mode); err != nil {
		return err
	}
	if len(missing) == 0 {
		missing = []string{dir} // another process may have created the directory
	}
	for _, made := range missing {
		if err := SyncDir(filepath.Dir(made)); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// SyncDir makes a new name in a directory durable, if the system can sync a directory.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
