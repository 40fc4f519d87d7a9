package runner

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// endGrace is the time in which the processes of a command that ended can end.
	endGrace = 200 * time.Millisecond
	// countInterval is the interval at which processes are counted.
	countInterval = 50 * time.Millisecond
	// killLimit is the time after which the runner gives up to kill processes, such as those
	// of another user.
	killLimit = 30 * time.Second
	// sweepInterval is the interval of attempts to kill processes.
	sweepInterval = 2 * time.Millisecond
)

// reportFile is the file descriptor to which the helper writes its report.
const reportFile = 3

// helperProcess is a helper with its command.
type helperProcess struct {
	cmd     *exec.Cmd
	control io.WriteCloser
	report  *os.File
	spec    Spec
	stopped chan struct{}
}

// start starts a helper, which starts the command.
func start(spec Spec, out *os.File) (*helperProcess, error) {
	reports, toReport, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer toReport.Close()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{helperName}, Env: []string{}} // it ends when its input ends
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = out, out, []*os.File{toReport}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if spec.Sandbox != nil && !spec.Sandbox.Network && canIsolateNetwork() {
		isolateNetwork(cmd.SysProcAttr)
		limits := *spec.Sandbox
		limits.Isolated = true
		spec.Sandbox = &limits
	}
	control, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("start the program that runs commands: %w", err), reports.Close())
	}
	p := &helperProcess{cmd: cmd, control: control, report: reports, spec: spec, stopped: make(chan struct{})}
	go func() { _ = gob.NewEncoder(control).Encode(spec) }() // An error means that the helper has ended.
	return p, nil
}

// stop asks the helper to stop the command.
func (p *helperProcess) stop() {
	close(p.stopped)
	_ = p.control.Close()
}

// wait waits for the end of the helper. A helper that does not stop is killed.
func (p *helperProcess) wait() (report Report) {
	ended := make(chan error, 1)
	go func() { ended <- gob.NewDecoder(p.report).Decode(&report) }()
	err := p.receive(ended)
	_ = p.cmd.Process.Kill() // It has ended, or it does not answer.
	_ = p.cmd.Wait()
	_ = p.report.Close()
	if err != nil {
		report = Report{Failure: "the command was interrupted: the process that supervised the command was killed or did not answer; the result is unknown: run the check again"}
	}
	if err != nil || report.Left > 0 {
		report.Killed += killMarked(p.spec.Marker)
	}
	return report
}

// receive waits for the report of the helper.
func (p *helperProcess) receive(ended <-chan error) error {
	select {
	case err := <-ended:
		return err
	case <-p.stopped:
	}
	timer := time.NewTimer(p.spec.Grace + killLimit + killLimit/2)
	defer timer.Stop()
	select {
	case err := <-ended:
		return err
	case <-timer.C:
		return errors.New("no report")
	}
}

// helperName is the name that the helper has as a program.
const helperName = "guideway-check-runner"

// init is the main function of a program that was started as the helper. It runs before the
// packages that the helper does not need are initialized, which would take most of the time
// that a check adds to its command.
func init() {
	if len(os.Args) != 1 || os.Args[0] != helperName {
		return
	}
	if err := runHelper(os.NewFile(0, "control")); err != nil {
		_, _ = fmt.Fprintln(os.NewFile(2, "errors"), err)
		os.Exit(1) //nolint:forbidigo // this is the main function of the helper
	}
	os.Exit(0) //nolint:forbidigo // this is the main function of the helper
}

// runHelper reads a Spec, runs its command and writes a Report to the file descriptor
// reportFile. It stops the command at the end of its input.
func runHelper(control io.Reader) error {
	// The command gets neither the report nor a file that this program got by mistake.
	if err := unix.CloseRange(reportFile, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(reportFile)
	}
	out := os.NewFile(reportFile, "report")
	// No other process of the user can write a report or trace the helper.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	var spec Spec
	if err := gob.NewDecoder(control).Decode(&spec); err != nil {
		return fmt.Errorf("read the command: %w", err)
	}
	stop := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, control)
		close(stop)
	}()
	report := supervise(spec, stop)
	return gob.NewEncoder(out).Encode(report)
}

// supervisor runs a command in the helper.
type supervisor struct {
	spec Spec
	pid  int
	// ended receives the status of the command. gone is closed when all processes have ended.
	ended  chan syscall.WaitStatus
	gone   chan struct{}
	report Report
}

// supervise runs a command until it ends, or until it is stopped, and kills its processes.
func supervise(spec Spec, stop <-chan struct{}) Report {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return Report{Failure: fmt.Sprintf("the command was not executed: cannot become the parent of its orphaned processes: %v", err)}
	}
	s := &supervisor{spec: spec, ended: make(chan syscall.WaitStatus, 1), gone: make(chan struct{})}
	started := make(chan error)
	go s.startCommand(started)
	if err := <-started; err != nil {
		return Report{Failure: "the command was not executed: " + err.Error()}
	}
	go s.reap()
	s.watch(stop)
	return s.report
}

