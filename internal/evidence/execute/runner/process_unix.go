//go:build unix && !linux

package runner

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// groupProcess is a command in its own process group.
type groupProcess struct {
	cmd     *exec.Cmd
	spec    Spec
	ended   chan struct{}
	stopped chan struct{}
}

// start starts the command.
func start(spec Spec, out *os.File) (*groupProcess, error) {
	if spec.Sandbox != nil {
		return nil, errors.New("this system has no sandbox")
	}
	cmd := &exec.Cmd{Path: spec.Path, Args: spec.Argv, Dir: spec.Dir, Env: spec.Env, Stdout: out, Stderr: out, SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &groupProcess{cmd: cmd, spec: spec, ended: make(chan struct{}), stopped: make(chan struct{})}, nil
}

// stop asks the command to end, and kills it after its time of grace.
func (p *groupProcess) stop() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGTERM)
	timer := time.NewTimer(p.spec.Grace)
	defer timer.Stop()
	select {
	case <-p.ended:
	case <-timer.C:
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}

// wait waits for the end of the command and kills the rest of its group.
func (p *groupProcess) wait() (r Report) {
	_ = p.cmd.Wait() // The state of the process says how it ended.
	close(p.ended)
	if syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) == nil {
		r.Killed = 1 // at least one process was killed
	}
	status, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	r.Exited, r.ExitCode = status.Exited(), status.ExitStatus()
	if status.Signaled() {
		r.Signal = status.Signal().String()
	}
	return r
}
