package measure

import (
	"errors"
	"time"
)

// ErrNotMeasured is the error of a platform without /proc.
var ErrNotMeasured = errors.New("not measured on this platform")

// Memory is the memory of a process, in bytes.
type Memory struct {
	// Resident is VmRSS, Peak is VmHWM, Own is RssAnon: resident pages that are not backed
	// by a file.
	Resident, Peak, Own int64
}

// CPUClock measures the CPU time that a process has used since StartCPU.
type CPUClock struct {
	pid   int
	began time.Duration
	err   error
}

// StartCPU starts a clock for a process.
func StartCPU(pid int) CPUClock {
	began, err := CPUTime(pid)
	return CPUClock{pid: pid, began: began, err: err}
}

// PerCall returns the CPU time since the start for each of n calls, in milliseconds, or nil
// if the platform does not report it.
func (c CPUClock) PerCall(n int) *float64 {
	now, err := CPUTime(c.pid)
	if c.err != nil || err != nil {
		return nil
	}
	return new(Milliseconds(now-c.began) / float64(n))
}

// TreeUsage sums the CPU time and the anonymous memory of a process and of its descendants:
// the pages of files, such as the program, can be dropped and are shared.
// It omits a process, with its descendants, if skip reports true for its command line. It
// returns zeros if the platform does not report them.
func TreeUsage(pid int, skip func(command []byte) bool) (cpu time.Duration, memory int64) {
	if skip(commandLine(pid)) {
		return 0, 0
	}
	cpu, _ = CPUTime(pid)
	if m, err := MemoryOf(pid); err == nil {
		memory = m.Own
	}
	for _, child := range Children(pid) {
		c, m := TreeUsage(child, skip)
		cpu, memory = cpu+c, memory+m
	}
	return cpu, memory
}
