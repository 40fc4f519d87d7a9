//go:build !linux

package crash

import (
	"errors"
	"os/exec"
	"testing"
)

// Disk is a directory to which a worker may be confined, on Linux only.
type Disk struct {
	Dir      string
	Room     int64
	ReadOnly bool
}

var errNoMounts = errors.New("the size of a directory can be limited on Linux only")

// prepareCmd does nothing on this platform.
func (Disk) prepareCmd(*exec.Cmd) {}

// hasRoom reports whether a directory in memory has enough space.
func hasRoom(string) bool { return false }

// NeedMounts skips a test.
func NeedMounts(t testing.TB) {
	t.Helper()
	t.Skip(errNoMounts)
}

func (d Disk) mountDir() error {
	if d.Room > 0 || d.ReadOnly {
		return errNoMounts
	}
	return nil
}

// Fill is not supported on this platform.
func (Disk) Fill(int64) error { return errNoMounts }

// Drain is not supported on this platform.
func (Disk) Drain() error { return errNoMounts }
