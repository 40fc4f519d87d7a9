// Package worker is the worker process of the sandbox. It runs scripts one after the other,
// each in a fresh engine: before each call the engine's memory is restored to its state
// before any script ran. It trusts neither the scripts nor, as far as possible, the engine:
// a watchdog ends the process if the engine does not end a script in time, and the pool
// outside kills it if the watchdog fails.
package worker

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
)

// maxGoStack limits the stack of the engine, in case a native recursion exceeds its own
// limit: then the process crashes instead of using all memory of the machine.
const maxGoStack = 256 << 20

// Main serves the requests on in until it ends, and answers on out. The pool starts a
// process for it; Main confines the whole process, which must have no other purpose. After
// an error the process must exit.
func Main(in io.Reader, out io.Writer) error {
	reader := bufio.NewReaderSize(in, 64<<10)
	_, message, err := scriptwire.Read(reader, 1<<10)
	if err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	setup, err := scriptwire.ReadSetup(message)
	if err != nil {
		return fmt.Errorf("read the setup: %w", err)
	}
	// A script has one thread; a second one is for the watchdog and the garbage collector.
	runtime.GOMAXPROCS(2)
	debug.SetMaxStack(maxGoStack)
	debug.SetTraceback("none") // the pool keeps only the first bytes, which contain the message
	debug.SetGCPercent(50)
	stock, err := newStock(setup.Memory)
	if err != nil {
		return err
	}
	missing, err := confineProcess(setup)
	if err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	const longest = 200
	w := &worker{missing: missing[:min(len(missing), longest)], out: out, stock: stock, known: forms{}, gone: make(chan error, 3)}
	go func() { w.gone <- w.serveRequests(reader) }()
	return withoutEnds(w.waitForEnd())
}

// worker is the state of the process.
type worker struct {
	stock *stock
	known forms
	gone  chan error // a value makes the process exit, even if the engine hangs
	// missing is the protection that this process lacks; see confineProcess.
	missing string

	mu  sync.Mutex // held while an answer is written
	out io.Writer
}

// waitForEnd waits until the process must exit, and returns the reason. It checks every
// second whether the pool has exited, because the end of the input is not noticed during a
// call.
func (w *worker) waitForEnd() error {
	parent := os.Getppid()
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		select {
		case err := <-w.gone:
			return err
		case <-look.C:
			if os.Getppid() != parent {
				return io.EOF
			}
		}
	}
}

// serveRequests answers requests until the input ends. A call runs entirely in this
// goroutine, because switching goroutines costs about as much as a small script.
func (w *worker) serveRequests(in io.Reader) error {
	if err := w.writeAnswer(0, &scriptwire.Answer{Message: w.missing}); err != nil { // report that the worker is ready
		return err
	}
	for {
		w.stock.parseNew(w.known)
		call, message, err := scriptwire.Read(in, scriptwire.MaxRequest)
		if err != nil {
			return err
		}
		request, err := scriptwire.ReadRequest(message)
		if err != nil {
			return err
		}
		v := w.stock.takeVM(request)
		v.ask = func(question []byte) ([]byte, error) { return w.askHost(in, call, question) }
		if err := w.handleRequest(v, call, request); err != nil {
			return err
		}
	}
}

// askHost sends a question of the running script to the host, and waits for the reply.
func (w *worker) askHost(in io.Reader, call uint64, question []byte) ([]byte, error) {
	if err := w.writeAnswer(call, &scriptwire.Answer{Ask: question}); err != nil {
		return nil, err
	}
	to, reply, err := scriptwire.Read(in, scriptwire.MaxReply)
	if err == nil && to != call {
		err = errors.New("the reply is for another call")
	}
	return reply, err
}

// withoutEnds returns nil for errors that are regular ends: the input has ended, or a
// script exceeded a limit.
func withoutEnds(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errSpent) {
		return nil
	}
	return err
}

// handleRequest runs one request and answers it.
func (w *worker) handleRequest(v *vm, call uint64, request *scriptwire.Request) error {
	began, usedBefore := time.Now(), processorTime()
	v.armCall(request)
	dog := startWatchdog(v, request.Limits, usedBefore, func(a *scriptwire.Answer) {
		// The engine did not end in time: answer without it. The lock stays held, so that
		// nothing else is written while the process exits.
		w.mu.Lock()
		completeAnswer(a, v, began, usedBefore)
		w.gone <- errors.Join(errSpent, w.writeLocked(call, a))
	})
	var a *scriptwire.Answer
	if request.Check {
		a = v.checkScript(w.known)
	} else {
		a = v.callScript(request, w.known, dog.stopped)
	}
	dog.endWatch()
	completeAnswer(a, v, began, usedBefore)
	if err := w.writeAnswer(call, a); err != nil {
		return err
	}
	if a.Kind.Spent() {
		return errSpent
	}
	if a.Kind == "" {
		w.stock.addScript(request)
	}
	return nil
}

// errSpent ends a worker whose script exceeded a limit: only a new process is certain to
// have no traces of the script.
var errSpent = errors.New("the worker cannot be used again")

func completeAnswer(a *scriptwire.Answer, v *vm, began time.Time, usedBefore time.Duration) {
	a.Console, a.Truncated = v.console.allLines()
	a.Wall = time.Since(began)
	a.CPU = processorTime() - usedBefore
}

func (w *worker) writeAnswer(call uint64, a *scriptwire.Answer) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writeLocked(call, a)
}

func (w *worker) writeLocked(call uint64, a *scriptwire.Answer) error {
	frame, err := scriptwire.Finish(a.Append(scriptwire.Begin(nil, call)))
	if err != nil {
		return err
	}
	if _, err = w.out.Write(frame); err != nil {
		return fmt.Errorf("write an answer: %w", err)
	}
	return nil
}

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
