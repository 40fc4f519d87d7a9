package sandbox

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/guideway-dev/guideway"
)

func testPool(t *testing.T, o Options) *Pool {
	t.Helper()
	p, err := NewPool(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

func newCall(source string) Call { return Call{Module: Module{Source: source}} }

// waitIdle waits until the only worker of a pool is idle, and returns it.
func waitIdle(t *testing.T, p *Pool) *process {
	t.Helper()
	w, err := p.acquire(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	p.release("", w, true)
	return w
}

// waitRunning waits until a call runs in a worker, and returns it.
func waitRunning(t *testing.T, p *Pool) *process {
	t.Helper()
	for range 10_000 {
		p.mu.Lock()
		for w := range p.busy {
			p.mu.Unlock()
			return w
		}
		p.mu.Unlock()
		<-time.After(time.Millisecond)
	}
	t.Fatal("no call is running")
	return nil
}

// sendSignal sends a signal to a worker.
func sendSignal(t *testing.T, w *process, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(w.cmd.Process.Pid, signal); err != nil {
		t.Fatal(err)
	}
}

// stopWorker stops a worker with SIGSTOP, and waits until it is stopped: until then its
// threads still run.
func stopWorker(t *testing.T, w *process) {
	t.Helper()
	sendSignal(t, w, syscall.SIGSTOP)
	status := "/proc/" + strconv.Itoa(w.cmd.Process.Pid) + "/status"
	for range 10_000 {
		text, err := os.ReadFile(status)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "State:\tT") {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatal("the worker did not stop")
}

// waitUnread waits until a worker has unread requests, or, if want is false, until it has
// none.
func waitUnread(t *testing.T, w *process, want bool) {
	t.Helper()
	conn, err := w.in.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for range 10_000 {
		unread, failed := 0, error(nil)
		if err := conn.Control(func(fd uintptr) { unread, failed = unix.IoctlGetInt(int(fd), unix.TIOCINQ) }); err != nil || failed != nil {
			t.Fatal(err, failed)
		}
		if (unread > 0) == want {
			return
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("the worker still has unread requests: %t", !want)
}

// A worker that is killed during a call causes an error, and the call is not repeated.
func TestKilledDuringCall(t *testing.T) {
	t.Parallel()
	p := testPool(t, Options{Workers: 1, Burst: 1})
	w := waitIdle(t, p)
	// While the worker is stopped, the test can observe when the request is in its pipe. If
	// the worker exits before that, the call runs in a new worker.
	stopWorker(t, w)
	if err := unix.Waitid(unix.P_PID, w.cmd.Process.Pid, nil, unix.WSTOPPED, nil); err != nil {
		t.Fatal(err)
	}
	var began sync.WaitGroup
	began.Go(func() {
		_, err := p.Run(t.Context(), newCall(`await sleep(4000)`))
		var e *Error
		if !errors.As(err, &e) || e.Kind != Crashed || guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("got %v, want a crash", err)
		}
	})
	waitUnread(t, w, true)
	sendSignal(t, w, syscall.SIGCONT)
	waitUnread(t, w, false)
	sendSignal(t, w, syscall.SIGKILL)
	began.Wait()
	if w.calls != 0 {
		t.Errorf("the killed worker has answered %d calls", w.calls)
	}
	if _, err := p.Run(t.Context(), newCall(`return 1`)); err != nil {
		t.Errorf("Run after the crash returned %v", err)
	}
}

// A worker that exits while idle does not affect the next call.
func TestKilledWhileIdle(t *testing.T) {
	t.Parallel()
	p := testPool(t, Options{Workers: 1, Burst: 1})
	w := waitIdle(t, p)
	sendSignal(t, w, syscall.SIGKILL)
	<-w.gone
	if _, err := p.Run(t.Context(), newCall(`return 1`)); err != nil {
		t.Error(err)
	}
}

// Cancelling a call ends its script.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	p := testPool(t, Options{Workers: 1, Burst: 1})
	ctx, cancel := context.WithCancel(t.Context())
	var began sync.WaitGroup
	began.Go(func() {
		if _, err := p.Run(ctx, newCall(`for (;;);`)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
	w := waitRunning(t, p)
	cancel()
	began.Wait()
	<-w.gone
	if _, err := p.Run(t.Context(), newCall(`return 1`)); err != nil {
		t.Error(err)
	}
	// A call with a cancelled context is refused.
	if _, err := p.Run(ctx, newCall(`return 1`)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
}

// Close waits for running calls until its context ends. Later calls are refused.
func TestClose(t *testing.T) {
	t.Parallel()
	p, err := NewPool(Options{Workers: 1, Burst: 1})
	if err != nil {
		t.Fatal(err)
	}
	var began sync.WaitGroup
	began.Go(func() {
		if _, err := p.Run(context.Background(), newCall(`for (;;);`)); err == nil {
			t.Error("an endless script ended without an error")
		}
	})
	began.Go(func() { // Go returns when Close waits for the worker
		waitRunning(t, p)
		if _, err := p.Run(context.Background(), newCall(`return 1`)); err == nil {
			t.Error("a script ran in a closed pool")
		}
	})
	waitRunning(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := p.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close returned %v, want context.DeadlineExceeded", err)
	}
	began.Wait()
	if _, err := p.Run(t.Context(), newCall(`return 1`)); guideway.ErrorCode(err) != guideway.CodeUnavailable {
		t.Errorf("Run of a closed pool returned %v", err)
	}
}

// If no worker can be started, calls return an error.
func TestNoWorker(t *testing.T) {
	t.Parallel()
	for _, command := range [][]string{{"/does/not/exist"}, {"/bin/false"}, {"/bin/echo", "hello, hello, hello"}} {
		p := testPool(t, Options{Command: command})
		if _, err := p.Run(t.Context(), newCall(`return 1`)); guideway.ErrorCode(err) != guideway.CodeUnavailable {
			t.Errorf("%v: got %v", command, err)
		}
	}
}

// If workers fail at their start, even slowly, a call returns the worker's own error, and
// at most 16 workers are started.
func TestSlowlyFailingWorker(t *testing.T) {
	t.Parallel()
	for _, delay := range []string{"0", "0.05", "0.2"} {
		starts := filepath.Join(t.TempDir(), "starts")
		p := testPool(t, Options{Command: []string{"/bin/sh", "-c", "echo x >> " + starts + "; sleep " + delay + "; echo no room >&2; exit 1"}})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		_, err := p.Run(ctx, newCall(`return 1`))
		cancel()
		if guideway.ErrorCode(err) != guideway.CodeUnavailable || !strings.Contains(err.Error(), "no room") {
			t.Errorf("%s: got %v, want the worker's error", delay, err)
		}
		if text, _ := os.ReadFile(starts); len(text)/2 > 16 {
			t.Errorf("%s: %d starts", delay, len(text)/2)
		}
	}
}

// Without deadlines of pipes, as on Windows, scripts run, and a script that hangs is ended
// by its limit or when its call is cancelled.
func TestPipesWithoutDeadlines(t *testing.T) {
	t.Parallel()
	blocking := func() (r, w *os.File, err error) {
		var fds [2]int
		if err := syscall.Pipe2(fds[:], syscall.O_CLOEXEC); err != nil {
			return nil, nil, err
		}
		return os.NewFile(uintptr(fds[0]), "r"), os.NewFile(uintptr(fds[1]), "w"), nil
	}
	p := testPool(t, Options{Workers: 1, Burst: 1, makePipe: blocking})
	for range 2 {
		if _, err := p.Run(t.Context(), newCall(`return 1`)); err != nil {
			t.Fatal(err)
		}
	}
	w := waitIdle(t, p)
	stopWorker(t, w) // a stopped worker cannot end the script by its own watchdog
	c := newCall(`return 1`)
	c.Limits.Wall = 50 * time.Millisecond
	var e *Error
	if _, err := p.Run(t.Context(), c); !errors.As(err, &e) || e.Kind != Timeout {
		t.Errorf("got %v, want a timeout", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var began sync.WaitGroup
	began.Go(func() {
		if _, err := p.Run(ctx, newCall(`for (;;);`)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want context.Canceled", err)
		}
	})
	waitRunning(t, p)
	cancel()
	began.Wait()
}

// Workers that reached a limit are replaced, others are kept.
func TestWorkersAreReused(t *testing.T) {
	t.Parallel()
	p := testPool(t, Options{Workers: 1, Burst: 1})
	first := waitIdle(t, p)
	for _, source := range []string{`return 1`, `throw 1`, `)`, `return 1n`} {
		_, _ = p.Run(t.Context(), newCall(source))
	}
	if waitIdle(t, p) != first {
		t.Error("a worker was replaced although it reached no limit")
	}
	_, _ = p.Run(t.Context(), newCall(`const f = () => f(); f()`))
	if waitIdle(t, p) == first {
		t.Error("a worker that reached a limit was not replaced")
	}
}

// A worker inherits nothing from its parent: no environment and no descriptors; it has its
// own process group and directory, and the kernel enforces its limits.
func TestConfinement(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("/proc is not available")
	}
	// A descriptor that is inherited by mistake.
	leaked, err := syscall.Open("/etc/hostname", syscall.O_RDONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = syscall.Close(leaked) }()
	p := testPool(t, Options{Workers: 1, Burst: 1})
	w := waitIdle(t, p)
	proc := "/proc/" + strconv.Itoa(w.cmd.Process.Pid) + "/"
	read := func(name string) string {
		b, err := os.ReadFile(proc + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if env := read("environ"); env != "" {
		t.Errorf("the environment is %q", env)
	}
	entries, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, _ := os.Readlink(proc + "fd/" + e.Name())
		if !strings.HasPrefix(target, "pipe:") && !strings.HasPrefix(target, "anon_inode:[event") &&
			!strings.HasPrefix(target, "/sys/fs/cgroup") {
			t.Errorf("descriptor %s is %s", e.Name(), target)
		}
	}
	status := read("status")
	for _, line := range []string{"NoNewPrivs:\t1", "Seccomp:\t2"} {
		if !strings.Contains(status, line) {
			t.Errorf("the status has no %q", line)
		}
	}
	limits := strings.Join(strings.Fields(read("limits")), " ")
	for _, l := range []string{"Max core file size 0 0", "Max file size 0 0", "Max open files 16 16", "Max cpu time 180 180"} {
		if !strings.Contains(limits, l) {
			t.Errorf("the limits have no %q:\n%s", l, limits)
		}
	}
	if dir, _ := os.Readlink(proc + "cwd"); dir != "/" {
		t.Errorf("the working directory is %s, want /", dir)
	}
	if group, err := syscall.Getpgid(w.cmd.Process.Pid); err != nil || group != w.cmd.Process.Pid {
		t.Errorf("the process group is %d, error %v", group, err)
	}
	if score := strings.TrimSpace(read("oom_score_adj")); score != "1000" {
		t.Errorf("oom_score_adj is %s, want 1000", score)
	}
}
