//go:build !unix

package gitrun

import (
	"os/exec"
	"strconv"
)

func boundedCommand(path string, args []string) (name string, all []string) { return path, args }

func boundMemory(*exec.Cmd) error { return nil }

func ownSession(*exec.Cmd) {}

// killSession kills a command and the processes that it has started.
func killSession(cmd *exec.Cmd) error {
	_ = exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(cmd.Process.Pid)).Run() //nolint:gosec,noctx // a number of ours; it is short
	return cmd.Process.Kill()
}
