//go:build unix

package server

import (
	"errors"
	"syscall"
)

// processExists reports whether a process with this id exists.
func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
