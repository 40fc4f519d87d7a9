// Package safeopen opens files that others named, or that were found in a
// directory, without waiting for anything: a named pipe, a socket or a device is
// refused, whatever took the place of a file since somebody looked.
package safeopen

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ErrSpecial says that a name leads to no regular file.
var ErrSpecial = errors.New("it is not a regular file")

// Open opens a regular file to read it. The error of anything else is one of
// fs.PathError that says what it is, and wraps ErrSpecial.
func Open(name string) (*os.File, error) {
	return open(name, os.Stat, func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	})
}

// OpenIn opens a regular file below a directory, and does not leave that.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return open(filepath.FromSlash(name), root.Stat, func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	})
}

// open looks at a name before it opens it, because to open some devices does
// something, and at what it has opened, because that may be another thing.
func open(name string, look func(string) (fs.FileInfo, error), do func(string) (*os.File, error)) (*os.File, error) {
	info, err := look(name)
	if err != nil {
		return nil, err
	}
	if err := refuse(name, info); err != nil {
		return nil, err
	}
	file, err := do(name)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = refuse(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func refuse(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: special{Kind(info.Mode())}}
}

// Cause is an error of a file without the operation and the path, for a message that has
// them already.
func Cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// special says what a name leads to.
type special struct{ kind string }

func (s special) Error() string { return "it is " + s.kind + ", not a regular file" }

// Is makes it known as ErrSpecial.
func (s special) Is(target error) bool { return target == ErrSpecial }

// Kind names the kind of what is no regular file, with its article.
func Kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a directory"
	case mode&fs.ModeNamedPipe != 0:
		return "a named pipe"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	default:
		return "a special file"
	}
}

// In is a directory of which only regular files and directories are opened.
func In(root *os.Root) fs.FS { return in{root} }

// in is a directory as a file system.
type in struct{ root *os.Root }

// Open implements fs.FS.
func (d in) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info, err := d.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return d.root.OpenFile(filepath.FromSlash(name), os.O_RDONLY|nonblock, 0)
	}
	return OpenIn(d.root, name)
}

// Stat implements fs.StatFS: it looks without opening.
func (d in) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return d.root.Stat(filepath.FromSlash(name))
}

// Read reads all of r, and one byte more than most at the most, so that the
// caller sees what is too long. It returns with the error of ctx when that is
// done, even if r gives nothing; r is then being read until it ends.
func Read(ctx context.Context, r io.Reader, most int64) ([]byte, error) {
	type outcome struct {
		data []byte
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(r, most+1))
		done <- outcome{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("stopped while reading: %w", ctx.Err())
	case o := <-done:
		return o.data, o.err
	}
}
