//go:build !unix

package upstream

import (
	"os/exec"
	"strconv"
)

func ownGroup(*exec.Cmd) {}

// askGroup does nothing, because there is no signal that requests an exit.
func askGroup(*exec.Cmd) {}

// killGroup kills a server and the processes it started.
func killGroup(cmd *exec.Cmd) {
	if cmd.Process == nil {
		return
	}
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run() //nolint:gosec,noctx // the only variable argument is a number; the command ends soon
	_ = cmd.Process.Kill()
}
