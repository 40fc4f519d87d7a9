//go:build !linux

package crash

import (
	"errors"
	"os/exec"
	"testing"
)

// Disk is a directory that a worker may confine itself to, on Linux alone.
type Disk struct {
	Dir      string
	Room     int64
	ReadOnly bool
}

var errNoMounts = errors.New("a directory can be bounded on Linux alone")

// prepare sets a worker's process up: there is nothing to do here.
func (Disk) prepare(*exec.Cmd) {}

// roomy says that files can be kept in memory.
func roomy(string) bool { return false }

// NeedMounts skips a test.
func NeedMounts(t testing.TB) {
	t.Helper()
	t.Skip(errNoMounts)
}

func (d Disk) mount() error {
	if d.Room > 0 || d.ReadOnly {
		return errNoMounts
	}
	return nil
}

// Fill is not possible here.
func (Disk) Fill(int64) error { return errNoMounts }

// Drain is not possible here.
func (Disk) Drain() error { return errNoMounts }
