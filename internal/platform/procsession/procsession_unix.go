//go:build unix

package procsession

import (
	"os/exec"
	"syscall"
)

// Own starts a command in a new session without a terminal, so that no process that it
// starts can prompt there, and all of them can be killed.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

// Kill kills a started command and the processes that it has started.
func Kill(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
