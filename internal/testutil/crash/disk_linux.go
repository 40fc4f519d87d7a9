package crash

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// Disk is a directory that a worker may confine itself to.
type Disk struct {
	Dir string
	// Room, if not 0, bounds the directory to so many bytes: the worker mounts a
	// file system of its own there, which is gone when it ends.
	Room int64
	// ReadOnly has the worker see the directory read-only.
	ReadOnly bool
}

// confined says that the worker needs mounts of its own.
func (d Disk) confined() bool { return d.Room > 0 || d.ReadOnly }

// prepare sets a worker's process up: it may mount where that is needed.
func (d Disk) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if !d.confined() {
		return
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// enough is the room that tests with their files in memory have at least; some take
// tens of megabytes, and run side by side.
const enough = 512 << 20

// roomy says that a directory is there and has room enough.
func roomy(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && int64(fs.Bavail)*fs.Bsize >= enough
}

// NeedMounts skips a test where a process cannot mount in a namespace of its own.
func NeedMounts(t testing.TB) {
	t.Helper()
	trial := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "none", t.TempDir())
	Disk{ReadOnly: true}.prepare(trial)
	if out, err := trial.CombinedOutput(); err != nil {
		t.Skipf("a process cannot mount a file system of its own here: %v: %s", err, out)
	}
}

// mount mounts what the disk asks for.
func (d Disk) mount() error {
	if !d.confined() {
		return nil
	}
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil && d.Room > 0 {
		err = syscall.Mount("tmpfs", d.Dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", d.Room))
	}
	if err == nil && d.ReadOnly {
		err = errors.Join(
			syscall.Mount(d.Dir, d.Dir, "", syscall.MS_BIND, ""),
			syscall.Mount("", d.Dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""),
		)
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", d.Dir, err)
	}
	return nil
}

// ballast is the file that takes the room.
func (d Disk) ballast() string { return filepath.Join(d.Dir, "ballast") }

// Fill takes the room but for some bytes. It is for the worker itself.
func (d Disk) Fill(room int64) error {
	f, err := os.OpenFile(d.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	piece := make([]byte, 4096)
	for {
		_, err := f.Write(piece)
		if errors.Is(err, syscall.ENOSPC) {
			break
		}
		if err != nil {
			return err
		}
	}
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return f.Truncate(max(info.Size()-room, 0))
}

// Drain gives the room back.
func (d Disk) Drain() error {
	if err := os.Remove(d.ballast()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
