// Package atomicfile reads and makes files that are for one user alone, such
// as those of tokens and keys. A file is there whole or not at all, and one that
// cannot be read is never replaced.
package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/guideway-dev/guideway"
)

// File is a file with a secret.
type File struct {
	Path string
	// What it is, in messages: "token file".
	What string
	// IfSeen says what to do where others may have seen the secret.
	IfSeen string
	// MaxBytes bounds what is read of it.
	MaxBytes int64
}

// ReadOrCreate gives the file's text, or makes the file with the text that
// invent gives where there is none; created says which. Several processes that
// start at once agree on one text. An error is a *guideway.Error with the way
// out, and leaves a file as it is.
func (f File) ReadOrCreate(invent func() string) (text string, created bool, err error) {
	text, err = f.Read()
	if !errors.Is(err, fs.ErrNotExist) {
		return text, false, err
	}
	text = invent()
	err = Create(f.Path, text)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		text, err = f.Read()
		return text, false, err
	}
	if err != nil {
		return "", false, guideway.Errorf(guideway.CodeUnavailable, "create the %s: %w", f.What, err).
			WithFix("make the directory %s writable for this user", filepath.Dir(f.Path))
	}
	return text, true, nil
}

// Read gives the text of a plain file that only its owner may read. The error is
// fs.ErrNotExist only if there is no file, else a *guideway.Error.
func (f File) Read() (string, error) {
	file, err := f.open()
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, f.MaxBytes))
	if err != nil {
		return "", f.unreadable(err)
	}
	return string(text), nil
}

func (f File) open() (*os.File, error) {
	// Looked at before it is opened: opening a named pipe would wait.
	info, err := os.Stat(f.Path)
	if err == nil && !info.Mode().IsRegular() {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the %s %s is not a plain file", f.What, f.Path).
			WithFix("move away what is there")
	}
	var file *os.File
	if err == nil {
		file, err = os.Open(f.Path)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, f.unreadable(err)
	}
	if info, err = file.Stat(); err != nil {
		_ = file.Close()
		return nil, f.unreadable(err)
	}
	// Windows has no such bits; there the user's profile guards the file.
	if perm := info.Mode().Perm(); perm&0o077 != 0 && runtime.GOOS != "windows" {
		_ = file.Close()
		return nil, guideway.Errorf(guideway.CodeForbidden, "others may read the %s %s (its mode is %#o)", f.What, f.Path, perm).
			WithFix("chmod 600 %s; if others use this machine, %s", f.Path, f.IfSeen)
	}
	return file, nil
}

func (f File) unreadable(err error) error {
	return guideway.Errorf(guideway.CodeUnavailable, "read the %s: %w", f.What, err).
		WithFix("make %s readable for this user alone: chown and chmod 600", f.Path)
}

// Create makes a file that was not there, whole or not at all, and durable; the
// error is fs.ErrExist where it is there. It is a link to a finished temporary
// file: a process that sees the name sees the content.
func Create(path, text string) error {
	temp, err := writeTemp(path, text)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp) }()
	err = os.Link(temp, path)
	if err != nil && !errors.Is(err, fs.ErrExist) {
		err = createInPlace(path, text) // a file system without hard links
	}
	if err != nil {
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// Replace makes a file or takes the place of the one that is there, whole or not
// at all, and durable.
func Replace(path, text string) error {
	temp, err := writeTemp(path, text)
	if err != nil {
		return err
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return err
	}
	return SyncDir(filepath.Dir(path))
}

// writeTemp makes a file for this user alone beside a path, and the directory
// where there is none.
func writeTemp(path, text string) (name string, err error) {
	dir := filepath.Dir(path)
	if err := MakeDir(dir); err != nil {
		return "", err
	}
	temp, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return "", err
	}
	_, err = temp.WriteString(text)
	if err = errors.Join(err, temp.Sync(), temp.Close()); err != nil {
		_ = os.Remove(temp.Name())
		return "", err
	}
	return temp.Name(), nil
}

// createInPlace is Create without links: of two processes that start at once one
// may see the file empty, but never with another text.
func createInPlace(path, text string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = file.WriteString(text)
	return errors.Join(err, file.Sync(), file.Close())
}

// MakeDir makes a directory, and those above it, for this user alone. A power
// loss does not take it away again, with all that is durable in it.
func MakeDir(dir string) error {
	parents := []string{filepath.Dir(dir)} // another process may just have made it
	for at := filepath.Dir(dir); at != filepath.Dir(at); at = filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		parents = append(parents, filepath.Dir(at))
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	for _, parent := range parents {
		if err := SyncDir(parent); err != nil && !errors.Is(err, fs.ErrPermission) {
			return err
		}
	}
	return nil
}

// SyncDir makes a new name durable. Not every system can sync a directory; then
// the name is as durable as that system makes it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	_ = d.Sync()
	return d.Close()
}
