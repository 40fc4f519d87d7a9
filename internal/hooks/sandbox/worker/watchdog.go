package worker

import (
	"fmt"
	"sync"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// watchdog stops a script that is over its time, from its own goroutines.
type watchdog struct {
	stopped chan struct{} // closed when it has stopped the script

	v       *vm
	limits  scriptwire.Limits
	before  time.Duration // the process's processor time at the start
	abandon func(*scriptwire.Answer)

	mu          sync.Mutex
	over        bool // the call has ended: bark no more
	barked      bool
	wall, cpu   *time.Timer
	unstoppable *time.Timer
}

// watch watches a script until call. If the engine does not stop soon after it
// was told to, abandon is called with the answer.
func watch(v *vm, limits scriptwire.Limits, before time.Duration, abandon func(*scriptwire.Answer)) *watchdog {
	d := &watchdog{stopped: make(chan struct{}), v: v, limits: limits, before: before, abandon: abandon}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wall = time.AfterFunc(limits.Wall, func() {
		d.bark(fmt.Sprintf("the script did not end within %v", limits.Wall))
	})
	if limits.CPU < limits.Wall {
		d.cpu = time.AfterFunc(limits.CPU, d.checkCPU)
	}
	return d
}

// checkCPU looks whether the time that has gone by was processor time.
func (d *watchdog) checkCPU() {
	left := d.limits.CPU - (processorTime() - d.before)
	if left <= 0 {
		d.bark(fmt.Sprintf("the script used more than %v of processor time", d.limits.CPU))
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.over && !d.barked {
		d.cpu.Reset(max(left, time.Millisecond))
	}
}

func (d *watchdog) bark(reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over || d.barked {
		return
	}
	d.barked = true
	d.v.stop(scriptwire.Timeout, reason)
	close(d.stopped)
	d.insist(reason, time.Now().Add(scriptwire.Grace))
}

// insist repeats the interrupt, because the engine forgets one that comes
// between two entries, until the end; then it gives the engine up.
func (d *watchdog) insist(reason string, end time.Time) {
	d.unstoppable = time.AfterFunc(scriptwire.Grace/6, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		switch {
		case d.over:
		case time.Now().Before(end):
			d.v.e.Interrupt()
			d.insist(reason, end)
		default:
			d.abandon(&scriptwire.Answer{Kind: scriptwire.Timeout, Message: reason})
		}
	})
}

// call calls the dog off: the script has ended.
func (d *watchdog) call() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	for _, timer := range []*time.Timer{d.wall, d.cpu, d.unstoppable} {
		if timer != nil {
			timer.Stop()
		}
	}
}
