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

// prepare sets a worker's process up: it may mount where that is needed.
func prepare(cmd *exec.Cmd, p place) {
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	if p.Room == 0 {
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
	prepare(trial, place{Room: 1})
	if out, err := trial.CombinedOutput(); err != nil {
		t.Skipf("a process cannot mount a file system of its own here: %v: %s", err, out)
	}
}

// bound mounts what the place asks for.
func (p place) bound() error {
	if p.Room == 0 {
		return nil
	}
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil {
		err = syscall.Mount("tmpfs", p.Dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", p.Room))
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
