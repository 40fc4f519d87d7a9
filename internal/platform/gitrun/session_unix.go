//go:build unix

package gitrun

import (
	"os/exec"
	"syscall"
)

// ownSession starts a command in a new session without a terminal, so that no process that
// it starts can prompt there, and all of them can be killed.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func killSession(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
