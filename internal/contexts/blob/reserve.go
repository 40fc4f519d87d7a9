package blob

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// reserveBytes is the room that is set aside: enough for a database to take
// something out on a disk that is full otherwise.
const reserveBytes = 1 << 20

func (f *Files) reservePath() string { return filepath.Join(f.o.Dir, "reserve") }

// HoldReserve sets some room aside, if that has not been done yet.
func (f *Files) HoldReserve() error {
	path := f.reservePath()
	if info, err := os.Stat(path); err == nil && info.Size() == reserveBytes {
		return nil
	}
	err := f.write(path, make([]byte, reserveBytes), os.Rename)
	return f.failed("set room aside", err)
}

// ReleaseReserve gives the room up.
func (f *Files) ReleaseReserve() error {
	err := os.Remove(f.reservePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return f.failed("give the room up", err)
}
