//go:build unix && !linux

package gitrun

import (
	"os/exec"
	"strconv"
)

// boundedCommand returns the command that runs a program without core files, and with bounded
// memory if the system supports it.
func boundedCommand(path string, args []string) (name string, all []string) {
	script := "ulimit -c 0; ulimit -d " + strconv.Itoa(maxMemory>>10) + `; exec "$@"`
	return "/bin/sh", append([]string{"-c", script, "sh", path}, args...)
}

func boundMemory(*exec.Cmd) error { return nil }
