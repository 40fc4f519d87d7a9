// Package runner runs a command and everything that it starts, and leaves no process of it.
//
// On Linux a helper process starts the command. It is the program that imports this package,
// started again under another name. It is the reaper of all processes that the
// command starts, so that none of them can detach from it, whatever session, parent or
// environment they choose. It kills them when the command ends, when the caller stops it,
// and when the caller dies. If the command kills the helper, the caller kills the processes
// that have the command's marker in their environment. On Windows a job object contains the
// processes. On other systems the process group of the command is killed; a process that
// leaves the group remains.
package runner

import (
	"context"
	"errors"
	"io"
	"os"
	"time"
)

// Spec describes a command.
type Spec struct {
	// Path is the absolute path of the program. Argv are its arguments with its name.
	Path string
	Argv []string
	// Dir is the working directory and Env the whole environment.
	Dir string
	Env []string
	// MaxProcesses is the maximum number of processes at once. Only Linux and Windows
	// support it.
	MaxProcesses int
	// Grace is the time that the command has to end after it was asked to.
	Grace time.Duration
	// Marker is a random text in Env that identifies the processes of the command.
	Marker string
	// Sandbox, if set, limits the command. Only Linux supports it.
	Sandbox *Sandbox
}

// Report describes the end of a command.
type Report struct {
	// Exited is set if the command ended with ExitCode.
	Exited   bool
	ExitCode int
	// Signal is the name of the signal that ended the command.
	Signal string
	// Failure describes why the command was not started, or why the runner failed.
	Failure string
	// TooMany is set if the command was killed because it had too many processes.
	TooMany bool
	// Killed is the number of processes that outlived the command and were killed. Left is
	// the number of those that could not be killed.
	Killed, Left int
}

// drainTime is the time in which the rest of the output is read after the last process has
// ended. A process can pass its output to a process that is not its own.
const drainTime = 2 * time.Second

// Run runs a command and copies its output and its errors to out. The command has no input.
// If ctx ends or out returns an error, the command is stopped.
func Run(ctx context.Context, spec Spec, out io.Writer) (Report, error) {
	reader, writer, err := os.Pipe()
	if err != nil {
		return Report{}, err
	}
	defer reader.Close()
	p, err := start(spec, writer)
	if err = errors.Join(err, writer.Close()); err != nil {
		return Report{}, err
	}
	copied, ended := make(chan error, 1), make(chan Report, 1)
	go func() {
		_, err := io.Copy(out, reader)
		copied <- err
	}()
	go func() { ended <- p.wait() }()
	var report Report
	var outErr error
	select {
	case report = <-ended:
	case <-ctx.Done():
		p.stop()
		report = <-ended
	case outErr = <-copied:
		if outErr != nil {
			p.stop()
		}
		report = <-ended
		return report, outErr
	}
	timer := time.NewTimer(drainTime)
	defer timer.Stop()
	select {
	case outErr = <-copied:
	case <-timer.C:
	}
	return report, outErr
}
