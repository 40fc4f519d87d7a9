// Package memtrim gives back what a process that serves has in memory and does
// not need: what only its start used, and what a burst of work has left. Each client
// starts a process of its own, and most of them wait most of the time.
package memtrim

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"

	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
)

const (
	defaultSettle = time.Second
	defaultQuiet  = time.Second
	defaultIdle   = time.Minute
	defaultEnough = 8 << 20

	// usualGC is what Go's collector waits for, as GOGC says it. hurriedGC is as much
	// as a usual start allocates in all; a start with thousands of definitions still
	// collects its garbage.
	usualGC, hurriedGC = 100, 400
)

// Hurry has a start go on without collecting garbage, which takes a tenth of its time
// and is soon given back in any case. A Trimmer ends it. Where the user has set GOGC
// nothing is changed.
func Hurry() { collectAt(hurriedGC) }

func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Options say when memory is given back. The zero value is usable.
type Options struct {
	// Settle is how long after the first answer the start is over; 0 is a second.
	Settle time.Duration
	// Idle is when it is over though nothing was asked; 0 is a minute.
	Idle time.Duration
	// Quiet is for how long nothing is answered when a burst is over; 0 is a second.
	Quiet time.Duration
	// Enough is how many bytes a burst allocates that is worth a collection of
	// garbage; 0 is 8 MiB.
	Enough uint64
	// Pack makes small what the process keeps without using it, before memory is given
	// back; nil packs nothing.
	Pack func()

	// What tests put in the place of the process.
	release   func()
	allocated func() uint64
}

// Trimmer gives memory back, in a goroutine of its own. Close ends it.
type Trimmer struct {
	opts    Options
	answers atomic.Int64
	woken   chan struct{}
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Start starts a trimmer, which does nothing until something was answered or a while
// has passed.
func Start(opts Options) *Trimmer {
	if opts.Settle == 0 {
		opts.Settle = defaultSettle
	}
	if opts.Idle == 0 {
		opts.Idle = defaultIdle
	}
	if opts.Quiet == 0 {
		opts.Quiet = defaultQuiet
	}
	if opts.Enough == 0 {
		opts.Enough = defaultEnough
	}
	if opts.Pack == nil {
		opts.Pack = func() {}
	}
	if opts.release == nil {
		opts.release, opts.allocated = debug.FreeOSMemory, allocated
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Trimmer{opts: opts, woken: make(chan struct{}, 1), cancel: cancel}
	t.done.Go(func() { t.run(ctx) })
	return t
}

// Answered says that something was answered. It costs next to nothing.
func (t *Trimmer) Answered() {
	t.answers.Add(1)
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// Close ends the trimmer and waits for that.
func (t *Trimmer) Close() {
	t.cancel()
	t.done.Wait()
}

// run gives back what the start has used, whether or not it is quiet then, and after
// that whenever a burst is over. Nothing wakes it while nothing is answered.
func (t *Trimmer) run(ctx context.Context) {
	if !t.settle(ctx) {
		return
	}
	collectAt(usualGC)
	t.opts.Pack()
	t.opts.release()
	for since := t.opts.allocated(); t.wake(ctx); {
		if !t.quiet(ctx) {
			return
		}
		if now := t.opts.allocated(); now-since >= t.opts.Enough {
			t.opts.Pack()
			t.opts.release()
			since = now
		}
	}
}

// settle waits until the start is over; false says that the trimmer ends.
func (t *Trimmer) settle(ctx context.Context) bool {
	idle := time.NewTimer(t.opts.Idle)
	defer idle.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-idle.C:
		return true
	case <-t.woken:
		return ctxsleep.For(ctx, t.opts.Settle) == nil
	}
}

// wake waits for an answer; false says that the trimmer ends.
func (t *Trimmer) wake(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-t.woken:
		return true
	}
}

// quiet waits until nothing was answered for a while.
func (t *Trimmer) quiet(ctx context.Context) bool {
	for {
		before := t.answers.Load()
		if ctxsleep.For(ctx, t.opts.Quiet) != nil {
			return false
		}
		if t.answers.Load() == before {
			return true
		}
	}
}

// allocated is how many bytes the process has allocated so far.
func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
