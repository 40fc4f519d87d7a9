package sandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	scriptwire "github.com/guideway-dev/guideway/internal/hooks/sandbox/wire"
)

// Options are how a pool is made. The zero value is of use where the program
// itself has the command script-worker.
type Options struct {
	// Command starts a worker, program and arguments; nil is this program with
	// the argument script-worker.
	Command []string
	// Workers are kept ready from the first call on; 0 is 2. One takes about
	// 16 MB.
	Workers int
	// Burst is how many there may be for a while, where calls wait for long;
	// 0 is 8, or Workers where that is more.
	Burst int
	// Limits are a call's, where it has none; zero fields are those of
	// DefaultLimits.
	Limits Limits
	// Most is what a call may ask for; zero fields are those of MostLimits.
	Most Limits
	// Log gets what workers complain about; nil is nobody.
	Log *slog.Logger
}

// DefaultLimits are the limits of a call that names none.
func DefaultLimits() Limits {
	return Limits{
		Wall: 5 * time.Second, CPU: time.Second,
		Memory: 32 << 20, Stack: 2000, Output: 4 << 20, Console: 64 << 10,
	}
}

// MostLimits are what a call can ask for where the pool's options say nothing.
func MostLimits() Limits {
	return Limits{
		Wall: time.Minute, CPU: 30 * time.Second,
		Memory: 128 << 20, Stack: 4000, Output: 32 << 20, Console: 1 << 20,
	}
}

// A worker is replaced after so many calls, or so much processor time: what the
// engine may leak goes with it.
const (
	maxCalls = 5000
	maxLife  = 2 * time.Minute
)

// patience is how long a call waits for a busy worker before another one is
// started: starting takes longer than most calls.
const patience = 25 * time.Millisecond

// Pool runs scripts in worker processes. It starts none before the first call.
// Its methods may be called from any goroutine.
type Pool struct {
	options Options

	mu      sync.Mutex
	closed  bool
	idle    []*process // the one that ran last, whose memory the caches have, is taken first
	living  int        // processes that are there or being started
	busy    map[*process]struct{}
	owners  map[string]int // calls that run, by owner
	waiting []*waiter
	growing *time.Timer // set while calls wait
	missing string      // the wall that a worker had not

	calls sync.WaitGroup // under way
	tasks sync.WaitGroup // goroutines of the pool
}

// NewPool makes a pool; it has to be closed.
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
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Most = orElse(o.Most, MostLimits())
	o.Limits = orElse(o.Limits, DefaultLimits())
	if _, err := o.bound(o.Limits); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the limits of scripts: %w", err)
	}
	return &Pool{options: o, busy: map[*process]struct{}{}, owners: map[string]int{}}, nil
}

func orElse(l, usual Limits) Limits {
	pick := func(n *int64, usual int64) {
		if *n == 0 {
			*n = usual
		}
	}
	pick((*int64)(&l.Wall), int64(usual.Wall))
	pick((*int64)(&l.CPU), int64(usual.CPU))
	pick(&l.Memory, usual.Memory)
	pick(&l.Stack, usual.Stack)
	pick(&l.Output, usual.Output)
	pick(&l.Console, usual.Console)
	return l
}

// Run runs a script's function, once or not at all. The error is an *Error where
// the script failed; otherwise ctx ended, the pool is closed or no worker can be
// started.
func (p *Pool) Run(ctx context.Context, c Call) (*Result, error) {
	r, err := c.request(&p.options)
	if err != nil {
		return nil, err
	}
	a, err := p.ask(ctx, c.Owner, r)
	if err != nil {
		return nil, err
	}
	if a.Kind != "" {
		return nil, failure(a)
	}
	return c.result(a), nil
}

// Check parses a script, and the library that it may import, without running
// anything of it. What is wrong is a diagnostic; the error is of the checking
// itself.
func (p *Pool) Check(ctx context.Context, m Module, library map[string]string) ([]guideway.Diagnostic, error) {
	r, err := m.request(library)
	if err == nil {
		r.Check = true
		r.Limits, err = p.options.bound(Limits{})
	}
	var rejected *Error
	if errors.As(err, &rejected) {
		return []guideway.Diagnostic{diagnostic(rejected)}, nil
	}
	if err != nil {
		return nil, err
	}
	a, err := p.ask(ctx, "", r)
	if err != nil && !errors.As(err, &rejected) {
		return nil, err
	}
	if err == nil {
		if a.Kind == "" {
			return nil, nil
		}
		rejected = failure(a)
	}
	return []guideway.Diagnostic{diagnostic(rejected)}, nil
}

func diagnostic(e *Error) guideway.Diagnostic {
	return guideway.Diagnostic{
		Severity: guideway.SeverityError, Code: "script-" + string(e.Kind),
		File: e.File, Line: e.Line, Column: e.Column, Message: e.Message,
	}
}

// Warm starts the workers that are to be kept ready, so that the first call need
// not wait for them.
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

// Missing tells which wall around scripts this machine does not give, as the workers
// that were started have found: the filter of system calls, in a container that
// forbids it. The other walls stand all the same. It is empty where all do.
func (p *Pool) Missing() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.missing
}

// foundLocked notes what a worker lacks, and says it once.
func (p *Pool) foundLocked(missing string) {
	if missing == "" || p.missing != "" {
		return
	}
	p.missing = missing
	p.options.Log.Warn("scripts run without the filter of system calls, which this machine or container forbids; the other limits hold", "reason", missing)
}

// ask has a worker answer a request.
func (p *Pool) ask(ctx context.Context, owner string, r *scriptwire.Request) (*scriptwire.Answer, error) {
	for attempt := 0; ; attempt++ {
		process, err := p.acquire(ctx, owner)
		if err != nil {
			return nil, err
		}
		a, err := process.exchange(ctx, r)
		if err == nil {
			p.recycle(owner, process, a)
			return a, nil
		}
		if ctx.Err() != nil {
			p.discard(owner, process)
			return nil, guideway.Errorf(guideway.CodeUnavailable, "run %s: %w", r.Name, context.Cause(ctx))
		}
		if errors.Is(err, errUndelivered) && attempt < p.options.Burst {
			// It died at rest, with nothing of this call.
			p.discard(owner, process)
			continue
		}
		return nil, p.bury(owner, process, r, err)
	}
}

// bury tells why a worker gave no answer.
func (p *Pool) bury(owner string, process *process, r *scriptwire.Request, err error) error {
	e := &Error{Kind: Crashed, Message: "the script's worker died in the call; it is not known how far the script got"}
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		e.Kind = Timeout
		e.Message = fmt.Sprintf("the script did not end within %v and was killed", r.Limits.Wall)
	case errors.Is(err, scriptwire.ErrTooLarge):
		e.Kind, e.Message = Output, "the script's result is too large"
	case process.outOfMemory():
		e.Kind, e.Message = Memory, "the script's worker got no more memory and died"
	}
	p.options.Log.Warn("script worker lost", "script", r.Name, "kind", string(e.Kind), "error", err,
		"complaint", process.complaint.told())
	p.discard(owner, process)
	return e
}

// recycle takes a worker back after an answer. It makes itself as new before it
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

// Close refuses further calls, waits until those that run have ended or ctx
// has, and ends all workers.
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
		process.kill()
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
		killGroup(process.cmd)
	}
	p.mu.Unlock()
	<-ended
	return guideway.Errorf(guideway.CodeUnavailable, "close the script workers: %w", context.Cause(ctx))
}

func errClosed() error {
	return guideway.Errorf(guideway.CodeUnavailable, "scripts run no more: the program is about to end")
}
