package gitrun

import (
	"errors"
	"os/exec"

	"golang.org/x/sys/unix"
)

// boundedCommand returns the command that runs a program with bounded memory, if the system
// supports it. On Linux, boundMemory sets the bound.
func boundedCommand(path string, args []string) (name string, all []string) { return path, args }

// boundMemory bounds the memory of a command that was started, and forbids core files.
func boundMemory(cmd *exec.Cmd) error {
	err := unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_DATA, &unix.Rlimit{Cur: maxMemory, Max: maxMemory}, nil)
	if err == nil {
		err = unix.Prlimit(cmd.Process.Pid, unix.RLIMIT_CORE, &unix.Rlimit{}, nil)
	}
	if errors.Is(err, unix.ESRCH) { // the command has already ended
		return nil
	}
	return err
}
