//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// workDir is where workers stand: not where the user works.
const workDir = "/"

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func killGroup(cmd *exec.Cmd) {
	// It fails where the group has ended.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
