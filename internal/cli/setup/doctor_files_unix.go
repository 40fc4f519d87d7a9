//go:build unix

package setup

import (
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// accessOf reports whether this user can read and whether it can write a file, or list and
// change a directory.
func accessOf(path string, isDir bool) (readable, writable bool) {
	enter := uint32(0)
	if isDir {
		enter = unix.X_OK
	}
	return unix.Access(path, unix.R_OK|enter) == nil, unix.Access(path, unix.W_OK|enter) == nil
}

// describeOwner returns the owner and the mode of a file. foreign reports whether the owner
// is another user.
func describeOwner(entry fs.DirEntry) (text string, foreign bool) {
	info, err := entry.Info()
	if err != nil {
		return "", false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return "", false
	}
	return fmt.Sprintf("; its owner has the user id %d, and its mode is %#o", stat.Uid, info.Mode().Perm()), int(stat.Uid) != os.Getuid()
}

// accessFix returns the command that makes the files of directories accessible.
func accessFix(dirs []string, foreign bool) string {
	quoted := "'" + strings.Join(dirs, "' '") + "'"
	if foreign {
		return fmt.Sprintf("sudo chown -R %d %s && chmod -R u+rwX %s", os.Getuid(), quoted, quoted)
	}
	return "chmod -R u+rwX " + quoted
}
