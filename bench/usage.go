package main

import (
	"errors"
	"time"
)

// errNotMeasured is what a platform without /proc gives.
var errNotMeasured = errors.New("not measured on this platform")

// memory is what a process holds, in bytes.
type memory struct {
	// resident is VmRSS, peak is VmHWM, own is RssAnon: what is resident and
	// not a page of a file.
	resident, peak, own int64
}

// cpuClock reads the CPU time that a process has taken so far.
type cpuClock struct {
	pid   int
	began time.Duration
	err   error
}

func startCPU(pid int) cpuClock {
	began, err := cpuTime(pid)
	return cpuClock{pid: pid, began: began, err: err}
}

// perCall is the CPU time since the start, for each of n calls, in
// milliseconds; nil where it cannot be had.
func (c cpuClock) perCall(n int) *float64 {
	now, err := cpuTime(c.pid)
	if c.err != nil || err != nil {
		return nil
	}
	return new(milliseconds(now-c.began) / float64(n))
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
