//go:build unix

package sandbox

import (
	"os/exec"
	"syscall"
)

// workDir is the working directory of workers, not that of the user.
const workDir = "/"

func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}

func killGroup(cmd *exec.Cmd) {
	// The error means that the group has exited.
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}