// startCommand starts the command in a thread that remains: the command is killed when the
// thread ends, and only this thread has the limits of the sandbox. It is not the main thread,
// which init occupies: with the limits there, the command could send signals to the helper.
func (s *supervisor) startCommand(started chan<- error) {
	runtime.LockOSThread()
	null, err := os.Open(os.DevNull)
	if err == nil && s.spec.Sandbox != nil {
		err = s.spec.Sandbox.apply()
	}
	if err == nil {
		s.pid, err = limitProcesses(s.spec.MaxProcesses, func() (int, error) {
			return syscall.ForkExec(s.spec.Path, s.spec.Argv, &syscall.ProcAttr{ //nolint:gosec // G204: a command that a person approved
				Dir: s.spec.Dir, Env: s.spec.Env, Files: []uintptr{null.Fd(), 1, 2},
				Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
			})
		})
		if err != nil {
			err = fmt.Errorf("start %s: %w", s.spec.Path, err)
		}
	}
	started <- err
	select {}
}

// reap waits for all processes.
func (s *supervisor) reap() {
	defer close(s.gone)
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return // there are no processes
		case pid == s.pid && (status.Exited() || status.Signaled()):
			s.ended <- status
		}
	}
}

// watch waits for the end of the command or for a reason to stop it.
func (s *supervisor) watch(stop <-chan struct{}) {
	ticker := time.NewTicker(countInterval)
	defer ticker.Stop()
	for {
		select {
		case status := <-s.ended:
			s.setStatus(status)
			if !s.waitGone(endGrace) {
				s.killAll()
			}
			return
		case <-stop:
			_ = syscall.Kill(-s.pid, syscall.SIGTERM)
			s.waitGone(s.spec.Grace)
			s.killAll()
			return
		case <-ticker.C:
			if s.spec.MaxProcesses > 0 && s.hasTooMany() {
				s.report.TooMany = true
				s.killAll()
				return
			}
		}
	}
}

func (s *supervisor) setStatus(status syscall.WaitStatus) {
	s.report.Exited, s.report.ExitCode = status.Exited(), status.ExitStatus()
	if status.Signaled() {
		s.report.Signal = unix.SignalName(status.Signal())
	}
}

// waitGone waits until all processes have ended. It reports false at the end of the time.
func (s *supervisor) waitGone(limit time.Duration) bool {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-s.gone:
		return true
	case <-timer.C:
		return false
	}
}

// hasTooMany reports whether the command has too many processes.
func (s *supervisor) hasTooMany() bool {
	n := 0
	visitDescendants(func(int) bool { n++; return n <= s.spec.MaxProcesses })
	return n > s.spec.MaxProcesses
}

// killAll kills all processes. It stops each process before it lists its children, so that
// the process starts no others unnoticed.
func (s *supervisor) killAll() {
	restore := raisePriority()
	defer restore()
	killed := map[int]bool{}
	for began := time.Now(); time.Since(began) < killLimit; {
		var found []int
		visitDescendants(func(pid int) bool {
			_ = syscall.Kill(pid, syscall.SIGSTOP)
			found = append(found, pid)
			return true
		})
		for _, pid := range found {
			if syscall.Kill(pid, syscall.SIGKILL) == nil && pid != s.pid {
				killed[pid] = true
			}
		}
		if s.waitGone(sweepInterval) {
			break
		}
	}
	s.report.Left = len(descendants())
	s.report.Killed = max(0, len(killed)-s.report.Left)
}

// raisePriority gives the calling thread priority over the processes of a command, if this
// process may do that: root has no limit of processes.
func raisePriority() (restore func()) {
	runtime.LockOSThread()
	usual := unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL}
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Priority: 1, Flags: unix.SCHED_FLAG_RESET_ON_FORK}, 0)
	return func() {
		_ = unix.SchedSetAttr(0, &usual, 0)
		runtime.UnlockOSThread()
	}
}

// threadsOfProcess is the number of threads for which each process of a command counts in
// the limit of the kernel, which counts threads.
const threadsOfProcess = 8

// limitProcesses sets the limit of the kernel for the processes of the user, which does not
// apply to root, while start starts the command. The helper itself must not have the limit.
func limitProcesses(most int, start func() (pid int, err error)) (int, error) {
	threads, ok := countThreads()
	var own unix.Rlimit
	if most <= 0 || !ok || unix.Getrlimit(unix.RLIMIT_NPROC, &own) != nil {
		return start()
	}
	limit := min(own.Max, uint64(threads+most*threadsOfProcess))
	_ = unix.Setrlimit(unix.RLIMIT_NPROC, &unix.Rlimit{Cur: min(own.Cur, limit), Max: own.Max})
	pid, err := start()
	if err == nil {
		err = unix.Prlimit(pid, unix.RLIMIT_NPROC, &unix.Rlimit{Cur: min(own.Cur, limit), Max: limit}, nil)
		if errors.Is(err, unix.ESRCH) { // it has ended
			err = nil
		}
	}
	return pid, errors.Join(err, unix.Setrlimit(unix.RLIMIT_NPROC, &own))
}
