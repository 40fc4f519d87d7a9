//go:build unix

package server

import (
	"errors"
	"syscall"
)

// processExists says whether there is a process of this number.
func processExists(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
