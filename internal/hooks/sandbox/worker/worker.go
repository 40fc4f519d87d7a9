// Package worker is the inside of the sandbox: a process that runs scripts, one
// call after the other, each in an engine as fresh as the first: its memory is
// put back, to the last bit, to what it was before any script ran. It trusts
// neither the scripts nor, more than it must, the engine: a watchdog ends the
// process if the engine does not end a script in time, and the pool outside kills
// it if the watchdog does not.
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

	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// maxGoStack bounds the stack of the engine, in case that a native recursion
// gets past its own bound: the process dies then, and not the machine.
const maxGoStack = 256 << 20

// Main serves the requests that come on in until it ends, and answers on out.
// The pool starts a process for it; it confines the whole process, so it is for
// no other use. After an error the process has to end.
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
	// A script has one thread; a second one is for the watchdog and the
	// collection of garbage.
	runtime.GOMAXPROCS(2)
	debug.SetMaxStack(maxGoStack)
	debug.SetTraceback("none") // the message tells; the pool keeps a little of it
	debug.SetGCPercent(50)
	stock, err := newStock(setup.Memory)
	if err != nil {
		return err
	}
	missing, err := confine(setup)
	if err != nil {
		return fmt.Errorf("confine the worker: %w", err)
	}
	const longest = 200
	w := &worker{missing: missing[:min(len(missing), longest)], out: out, stock: stock, known: forms{}, gone: make(chan error, 3)}
	go func() { w.gone <- w.serve(reader) }()
	return clean(w.wait())
}

// worker is the state of the process.
type worker struct {
	stock *stock
	known forms
	gone  chan error // ends the process, whatever the engine is doing
	// missing is the wall that this process has not; see confine.
	missing string

	mu  sync.Mutex // held while an answer is written
	out io.Writer
}

// wait gives the reason to end: the input's end, a script that cannot be ended
// otherwise, or that the pool has died in the middle of a call.
func (w *worker) wait() error {
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

// serve answers requests until the input ends. All of a call happens in this
// goroutine, because each change to another costs about what a small script
// does.
func (w *worker) serve(in io.Reader) error {
	if err := w.write(0, &scriptwire.Answer{Message: w.missing}); err != nil { // ready
		return err
	}
	for {
		w.stock.fill(w.known)
		call, message, err := scriptwire.Read(in, scriptwire.MaxRequest)
		if err != nil {
			return err
		}
		request, err := scriptwire.ReadRequest(message)
		if err != nil {
			return err
		}
		if err := w.handle(w.stock.take(request), call, request); err != nil {
			return err
		}
	}
}

// clean leaves out ends that are no failures: nobody asks any more, or a script
// went over a limit.
func clean(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, errSpent) {
		return nil
	}
	return err
}

// handle runs one request and answers it.
func (w *worker) handle(v *vm, call uint64, request *scriptwire.Request) error {
	began, usedBefore := time.Now(), processorTime()
	v.begin(request)
	dog := watch(v, request.Limits, usedBefore, func(a *scriptwire.Answer) {
		// The engine did not end in time: answer without it. The lock is
		// kept, so that nothing else is written while the process ends.
		w.mu.Lock()
		complete(a, v, began, usedBefore)
		w.gone <- errors.Join(errSpent, w.writeLocked(call, a))
	})
	var a *scriptwire.Answer
	if request.Check {
		a = v.check(w.known)
	} else {
		a = v.call(request, w.known, dog.stopped)
	}
	dog.call()
	complete(a, v, began, usedBefore)
	if err := w.write(call, a); err != nil {
		return err
	}
	if a.Kind.Spent() {
		return errSpent
	}
	if a.Kind == "" {
		w.stock.ran(request)
	}
	return nil
}

// errSpent ends a worker whose script went over a limit: what it left behind
// goes with the process.
var errSpent = errors.New("the worker is spent")

func complete(a *scriptwire.Answer, v *vm, began time.Time, usedBefore time.Duration) {
	a.Console, a.Truncated = v.console.told()
	a.Wall = time.Since(began)
	a.CPU = processorTime() - usedBefore
}

func (w *worker) write(call uint64, a *scriptwire.Answer) error {
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
