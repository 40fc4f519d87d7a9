//go:build unix

package upstream

import (
	"os/exec"
	"syscall"
)

// ownGroup has a server lead a group of its own, so that what it starts can be
// ended with it, and a Ctrl-C at our terminal does not reach it.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func askGroup(cmd *exec.Cmd)  { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
