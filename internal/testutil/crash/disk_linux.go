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

// Disk is a directory whose size or access may be limited for a worker.
type Disk struct {
	Dir string
	// Room limits the size of the directory in bytes if it is not 0: the worker mounts a
	// temporary file system there.
	Room int64
	// ReadOnly makes the directory read-only for the worker.
	ReadOnly bool
}

// needsMounts reports whether the worker needs a mount namespace.
func (d Disk) needsMounts() bool { return d.Room > 0 || d.ReadOnly }

// prepareCmd gives the worker's process a mount namespace if it needs one.
func (d Disk) prepareCmd(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if !d.needsMounts() {
		return
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// minRoom is the free space that the tests need. Some tests need tens of megabytes, and
// they run in parallel.
const minRoom = 512 << 20

// hasRoom reports whether a directory exists and has enough free space.
func hasRoom(dir string) bool {
	var fs syscall.Statfs_t
	return syscall.Statfs(dir, &fs) == nil && int64(fs.Bavail)*fs.Bsize >= minRoom
}

// NeedMounts skips a test if a process cannot mount in a new namespace.
func NeedMounts(t testing.TB) {
	t.Helper()
	trial := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "none", t.TempDir())
	Disk{ReadOnly: true}.prepareCmd(trial)
	if out, err := trial.CombinedOutput(); err != nil {
		t.Skipf("a process cannot mount a private file system: %v: %s", err, out)
	}
}

// mountDir mounts the directory as configured.
func (d Disk) mountDir() error {
	if !d.needsMounts() {
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

// ballastPath returns the path of the file that fills the directory.
func (d Disk) ballastPath() string { return filepath.Join(d.Dir, "ballast") }

// Fill fills the directory except for room bytes. The worker calls it.
func (d Disk) Fill(room int64) error {
	f, err := os.OpenFile(d.ballastPath(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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

// Drain removes the file that Fill created.
func (d Disk) Drain() error {
	if err := os.Remove(d.ballastPath()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
