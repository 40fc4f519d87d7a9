package crashtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// isolated are the places that need a worker with mounts of its own.
func (p place) isolated() bool { return p.Room > 0 || p.Sealed }

// prepare sets a worker's process up: it ends with this one, and may mount where
// that is needed.
func prepare(cmd *exec.Cmd, p place) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if !p.isolated() {
		return
	}
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER
	cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
}

// needMounts skips a test where a process cannot mount in a namespace of its own.
func needMounts(t *testing.T) {
	t.Helper()
	trial := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "none", t.TempDir())
	prepare(trial, place{Sealed: true})
	if out, err := trial.CombinedOutput(); err != nil {
		t.Skipf("a process cannot mount a file system of its own here: %v: %s", err, out)
	}
}

// bound mounts what the place asks for.
func (p place) bound() error {
	if !p.isolated() {
		return nil
	}
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil && p.Room > 0 {
		err = syscall.Mount("tmpfs", p.Dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", p.Room))
	}
	if err == nil && p.Sealed {
		err = errors.Join(
			syscall.Mount(p.Dir, p.Dir, "", syscall.MS_BIND, ""),
			syscall.Mount("", p.Dir, "", syscall.MS_REMOUNT|syscall.MS_BIND|syscall.MS_RDONLY, ""),
		)
	}
	if err != nil {
		return fmt.Errorf("mount %s: %w", p.Dir, err)
	}
	return nil
}

// ballast is the file that takes the room.
func (p place) ballast() string { return filepath.Join(p.Dir, "ballast") }

// fill writes the ballast until there is no room but for some bytes.
func (p place) fill(room int64) error {
	f, err := os.OpenFile(p.ballast(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
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

// drain takes the ballast away.
func (p place) drain() error {
	if err := os.Remove(p.ballast()); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
