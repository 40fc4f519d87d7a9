//go:build unix

package project

import (
	"os"
	"slices"
	"syscall"
)

// isOwnedLike reports whether each name belongs to the user of this process or to the owner
// of the directory dir.
func isOwnedLike(dir string, names ...string) bool {
	self, known := ownerOf(dir)
	return known && !slices.ContainsFunc(names, func(name string) bool {
		owner, known := ownerOf(name)
		return !known || owner != self && int(owner) != os.Geteuid()
	})
}

// ownerOf returns the user to whom a file belongs. It does not follow a link.
func ownerOf(name string) (uid uint32, known bool) {
	info, err := os.Lstat(name)
	if err != nil {
		return 0, false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, true
}
