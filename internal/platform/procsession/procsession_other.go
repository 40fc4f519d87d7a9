//go:build !unix

package procsession

import (
	"os/exec"
	"strconv"
)

// Own does nothing: this system has no sessions.
func Own(*exec.Cmd) {}

// Kill kills a started command and the processes that it has started.
func Kill(cmd *exec.Cmd) error {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run() //nolint:gosec,noctx // the argument is a process id, and the command ends soon
	return cmd.Process.Kill()
}
