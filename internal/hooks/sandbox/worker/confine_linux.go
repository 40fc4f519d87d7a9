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
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
	"golang.org/x/sys/unix"
)

// confine takes from the process what it will not need: descriptors that it
// inherited, files, network, other processes, and more memory and time than the
// pool allows. After it, a script that got out of the engine would be in a
// process that can compute and talk to the pool, and nothing else.
//
// The number of processes is bounded by the filter of system calls, which
// forbids to make any: RLIMIT_NPROC counts all threads of the user, this
// process's own among them.
//
// missing says which wall the kernel, or the container around us, does not give;
// the others stand. It is empty where all do.
func confine(setup scriptwire.Setup) (missing string, err error) {
	letGo := ownPages()
	defer letGo()
	closeInherited()
	// The kernel, if it must end a process for want of memory, ends this one
	// first. It may not be allowed to be told so.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	if err := limit(setup); err != nil {
		return "", err
	}
	err = filterCalls()
	if err != nil && unsupported(err) {
		return err.Error(), nil
	}
	return "", err
}

// closeInherited closes the descriptors that this process got without asking:
// other code in the parent may open some that are inherited. Those of the Go
// runtime stay.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		return // no /proc: nothing can be told apart
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

// limit sets the resource limits. They are the net below the engine's own
// limits, so they are wide enough never to be met before those.
func limit(setup scriptwire.Setup) error {
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
		// The engine may hold its limit, a copy of it while an array grows,
		// and the text of a result in Go.
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

// dataSize is what counts against RLIMIT_DATA now.
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

// needed are the system calls of the Go runtime and of our pipe. Everything
// else is refused with EPERM: above all open, socket, connect, execve, fork,
// ptrace and kill of others.
func needed() []string {
	return []string{
		"read", "write", "close", "fcntl", "poll", "ppoll",
		"mmap", "munmap", "mremap", "mprotect", "madvise", "mincore", "brk",
		"futex", "futex_waitv", "rseq", "set_robust_list", "get_robust_list", "membarrier",
		"rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "sigaltstack", "restart_syscall",
		"tgkill", "getpid", "getppid", "gettid", "sched_yield", "sched_getaffinity",
		"nanosleep", "clock_nanosleep", "clock_gettime", "clock_getres", "gettimeofday", "time",
		"timer_create", "timer_settime", "timer_delete", "setitimer",
		"epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "eventfd2", "pipe2",
		"getrandom", "getrusage", "exit", "exit_group", "arch_prctl",
	}
}

// filterCalls forbids the other system calls to all threads, for good.
func filterCalls() error {
	info, err := arch.GetInfo("")
	if err != nil {
		return fmt.Errorf("filter system calls: %w: %w", unix.ENOSYS, err)
	}
	var names []string
	for _, name := range needed() {
		if _, known := info.SyscallNames[name]; known { // not every machine has each
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
				Action: seccomp.ActionAllow,
				Names:  names,
				// Threads may be made, processes not.
				NamesWithCondtions: []seccomp.NameWithConditions{{
					Name: "clone",
					Conditions: seccomp.ArgumentConditions{{
						Argument: 0, Operation: seccomp.BitsSet, Value: unix.CLONE_THREAD,
					}},
				}},
			}, {
				// Its flags lie where a filter cannot look. The C library
				// takes clone if it seems to be missing.
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

// unsupported tells whether the kernel, or the container around us, has no
// filters. The other walls stand then.
func unsupported(err error) bool {
	return errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EPERM)
}
