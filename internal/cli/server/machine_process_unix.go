//go:build unix

package server

import (
	"errors"
	"syscall"
)

// lives says whether there is a process of this number.
func lives(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
