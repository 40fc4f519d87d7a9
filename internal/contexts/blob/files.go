package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/atomicfile"
)

// The layout of the directory. A blob is in blobs/ab/abcdef…, a slot in slots/key.
const (
	blobsDir = "blobs"
	slotsDir = "slots"
	// tempPrefix begins the names of unfinished writes.
	tempPrefix = ".write-"
	// staleAfter is the age from which an unfinished write is considered abandoned.
	staleAfter = time.Hour
)

// FilesOptions configure Files.
type FilesOptions struct {
	// Dir is the directory; OpenFiles creates it, accessible to the user only.
	Dir string
	// MaxBytes bounds a blob; the default is DefaultMaxBytes.
	MaxBytes int64
	// ReadOnly creates nothing and accepts a directory that is not writable; a missing
	// directory is an empty store. The caller must only use methods that read.
	ReadOnly bool

	// fault is called before each step of a write, and may return an error for it. Tests
	// simulate disk errors with it.
	fault func(step, path string) error
	// sync makes a file or a directory durable; the default is (*os.File).Sync. Tests
	// simulate power failures with it.
	sync func(*os.File) error
}

// Files is a store in a directory. A blob is written to a temporary file, synced, and
// renamed, and its directory is synced: the write is atomic.
type Files struct{ o FilesOptions }

var _ Store = (*Files)(nil)

// OpenFiles opens a directory. It returns CodeUnavailable if the directory is not writable,
// or with ReadOnly not readable.
func OpenFiles(o FilesOptions) (*Files, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.fault == nil {
		o.fault = func(string, string) error { return nil }
	}
	if o.sync == nil {
		o.sync = (*os.File).Sync
	}
	f := &Files{o: o}
	if o.ReadOnly {
		return f, f.checkReadable()
	}
	for _, dir := range []string{blobsDir, slotsDir} {
		if err := atomicfile.MakeDir(filepath.Join(o.Dir, dir)); err != nil {
			return nil, f.systemError("open the directory of the blobs", err)
		}
	}
	probe, err := os.CreateTemp(filepath.Join(o.Dir, blobsDir), tempPrefix+"*")
	if err != nil {
		return nil, f.systemError("open the directory of the blobs", err)
	}
	if err := errors.Join(probe.Close(), os.Remove(probe.Name())); err != nil {
		return nil, f.systemError("open the directory of the blobs", err)
	}
	return f, nil
}

// checkReadable returns an error if the directory exists and cannot be read.
func (f *Files) checkReadable() error {
	for _, dir := range []string{blobsDir, slotsDir} {
		_, err := os.ReadDir(filepath.Join(f.o.Dir, dir))
		if err := ignoreMissing(err); err != nil {
			return f.systemError("open the directory of the blobs", err)
		}
	}
	return nil
}

// Dir returns the directory.
func (f *Files) Dir() string { return f.o.Dir }

// blobPath returns the path of a blob.
func (f *Files) blobPath(name Name) string {
	return filepath.Join(f.o.Dir, blobsDir, string(name[:2]), string(name))
}

// Put implements Blobs.
func (f *Files) Put(ctx context.Context, data []byte) (Name, error) {
	if err := ctx.Err(); err != nil {
		return "", f.systemError("write a blob", err)
	}
	if int64(len(data)) > f.o.MaxBytes {
		return "", TooLarge(int64(len(data)), f.o.MaxBytes)
	}
	name := NameOf(data)
	path := f.blobPath(name)
	if there, err := f.readFile(path); err == nil && bytes.Equal(there, data) {
		// The writer of an existing blob may not have synced the directory yet.
		return name, f.systemError("write a blob", f.syncDir(filepath.Dir(path)))
	}
	if err := f.writeFile(path, data, os.Rename); err != nil {
		return "", f.systemError("write a blob", err)
	}
	return name, nil
}

