package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/protocol"
	"github.com/guideway-dev/guideway/internal/platform/procsession"
)

// Options configure a pool. The zero value works if the program has the command
// script-worker.
type Options struct {
	// Command is the worker's command line; if nil, it is this program with the argument
	// script-worker.
	Command []string
	// Workers is the number of workers that are kept ready from the first call on; 2 if 0.
	// One takes about 16 MB.
	Workers int
	// Burst is the temporary maximum of workers if calls wait long; if 0, it is 8, or
	// Workers if that is more.
	Burst int
	// Limits are the default limits of a call; zero fields have the values of
	// DefaultLimits.
	Limits Limits
	// Most are the maximum limits of a call; zero fields have the values of MostLimits.
	Most Limits
	// Log gets what the workers write to standard error; it may be nil.
	Log *slog.Logger

	// makePipe is os.Pipe, except in tests.
	makePipe func() (r, w *os.File, err error)
}

// A worker is replaced after this number of calls or this CPU time, because the engine may
// leak memory.
const (
	maxCalls = 5000
	maxLife  = 2 * time.Minute
)

// maxWait is the time that a call waits for a busy worker before an additional worker is
// started: a start takes longer than most calls.
const maxWait = 25 * time.Millisecond

// Pool runs scripts in worker processes. It starts none before the first call. It is safe
// for concurrent use.
type Pool struct {
	options Options

	mu       sync.Mutex
	closed   bool
	idle     []*process // the most recently used worker is last and is taken first, because its memory is still in the CPU caches
	living   int        // running or starting processes
	starting int        // starting processes
	busy     map[*process]struct{}
	owners   map[string]int // running calls by owner
	waiting  []*waiter
	growing  *time.Timer // the timer that starts another worker; set while calls wait
	missing  string      // the value that Missing returns

	calls sync.WaitGroup // calls in progress
	tasks sync.WaitGroup // goroutines of the pool
}

// NewPool returns a pool, which must be closed.
func NewPool(o Options) (*Pool, error) {
	if len(o.Command) == 0 {
		self, err := os.Executable()
		if err != nil {
			return nil, guideway.Errorf(guideway.CodeInternal, "find the program for script workers: %w", err)
		}
		o.Command = []string{self, "script-worker"}
	}
	if o.Workers <= 0 {
		o.Workers = 2
	}
	if o.Burst <= 0 {
		o.Burst = 8
	}
	o.Burst = max(o.Burst, o.Workers)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.makePipe == nil {
		o.makePipe = os.Pipe
	}
	o.Most = orElse(o.Most, MostLimits())
	o.Limits = orElse(o.Limits, DefaultLimits())
	if _, err := o.limitsFor(o.Limits); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "invalid script limits: %w", err)
	}
	return &Pool{options: o, busy: map[*process]struct{}{}, owners: map[string]int{}}, nil
}

// Run runs a script's function at most once. An error of the script is an *Error; for any
// other error, ctx has ended, the pool is closed, too many calls are waiting or no worker
// can be started.
func (p *Pool) Run(ctx context.Context, c Call) (*Result, error) {
	r, err := c.newRequest(&p.options)
	if err != nil {
		return nil, err
	}
	a, err := p.request(ctx, c.Owner, r, c.Host)
	if err != nil {
		return nil, err
	}
	if a.Kind != "" {
		return nil, errorOf(a)
	}
	return c.newResult(a), nil
}

// Check parses a script and its library without running them. Errors in them are
// diagnostics; the returned error means that the check itself failed.
func (p *Pool) Check(ctx context.Context, m Module, library map[string]string) ([]guideway.Diagnostic, error) {
	r, err := m.newRequest(library)
	if err == nil {
		r.Check = true
		r.Limits, err = p.options.limitsFor(Limits{})
	}
	var rejected *Error
	if errors.As(err, &rejected) {
		return []guideway.Diagnostic{diagnosticOf(rejected)}, nil
	}
	if err != nil {
		return nil, err
	}
	a, err := p.request(ctx, "", r, nil)
	if err != nil && !errors.As(err, &rejected) {
		return nil, err
	}
	if err == nil {
		if a.Kind == "" {
			return nil, nil
		}
		rejected = errorOf(a)
	}
	return []guideway.Diagnostic{diagnosticOf(rejected)}, nil
}

func diagnosticOf(e *Error) guideway.Diagnostic {
	return guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: "script-" + string(e.Kind),
		File: e.File, Line: e.Line, Column: e.Column, Message: e.Message,
	}
}

// Warm starts the workers that are kept ready, so that the first call does not wait for
// them.
func (p *Pool) Warm(ctx context.Context) error {
	process, err := p.acquire(ctx, "")
	if err != nil {
		return err
	}
	p.mu.Lock()
	for p.living < p.options.Workers && !p.closed {
		p.growLocked(ctx)
	}
	p.mu.Unlock()
	p.release("", process, true)
	return nil
}

