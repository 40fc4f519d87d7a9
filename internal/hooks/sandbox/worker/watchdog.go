package worker

import (
	"fmt"
	"sync"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
)

// watchdog stops a script that exceeds its wall or CPU time. It runs in separate
// goroutines.
type watchdog struct {
	stopped chan struct{} // closed after it has stopped the script

	v       *vm
	limits  scriptwire.Limits
	before  time.Duration // the CPU time of the process at the start
	abandon func(*scriptwire.Answer)

	mu          sync.Mutex
	over        bool // set after the call has ended, because the watchdog must not stop the next call
	barked      bool
	wall, cpu   *time.Timer
	unstoppable *time.Timer
}

// startWatchdog watches a script until endWatch. If the engine does not stop soon after an
// interrupt, it calls abandon with the answer.
func startWatchdog(v *vm, limits scriptwire.Limits, before time.Duration, abandon func(*scriptwire.Answer)) *watchdog {
	d := &watchdog{stopped: make(chan struct{}), v: v, limits: limits, before: before, abandon: abandon}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wall = time.AfterFunc(limits.Wall, func() {
		d.stopScript(fmt.Sprintf("the script did not end within %v", limits.Wall))
	})
	if limits.CPU < limits.Wall {
		d.cpu = time.AfterFunc(limits.CPU, d.checkCPU)
	}
	return d
}

// checkCPU stops the script if it has used its CPU time, or checks again later.
func (d *watchdog) checkCPU() {
	left := d.limits.CPU - (processorTime() - d.before)
	if left <= 0 {
		d.stopScript(fmt.Sprintf("the script used more than %v of CPU time", d.limits.CPU))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over && !d.barked {
		d.cpu.Reset(max(left, time.Millisecond))
	}
}

func (d *watchdog) stopScript(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.barked {
		return
	}
	d.barked = true
	d.v.stopWith(scriptwire.Timeout, reason)
	close(d.stopped)
	d.keepStopping(reason, time.Now().Add(scriptwire.Grace))
}

// keepStopping repeats the interrupt until the given time. If the script has not ended then,
// keepStopping abandons the engine.
func (d *watchdog) keepStopping(reason string, end time.Time) {
	d.unstoppable = time.AfterFunc(scriptwire.Grace/6, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.over:
		case time.Now().Before(end):
			d.v.e.Interrupt()
			d.keepStopping(reason, end)
		default:
			d.abandon(&scriptwire.Answer{Kind: scriptwire.Timeout, Message: reason})
		}
	})
}

// endWatch stops the watchdog after the script has ended.
func (d *watchdog) endWatch() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	for _, timer := range []*time.Timer{d.wall, d.cpu, d.unstoppable} {
		if timer != nil {
			timer.Stop()
		}
	}
}
