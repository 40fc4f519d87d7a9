//go:build unix

package gitrun

import (
	"os/exec"
	"syscall"
)

// boundMemory returns the command that runs a program without core files, and with bounded
// memory if the system supports it.
func boundMemory(path string, args []string) (name string, all []string) {
	const script = `ulimit -c 0; ulimit -d 2097152; exec "$@"`
	return "/bin/sh", append([]string{"-c", script, "sh", path}, args...)
}

// ownSession starts a command in a new session without a terminal, so that no process that
// it starts can prompt there, and all of them can be killed.
func ownSession(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }

func killSession(cmd *exec.Cmd) error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
