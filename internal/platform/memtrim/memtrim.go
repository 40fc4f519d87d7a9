// Package memtrim returns unused memory of a server process to the operating system after
// the start and after bursts of work. Each client starts its own process, and most of them
// are idle most of the time.
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

	// usualGC is the default of GOGC. With startGC a start with a usual number of
	// definitions collects no garbage, but a start with thousands of definitions does.
	usualGC, startGC = 100, 400
)

// TuneStartupGC delays garbage collection during the start, which makes the start about a
// tenth faster. A Trimmer ends the delay. If the user has set GOGC, nothing is changed.
func TuneStartupGC() { setGCPercent(startGC) }

func setGCPercent(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// Options configure when memory is released. The zero value is usable.
type Options struct {
	// Settle is the time from the first answer to the end of the start; 0 means one second.
	Settle time.Duration
	// Idle is the time after which the start is considered over if there was no answer; 0
	// means one minute.
	Idle time.Duration
	// Quiet is the time without answers after which a burst has ended; 0 means one second.
	Quiet time.Duration
	// Enough is the number of allocated bytes that make a collection after a burst
	// worthwhile; 0 means 8 MiB.
	Enough uint64
	// Pack compresses unused data of the process before memory is released. It may be nil.
	Pack func()

	// Tests replace these functions of the process.
	release   func()
	allocated func() uint64
}

// Trimmer releases memory in a goroutine. Close stops it.
type Trimmer struct {
	opts    Options
	answers atomic.Int64
	woken   chan struct{}
	cancel  context.CancelFunc
	done    sync.WaitGroup
}

// Start starts a trimmer. The trimmer does nothing until the first call of Answered or
// until the time Idle has passed.
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
		opts.release, opts.allocated = debug.FreeOSMemory, allocatedBytes
	}
	ctx, cancel := context.WithCancel(context.Background())
	t := &Trimmer{opts: opts, woken: make(chan struct{}, 1), cancel: cancel}
	t.done.Go(func() { t.runTrimmer(ctx) })
	return t
}

// Answered notifies the trimmer that an answer was sent. It is cheap enough to be called
// for every answer.
func (t *Trimmer) Answered() {
	t.answers.Add(1)
	select {
	case t.woken <- struct{}{}:
	default:
	}
}

// Close stops the trimmer and waits for its goroutine.
func (t *Trimmer) Close() {
	t.cancel()
	t.done.Wait()
}

// runTrimmer releases memory after the start, even during a burst, and then after every
// burst. Nothing wakes it while there are no answers.
func (t *Trimmer) runTrimmer(ctx context.Context) {
	if !t.waitForStart(ctx) {
		return
	}
	setGCPercent(usualGC)
	t.opts.Pack()
	t.opts.release()
	for since := t.opts.allocated(); t.waitForAnswer(ctx); {
		if !t.waitForQuiet(ctx) {
			return
		}
		if now := t.opts.allocated(); now-since >= t.opts.Enough {
			t.opts.Pack()
			t.opts.release()
			since = now
		}
	}
}

// waitForStart waits until the start is over. It returns false if the trimmer must stop.
func (t *Trimmer) waitForStart(ctx context.Context) bool {
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

// waitForAnswer waits for an answer. It returns false if the trimmer must stop.
func (t *Trimmer) waitForAnswer(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-t.woken:
		return true
	}
}

// waitForQuiet waits until there was no answer for a while.
func (t *Trimmer) waitForQuiet(ctx context.Context) bool {
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

// allocatedBytes returns the number of bytes that the process has allocated so far.
func allocatedBytes() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
