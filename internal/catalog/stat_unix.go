//go:build unix

package catalog

import (
	"io/fs"
	"syscall"
)

// openNonblock keeps an open from waiting for the other end of a pipe.
const openNonblock = syscall.O_NONBLOCK

// inodeOf returns the number that identifies a file on its device, or 0.
func inodeOf(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Ino)
	}
	return 0
}
