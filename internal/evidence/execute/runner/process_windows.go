package runner

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"unsafe"

	"golang.org/x/sys/windows"
)

// jobProcess is a command in a job object, which all its processes belong to.
type jobProcess struct {
	cmd *exec.Cmd
	job windows.Handle
}

// start starts the command.
func start(spec Spec, out *os.File) (*jobProcess, error) {
	if spec.Sandbox != nil {
		return nil, errors.New("this system has no sandbox")
	}
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("create a job object: %w", err)
	}
	p := &jobProcess{job: job}
	info := windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION{}
	info.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if spec.MaxProcesses > 0 {
		info.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
		info.BasicLimitInformation.ActiveProcessLimit = uint32(spec.MaxProcesses)
	}
	_, err = windows.SetInformationJobObject(job, windows.JobObjectExtendedLimitInformation, uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info))) //nolint:gosec // G103: the call takes a pointer
	if err == nil {
		p.cmd = &exec.Cmd{Path: spec.Path, Args: spec.Argv, Dir: spec.Dir, Env: spec.Env, Stdout: out, Stderr: out}
		err = p.cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(err, windows.CloseHandle(job))
	}
	if err := p.assign(); err != nil {
		p.stop()
		return nil, errors.Join(err, p.cmd.Wait())
	}
	return p, nil
}

// assign puts the command into the job.
func (p *jobProcess) assign() error {
	process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(p.cmd.Process.Pid))
	if err != nil {
		return fmt.Errorf("open the process: %w", err)
	}
	defer func() { _ = windows.CloseHandle(process) }()
	if err := windows.AssignProcessToJobObject(p.job, process); err != nil {
		return fmt.Errorf("assign the process to its job object: %w", err)
	}
	return nil
}

// stop kills all processes of the job.
func (p *jobProcess) stop() {
	_ = windows.TerminateJobObject(p.job, 1)
	_ = p.cmd.Process.Kill()
}

// wait waits for the end of the command and kills the rest of its job.
func (p *jobProcess) wait() Report {
	_ = p.cmd.Wait() // The state of the process says how it ended.
	_ = windows.TerminateJobObject(p.job, 1)
	_ = windows.CloseHandle(p.job)
	return Report{Exited: true, ExitCode: p.cmd.ProcessState.ExitCode()}
}