// Missing returns the protection that this machine does not support, as reported by the
// workers, such as the system call filter in a container that forbids it. The other
// protections still apply. It is empty if nothing is missing.
func (p *Pool) Missing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing
}

// setMissingLocked records the missing protection of a worker, and logs it once.
func (p *Pool) setMissingLocked(missing string) {
	if missing == "" || p.missing != "" {
		return
	}
	p.missing = missing
	p.options.Log.Warn("scripts run without the system call filter, which this computer or container does not allow; the other limits apply", "reason", missing)
}

// request sends a request to a worker and returns its answer.
func (p *Pool) request(ctx context.Context, owner string, r *scriptwire.Request, host Host) (*scriptwire.Answer, error) {
	for attempt := 0; ; attempt++ {
		process, err := p.acquire(ctx, owner)
		if err != nil {
			return nil, err
		}
		a, err := process.exchange(ctx, r, host)
		if err == nil {
			p.recycle(owner, process, a)
			return a, nil
		}
		if ctx.Err() != nil {
			p.discard(owner, process)
			return nil, guideway.Errorf(guideway.CodeUnavailable, "run %s: %w", r.Name, context.Cause(ctx))
		}
		if errors.Is(err, errUndelivered) && attempt < p.options.Burst {
			// The worker exited while idle, so this call is not affected.
			p.discard(owner, process)
			continue
		}
		return nil, p.failureOf(owner, process, r, err)
	}
}

// failureOf returns the error of a worker that did not answer.
func (p *Pool) failureOf(owner string, process *process, r *scriptwire.Request, err error) error {
	e := &Error{Kind: Crashed, Message: "the script's worker exited during the call; the progress of the script is unknown"}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Kind = Timeout
		e.Message = fmt.Sprintf("the script did not end within %v and was killed", r.Limits.Wall)
	case errors.Is(err, scriptwire.ErrTooLarge):
		e.Kind, e.Message = Output, fmt.Sprintf("the result and the console output of the script exceed their limits of %d and %d bytes: return or log less", r.Limits.Output, r.Limits.Console)
	case process.outOfMemory():
		e.Kind, e.Message = Memory, fmt.Sprintf("the script's worker ran out of memory; the limit of the script is %d bytes", r.Limits.Memory)
	}
	p.options.Log.Warn("a script worker gave no answer", "script", r.Name, "kind", string(e.Kind), "error", err,
		"complaint", process.complaint.keptText())
	p.discard(owner, process)
	return e
}

// recycle returns a worker to the pool after an answer. The worker resets itself before it
// reads the next request.
func (p *Pool) recycle(owner string, process *process, a *scriptwire.Answer) {
	if a.Kind.Spent() || process.calls >= maxCalls || process.cpu > maxLife {
		p.discard(owner, process)
		return
	}
	p.release(owner, process, true)
}

// discard ends a worker.
func (p *Pool) discard(owner string, process *process) { p.release(owner, process, false) }

// Close refuses further calls, waits until the running calls or ctx have ended, and ends
// all workers.
func (p *Pool) Close(ctx context.Context) error {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	for _, w := range p.waiting {
		w.granted <- grant{err: errClosed()}
	}
	p.waiting = nil
	if p.growing != nil {
		p.growing.Stop()
	}
	p.mu.Unlock()
	for _, process := range idle {
		process.killAndWait()
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		p.calls.Wait()
		p.tasks.Wait()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	for process := range p.busy {
		_ = procsession.Kill(process.cmd)
	}
	p.mu.Unlock()
	<-ended
	return guideway.Errorf(guideway.CodeUnavailable, "close the script workers: %w", context.Cause(ctx))
}

func errClosed() error {
	return guideway.Errorf(guideway.CodeUnavailable, "scripts cannot run: the program is exiting").WithFix("try again when the program runs again")
}

// DefaultLimits returns the default limits of a call.
func DefaultLimits() Limits {
	return Limits{
		Wall: 5 * time.Second, CPU: time.Second,
		Memory: 32 << 20, Stack: 2000, Output: 4 << 20, Console: 64 << 10,
	}
}

// MostLimits returns the default maximum limits of a call.
func MostLimits() Limits {
	return Limits{
		Wall: time.Minute, CPU: 30 * time.Second,
		Memory: 128 << 20, Stack: 4000, Output: 32 << 20, Console: 1 << 20,
	}
}

func orElse(l, usual Limits) Limits {
	return Limits{
		Wall: cmp.Or(l.Wall, usual.Wall), CPU: cmp.Or(l.CPU, usual.CPU), Memory: cmp.Or(l.Memory, usual.Memory),
		Stack: cmp.Or(l.Stack, usual.Stack), Output: cmp.Or(l.Output, usual.Output), Console: cmp.Or(l.Console, usual.Console),
	}
}

// Limits limit one call; its fields describe the units. A zero field uses the pool's
// default.
type Limits = scriptwire.Limits
