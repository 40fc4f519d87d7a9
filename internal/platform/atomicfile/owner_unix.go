//go:build unix

package atomicfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// KeepOwner changes the owner of a file to the owner of its directory, if this process runs
// as root and the directory belongs to another user. So the files that root creates in the
// directory of another user remain readable for that user. The file must be a new file that
// this process has created: an existing file could be a link that the user made to a file
// of another user. An error is not reported: some file systems and containers do not let
// root change an owner.
func KeepOwner(file *os.File) {
	if uid, gid, ok := ownerOf(filepath.Dir(file.Name())); ok {
		_ = file.Chown(uid, gid)
	}
}

// makeOwnedDir creates a directory with the owner of its parent, as KeepOwner does for
// files, if the process runs as root and the parent belongs to another user. Other
// processes see the directory only after it has that owner. If makeOwnedDir fails, the
// caller creates the directory or returns the error.
func makeOwnedDir(dir string, mode fs.FileMode) {
	uid, gid, ok := ownerOf(filepath.Dir(dir))
	if !ok {
		return
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), ".new-*")
	if err != nil {
		return
	}
	defer func() { _ = os.Remove(temp) }()
	// The owner of the parent could replace the new directory: no link is followed, and
	// only an empty directory of root is changed.
	opened, err := os.OpenFile(temp, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return
	}
	defer func() { _ = opened.Close() }()
	info, err := opened.Stat()
	if err != nil {
		return
	}
	stat, known := info.Sys().(*syscall.Stat_t)
	if _, err := opened.Readdirnames(1); !known || stat.Uid != 0 || !errors.Is(err, io.EOF) {
		return
	}
	if errors.Join(opened.Chmod(mode), opened.Chown(uid, gid)) == nil {
		_ = os.Rename(temp, dir)
	}
}

// ownerOf returns the owner and the group of a directory. ok is false if the owner is root,
// or if this process cannot change owners, because it does not run as root.
func ownerOf(dir string) (uid, gid int, ok bool) {
	var stat unix.Stat_t
	if os.Geteuid() == 0 {
		_ = unix.Stat(dir, &stat) // if it fails, the zero value names root
	}
	return int(stat.Uid), int(stat.Gid), stat.Uid != 0
}
