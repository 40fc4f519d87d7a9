package worker

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"

	seccomp "github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"golang.org/x/sys/unix"
)

// confineProcess removes access that the process does not need: inherited descriptors,
// files, network, other processes, and memory and time above the pool's limits. A script
// that escapes from the engine is in a process that can only compute and communicate with
// the pool.
//
// The system call filter forbids new processes: RLIMIT_NPROC would count all threads of the
// user, including those of this process.
//
// missing is the protection that the kernel or the container does not support, or empty;
// the other protections apply anyway.
func confineProcess(setup scriptwire.Setup) (missing string, err error) {
	letGo := ownPages()
	defer letGo()
	closeInherited()
	// If the kernel runs out of memory, it should kill this process first. A container may
	// forbid this.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := setLimits(setup); err != nil {
		return "", err
	}
	err = filterCalls()
	if err != nil && isUnsupported(err) {
		return err.Error(), nil
	}
	return "", err
}

// closeInherited closes inherited descriptors: other code in the parent may have opened
// some. It keeps those of the Go runtime.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // without /proc the descriptors are unknown
	}
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		if err != nil || fd <= 2 {
			continue
		}
		target, err := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || strings.HasPrefix(target, "anon_inode:[event") || strings.HasPrefix(target, "/sys/fs/cgroup") {
			continue
		}
		_ = unix.Close(fd)
	}
}

// setLimits sets the resource limits. They are a second line of defense after the engine's
// own limits, and large enough not to apply first.
func setLimits(setup scriptwire.Setup) error {
	limits := []struct {
		name     string
		resource int
		max      uint64
	}{
		{"core", unix.RLIMIT_CORE, 0},
		{"file size", unix.RLIMIT_FSIZE, 0},
		{"open files", unix.RLIMIT_NOFILE, 16},
		{"processor time", unix.RLIMIT_CPU, setup.CPUSeconds},
	}
	if data, ok := dataSize(); ok && !raceEnabled {
		// The process needs memory for the engine's limit, for a copy while an array grows,
		// and for the text of a result in Go.
		limits = append(limits, struct {
			name     string
			resource int
			max      uint64
		}{"data", unix.RLIMIT_DATA, data + 4*uint64(setup.Memory) + 128<<20})
	}
	for _, l := range limits {
		if err := unix.Setrlimit(l.resource, &unix.Rlimit{Cur: l.max, Max: l.max}); err != nil {
			return fmt.Errorf("limit the %s: %w", l.name, err)
		}
	}
	return nil
}

// dataSize returns the current memory of the process that RLIMIT_DATA limits.
func dataSize() (uint64, bool) {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(statm))
	if len(fields) < 6 {
		return 0, false
	}
	pages, err := strconv.ParseUint(fields[5], 10, 64)
	return pages * uint64(os.Getpagesize()), err == nil
}

// allowedCalls returns the system calls of the Go runtime and of the pipe. Others fail with
// EPERM, except clone3 and the calls of allowedArguments: above all open, socket, connect,
// execve, fork, ptrace and kill of other processes.
func allowedCalls() []string {
	return []string{
		"read", "write", "close", "poll", "ppoll",
		"mmap", "munmap", "mremap", "mprotect", "madvise", "mincore", "brk",
		"futex", "futex_waitv", "rseq", "set_robust_list", "get_robust_list", "membarrier",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
		"getpid", "getppid", "gettid", "sched_yield", "sched_getaffinity",
		"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time",
		"timer_create", "timer_settime", "timer_delete", "setitimer",
		"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "pipe2",
		"getrandom", "getrusage", "exit", "exit_group", "arch_prctl",
	}
}

// allowedArguments returns the system calls that are allowed with some arguments only:
// threads but no processes, signals to its own threads, and the fcntl commands of the Go
// runtime. Other arguments direct signals at other processes or wait for files.
func allowedArguments() []seccomp.NameWithConditions {
	allow := func(name string, argument uint32, operation seccomp.Operation, value int) seccomp.NameWithConditions {
		return seccomp.NameWithConditions{Name: name, Conditions: seccomp.ArgumentConditions{{
			Argument: argument, Operation: operation, Value: uint64(value),
		}}}
	}
	calls := []seccomp.NameWithConditions{
		allow("clone", 0, seccomp.BitsSet, unix.CLONE_THREAD),
		allow("tgkill", 0, seccomp.Equal, os.Getpid()),
	}
	for _, command := range []int{unix.F_DUPFD_CLOEXEC, unix.F_GETFD, unix.F_SETFD, unix.F_GETFL, unix.F_SETFL} {
		calls = append(calls, allow("fcntl", 1, seccomp.Equal, command))
	}
	return calls
}

// filterCalls permanently forbids all system calls to all threads, except the allowed ones.
func filterCalls() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("filter system calls: %w: %w", unix.ENOSYS, err)
	}
	var names []string
	for _, name := range allowedCalls() {
		if _, known := info.SyscallNames[name]; known { // some calls exist only on some architectures
			names = append(names, name)
		}
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err = seccomp.LoadFilter(seccomp.Filter{
		NoNewPrivs: true,
		Flag:       seccomp.FilterFlagTSync,
		Policy: seccomp.Policy{
			DefaultAction: seccomp.ActionErrno,
			Syscalls: []seccomp.SyscallGroup{{
				Action:             seccomp.ActionAllow,
				Names:              names,
				NamesWithCondtions: allowedArguments(),
			}, {
				// A filter cannot read the flags of clone3. With ENOSYS the C library falls
				// back to clone.
				Action: seccomp.ActionErrno | seccomp.Action(unix.ENOSYS),
				Names:  []string{"clone3"},
			}},
		},
	})
	if err != nil {
		return fmt.Errorf("filter system calls: %w", err)
	}
	return nil
}

// isUnsupported reports whether the error means that the kernel or the container has no
// filters. The other protections apply then.
func isUnsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM)
}
