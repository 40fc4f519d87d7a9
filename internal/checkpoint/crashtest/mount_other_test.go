//go:build !linux

package crashtest

import (
	"errors"
	"os/exec"
)

// prepare sets a worker's process up: there is nothing to do here.
func prepare(*exec.Cmd, place) {}

var errNoMounts = errors.New("a directory can be bounded on Linux alone")

func (p place) bound() error {
	if p.Room > 0 {
		return errNoMounts
	}
	return nil
}

func (place) fill(int64) error { return errNoMounts }
func (place) drain() error     { return errNoMounts }
