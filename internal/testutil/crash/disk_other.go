//go:build !linux

package crash

import (
	"errors"
	"os/exec"
	"testing"
)

// Disk is a directory whose size or access may be limited for a worker, on Linux only.
type Disk struct {
	Dir      string
	Room     int64
	ReadOnly bool
}

var errNoMounts = errors.New("the size of a directory and the access to it can be limited on Linux only")

// prepareCmd does nothing on this platform.
func (Disk) prepareCmd(*exec.Cmd) {}

// hasRoom returns false: this platform has no directory in memory.
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
