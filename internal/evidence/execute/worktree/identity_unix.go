//go:build unix

package worktree

import (
	"io/fs"
	"syscall"
	"time"
)

// identity identifies a version of a file without reading it.
type identity struct {
	device, inode uint64
	size          int64
	change        timespec
}

type timespec struct{ seconds, nanoseconds int64 }

// identify returns the identity of a file, or the zero identity if it is unknown.
func identify(info fs.FileInfo) identity {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}
	}
	return identity{
		device: uint64(stat.Dev), inode: stat.Ino, size: info.Size(), //nolint:unconvert // the type depends on the system
		change: changeTime(stat),
	}
}

// changed returns the time of the last change of the inode.
func (id identity) changed() time.Time { return time.Unix(id.change.seconds, id.change.nanoseconds) }
