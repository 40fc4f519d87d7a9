package runner

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

// descendants returns the processes that this process and its descendants have started,
// without those that have ended.
func descendants() (all []int) {
	visitDescendants(func(pid int) bool {
		all = append(all, pid)
		return true
	})
	return all
}

// visitDescendants calls visit for each descendant of this process that has not ended, before
// it lists the children of that descendant. It stops if visit returns false.
func visitDescendants(visit func(pid int) bool) {
	self := os.Getpid()
	queue, ok := listChildren(self)
	if !ok {
		queue = scanDescendants(self)
	}
	for seen := map[int]bool{self: true}; len(queue) > 0; queue = queue[1:] {
		pid := queue[0]
		if seen[pid] {
			continue
		}
		seen[pid] = true
		if _, ended := readParent(pid); ended {
			continue
		}
		if !visit(pid) {
			return
		}
		children, _ := listChildren(pid)
		queue = append(queue, children...)
	}
}

// listChildren returns the children of a process. ok is false if the kernel does not list
// them.
func listChildren(pid int) (children []int, ok bool) {
	tasks := "/proc/" + strconv.Itoa(pid) + "/task"
	threads, _ := os.ReadDir(tasks)
	for _, thread := range threads {
		text, err := os.ReadFile(tasks + "/" + thread.Name() + "/children")
		if err != nil {
			continue // the thread has ended
		}
		ok = true
		for _, field := range strings.Fields(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				children = append(children, child)
			}
		}
	}
	return children, ok
}

// scanDescendants is like descendants for a kernel that does not list children.
func scanDescendants(self int) []int {
	parents := map[int]int{}
	for _, pid := range listProcesses() {
		if parent, ended := readParent(pid); !ended {
			parents[pid] = parent
		}
	}
	var all []int
	for pid := range parents {
		for at, depth := parents[pid], 0; at > 0 && depth < len(parents); at, depth = parents[at], depth+1 {
			if at == self {
				all = append(all, pid)
				break
			}
		}
	}
	return all
}

// listProcesses returns all processes.
func listProcesses() (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*")
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// readParent returns the parent of a process, and whether the process has ended.
func readParent(pid int) (parent int, ended bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, true
	}
	// The name of the program is in parentheses and can contain any character.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	if len(fields) < 2 {
		return 0, true
	}
	parent, _ = strconv.Atoi(fields[1])
	return parent, fields[0] == "Z" || fields[0] == "X"
}

const (
	// maxSweeps bounds the attempts to kill marked processes.
	maxSweeps = 100
	// quietSweeps is the number of sweeps without a new process after which the search ends:
	// while a process replaces its program, its environment is empty for a moment.
	quietSweeps = 3
	sweepPause  = 10 * time.Millisecond
)

// killMarked kills the processes whose environment contains a marker. It returns their
// number.
func killMarked(marker string) int {
	known, quiet := map[int]bool{}, 0
	for range maxSweeps {
		fresh := false
		for _, pid := range listProcesses() {
			env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
			if err == nil && marker != "" && pid != os.Getpid() && bytes.Contains(env, []byte(marker)) {
				fresh = fresh || !known[pid]
				known[pid] = true
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		if fresh {
			quiet = 0
			continue
		}
		if quiet++; quiet == quietSweeps {
			break
		}
		_ = ctxsleep.For(context.Background(), sweepPause)
	}
	return len(known)
}

// countThreads returns the number of all threads of the system.
func countThreads() (n int, ok bool) {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0, false
	}
	if _, rest, ok := strings.Cut(string(text), "/"); ok {
		n, err = strconv.Atoi(strings.Fields(rest)[0])
		return n, err == nil
	}
	return 0, false
}
