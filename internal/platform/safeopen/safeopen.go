// Package safeopen opens untrusted file names without blocking: it refuses named pipes,
// sockets and devices, even if the file is replaced between the check and the open.
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

// ErrSpecial is wrapped by the error for a file that is not regular.
var ErrSpecial = errors.New("not a regular file")

// Open opens a regular file for reading. For any other file it returns an fs.PathError that
// names the kind of file and wraps ErrSpecial.
func Open(name string) (*os.File, error) {
	return openChecked(name, os.Stat, func(name string) (*os.File, error) {
		return os.OpenFile(name, os.O_RDONLY|nonblock, 0)
	})
}

// OpenIn opens a regular file below a directory. It does not follow links out of the
// directory.
func OpenIn(root *os.Root, name string) (*os.File, error) {
	return openChecked(filepath.FromSlash(name), root.Stat, func(name string) (*os.File, error) {
		return root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	})
}

// openChecked checks a name before it opens the file, because opening some devices has side
// effects, and checks the opened file, because it may be a different file.
func openChecked(name string, look func(string) (fs.FileInfo, error), do func(string) (*os.File, error)) (*os.File, error) {
	info, err := look(name)
	if err != nil {
		return nil, err
	}
	if err := checkRegular(name, info); err != nil {
		return nil, err
	}
	file, err := do(name)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = checkRegular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func checkRegular(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return &fs.PathError{Op: "open", Path: name, Err: special{Kind(info.Mode())}}
}

// Cause returns a file error without its operation and path, for a message that already
// contains them.
func Cause(err error) error {
	var of *fs.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// special is the error for a file that is not regular.
type special struct{ kind string }

func (s special) Error() string { return "is " + s.kind + ", not a regular file" }

// Is reports whether target is ErrSpecial.
func (s special) Is(target error) bool { return target == ErrSpecial }

// Kind returns the noun for a kind of file that is not regular, with its article.
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

// In returns a file system of a directory that opens only regular files and directories.
func In(root *os.Root) fs.FS { return safeDir{root} }

// safeDir is a directory as a file system.
type safeDir struct{ root *os.Root }

// Open implements fs.FS.
func (d safeDir) Open(name string) (fs.File, error) {
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

// Stat implements fs.StatFS without opening the file.
func (d safeDir) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrInvalid}
	}
	return d.root.Stat(filepath.FromSlash(name))
}

// Read reads all of r, but at most one byte more than most, so that the caller can detect
// an oversized input. It returns with the error of ctx when ctx is done, even if a read of
// r blocks; that read continues until it returns.
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
