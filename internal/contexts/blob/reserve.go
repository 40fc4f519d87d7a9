package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

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
