package sandbox

import (
	"context"
	"slices"
	"time"

	"github.com/guideway-dev/guideway"
)

// waiter is a call that waits for a worker.
type waiter struct {
	owner   string
	came    time.Time
	since   time.Time  // the time of the last start of a worker that this call waits for
	granted chan grant // buffered for one grant
}

// grant is a worker or the error of starting one.
type grant struct {
	process *process
	err     error
}

// maxWaiting is the maximum number of waiting calls.
const maxWaiting = 10_000

// acquire takes a worker, which release returns.
func (p *Pool) acquire(ctx context.Context, owner string) (*process, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed()
	}
	if len(p.waiting) >= maxWaiting {
		p.mu.Unlock()
		return nil, guideway.Errorf(guideway.CodeUnavailable, "%d scripts, the maximum, are already waiting", maxWaiting).
			WithFix("try again later")
	}
	now := time.Now()
	w := &waiter{owner: owner, came: now, since: now, granted: make(chan grant, 1)}
	p.waiting = append(p.waiting, w)
	p.dispatchLocked()
	if len(w.granted) == 0 {
		if p.living < p.options.Workers {
			p.growLocked(ctx)
		}
		p.watchLocked(ctx)
	}
	p.mu.Unlock()

	select {
	case g := <-w.granted:
		return g.process, g.err
	case <-ctx.Done():
	}
	p.mu.Lock()
	p.waiting = slices.DeleteFunc(p.waiting, func(other *waiter) bool { return other == w })
	p.mu.Unlock()
	select {
	case g := <-w.granted: // a worker was granted at the same time
		if g.err == nil {
			p.release(owner, g.process, true)
		}
	default:
	}
	return nil, guideway.Errorf(guideway.CodeUnavailable, "the wait for a script worker ended: %w", context.Cause(ctx))
}

// release returns a worker to the pool. It kills an unusable or surplus worker.
func (p *Pool) release(owner string, process *process, usable bool) {
	p.mu.Lock()
	delete(p.busy, process)
	if p.owners[owner]--; p.owners[owner] <= 0 {
		delete(p.owners, owner)
	}
	spare := p.living > p.options.Workers && p.nextLocked() == nil
	if usable && !p.closed && !spare {
		p.idle = append(p.idle, process)
		process = nil
	} else {
		p.living--
		if !p.closed && p.living < p.options.Workers {
			p.growLocked(context.Background())
		}
	}
	p.dispatchLocked()
	p.mu.Unlock()
	if process != nil {
		p.tasks.Go(process.killAndWait) // the caller does not wait for it
	}
	p.calls.Done()
}

// dispatchLocked assigns idle workers to waiting calls.
func (p *Pool) dispatchLocked() {
	for len(p.idle) > 0 {
		w := p.nextLocked()
		if w == nil {
			return
		}
		last := len(p.idle) - 1
		process := p.idle[last]
		p.idle = slices.Delete(p.idle, last, last+1)
		p.waiting = slices.DeleteFunc(p.waiting, func(other *waiter) bool { return other == w })
		p.owners[w.owner]++
		p.busy[process] = struct{}{}
		p.calls.Add(1)
		w.granted <- grant{process: process}
	}
}

// nextLocked returns the next waiting call: the longest waiting one of the owners with the
// fewest running calls. An owner at its limit is skipped.
func (p *Pool) nextLocked() *waiter {
	share := max(1, p.options.Burst/2)
	var next *waiter
	for _, w := range p.waiting {
		if running := p.owners[w.owner]; running < share && (next == nil || running < p.owners[next.owner]) {
			next = w
		}
	}
	return next
}

// growLocked starts a worker in the background.
func (p *Pool) growLocked(ctx context.Context) {
	p.living++
	p.starting++
	began := time.Now()
	p.tasks.Go(func() {
		process, err := startProcess(context.WithoutCancel(ctx), &p.options)
		p.mu.Lock()
		p.starting--
		if err != nil {
			p.living--
			p.refuseLocked(began, err)
			p.mu.Unlock()
			return
		}
		if p.closed {
			p.living--
			p.mu.Unlock()
			process.killAndWait()
			return
		}
		p.setMissingLocked(process.missing)
		p.idle = append(p.idle, process)
		p.dispatchLocked()
		p.mu.Unlock()
	})
}

// refuseLocked returns an error to the calls that waited for a failed start, unless a
// worker is running that can serve them. Calls that came after began keep waiting if
// another worker is starting.
func (p *Pool) refuseLocked(began time.Time, err error) {
	p.options.Log.Error("no script worker can be started", "error", err)
	if p.living > p.starting {
		return
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool {
		if p.living > 0 && w.came.After(began) {
			return false
		}
		w.granted <- grant{err: guideway.Errorf(guideway.CodeUnavailable, "cannot run scripts: %w", err).WithFix("to check the sandbox, run: guideway doctor")}
		return true
	})
}

// watchLocked starts an additional worker if a call waits long. The wait is measured for
// each call, so that different calls that each wait a short time do not cause a start.
func (p *Pool) watchLocked(ctx context.Context) {
	if p.growing != nil {
		return
	}
	wait := maxWait
	if w := p.nextLocked(); w != nil {
		wait = max(maxWait-time.Since(w.since), time.Millisecond)
	}
	p.growing = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.growing = nil
		if p.closed || len(p.waiting) == 0 {
			return
		}
		w := p.nextLocked()
		if w != nil && p.living < p.options.Burst && time.Since(w.since) >= maxWait {
			p.growLocked(ctx)
			for _, other := range p.waiting {
				other.since = time.Now() // from now on, they wait for the new worker
			}
		}
		p.watchLocked(ctx)
	})
}