// writeFile writes a file atomically and durably. It calls place to give the finished
// temporary file its final name.
func (f *Files) writeFile(path string, data []byte, place func(from, to string) error) error {
	dir := filepath.Dir(path)
	temp, err := f.createTemp(dir)
	if err != nil {
		return err
	}
	err = f.fillTemp(temp, data)
	if err == nil {
		err = f.o.fault("rename", path)
	}
	if err == nil {
		err = place(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
		return err
	}
	return f.syncDir(dir)
}

// createTemp creates a temporary file, and its directory if needed.
func (f *Files) createTemp(dir string) (*os.File, error) {
	if err := f.o.fault("create", dir); err != nil {
		return nil, err
	}
	temp, err := os.CreateTemp(dir, tempPrefix+"*") // mode 0600
	if errors.Is(err, fs.ErrNotExist) {
		if err := atomicfile.MakeDir(dir); err != nil {
			return nil, err
		}
		temp, err = os.CreateTemp(dir, tempPrefix+"*")
	}
	if err == nil {
		atomicfile.KeepOwner(temp)
	}
	return temp, err
}

// fillTemp writes, syncs and closes a temporary file.
func (f *Files) fillTemp(temp *os.File, data []byte) error {
	err := f.o.fault("write", temp.Name())
	if err != nil {
		_, _ = temp.Write(data[:len(data)/2]) // simulate a partial write
	} else {
		_, err = temp.Write(data)
	}
	if err == nil {
		err = f.o.fault("sync", temp.Name())
	}
	if err == nil {
		err = f.o.sync(temp)
	}
	return errors.Join(err, temp.Close())
}

// syncDir makes a rename durable. Some systems cannot sync a directory; then the durability
// depends on the system.
func (f *Files) syncDir(dir string) error {
	if err := f.o.fault("sync dir", dir); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.o.sync(d)
	if IsFull(err) || errors.Is(err, syscall.EIO) {
		return errors.Join(err, d.Close())
	}
	return d.Close()
}

// readFile reads a file. It returns ErrCorrupt if the file is not regular or has more than
// MaxBytes bytes.
func (f *Files) readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > f.o.MaxBytes {
		return nil, ErrCorrupt
	}
	data := make([]byte, info.Size())
	if _, err := io.ReadFull(file, data); err != nil {
		return nil, err
	}
	return data, nil
}

// Get implements Blobs.
func (f *Files) Get(ctx context.Context, name Name) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, f.systemError("read a blob", err)
	}
	if !name.Valid() {
		return nil, Missing(name)
	}
	path := f.blobPath(name)
	data, err := f.readFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, Missing(name)
	case errors.Is(err, ErrCorrupt), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, Corrupt(name, path)
	case err != nil:
		return nil, f.systemError("read a blob", err)
	case NameOf(data) != name:
		return nil, Corrupt(name, path)
	}
	return data, nil
}

// Delete implements Blobs.
func (f *Files) Delete(_ context.Context, names ...Name) error {
	var errs []error
	for _, name := range names {
		if !name.Valid() {
			continue
		}
		if err := os.Remove(f.blobPath(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return f.systemError("delete blobs", errors.Join(errs...))
}

// Each implements Blobs.
func (f *Files) Each(ctx context.Context, visit func(Info) error) error {
	return f.walkFiles(ctx, func(_ string, info Info) error { return visit(info) }, func(string, time.Time) error { return nil })
}

// walkFiles visits blobs and the files of unfinished writes.
func (f *Files) walkFiles(ctx context.Context, blob func(path string, info Info) error, leftover func(path string, at time.Time) error) error {
	root := filepath.Join(f.o.Dir, blobsDir)
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrNotExist):
			return nil // another process has removed the file, or the directory does not exist
		case err != nil:
			return err
		case entry.IsDir():
			return nil
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil // another process has removed the file
		}
		if err != nil {
			return err
		}
		name := Name(entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), tempPrefix):
			return leftover(path, info.ModTime())
		case name.Valid() && path == f.blobPath(name):
			return blob(path, Info{Name: name, Size: info.Size(), Modified: info.ModTime()})
		}
		return nil // not a file of the store
	})
	var coded *guideway.Error
	if errors.As(err, &coded) {
		return err
	}
	return f.systemError("list the blobs", err)
}

// Sweep implements Blobs.
func (f *Files) Sweep(ctx context.Context, keep func(Info) bool) (swept Swept, err error) {
	now := time.Now()
	err = f.walkFiles(ctx, func(path string, info Info) error {
		if keep(info) {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return ignoreMissing(err)
		}
		swept.Blobs++
		swept.Bytes += info.Size
		return nil
	}, func(path string, at time.Time) error {
		if now.Sub(at) < staleAfter {
			return nil
		}
		if err := os.Remove(path); err != nil {
			return ignoreMissing(err)
		}
		swept.Leftovers++
		return nil
	})
	return swept, err
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (f *Files) systemError(doing string, err error) error { return SystemError(doing, f.o.Dir, err) }

// reserveBytes is the reserved disk space: sufficient for a database to delete rows on a
// full disk.
const reserveBytes = 1 << 20

func (f *Files) reservePath() string { return filepath.Join(f.o.Dir, "reserve") }

// HoldReserve reserves disk space unless it is reserved already.
func (f *Files) HoldReserve() error {
	path := f.reservePath()
	if info, err := os.Stat(path); err == nil && info.Size() == reserveBytes {
		return nil
	}
	err := f.writeFile(path, make([]byte, reserveBytes), os.Rename)
	return f.systemError("reserve disk space", err)
}

// ReleaseReserve releases the reserved space.
func (f *Files) ReleaseReserve() error {
	err := os.Remove(f.reservePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.systemError("release the reserved disk space", err)
}
