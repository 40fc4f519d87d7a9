//go:build unix

package crashtest

import (
	"context"
	"net/http"
	"os"
	"sync"
	"syscall"

	"github.com/guideway-dev/guideway/internal/run"
)

// breakpoint counts the points of one run at which its worker may end: before and after
// each write of the journal and each call of a model or a tool. At one of them, the run
// halts or the worker kills itself. Because runs halt, a worker can be killed or stopped
// with each of its runs at a different point.
type breakpoint struct {
	at int
	// kills is set if the worker kills itself at the point.
	kills bool
	// halted is closed when the run reaches its point, and goOn when it may continue.
	halted, goOn chan struct{}
	// pendingReply receives the reply to the last order. The orders for a run are
	// sequential.
	pendingReply chan reply

	mu sync.Mutex
	n  int
	// within is set if the run halted after the driver decided on a call and before the
	// call was sent.
	within  bool
	resumed bool
}

func newBreakpoint(at int, kills bool) *breakpoint {
	return &breakpoint{at: at, kills: kills, halted: make(chan struct{}), goOn: make(chan struct{})}
}

// passPoint counts a point, and halts the run at its breakpoint and at every later point.
func (f *breakpoint) passPoint(within bool) {
	f.mu.Lock()
	f.n++
	now, halts := f.n == f.at, f.at > 0 && f.n >= f.at && !f.resumed
	// If the run halted at a lease renewal, a concurrent call may set within later.
	f.within = f.within || halts && within
	f.mu.Unlock()
	if now && f.kills {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if now {
		close(f.halted)
	}
	if halts { // the signal may stop other threads first
		<-f.goOn
	}
}

// resumeRun lets the run continue.
func (f *breakpoint) resumeRun() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.resumed = true
	close(f.goOn)
}

// fillReply adds the number of points and the value of within to a reply.
func (f *breakpoint) fillReply(r *reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Points, r.Within = f.n, f.within
}

// breakpointKey is the context key of a run's breakpoint.
type breakpointKey struct{}

func (f *breakpoint) withContext(ctx context.Context) context.Context {
	return context.WithValue(ctx, breakpointKey{}, f)
}

// passPoint passes a point of the run in the context.
func passPoint(ctx context.Context, within bool) {
	if f, ok := ctx.Value(breakpointKey{}).(*breakpoint); ok {
		f.passPoint(within)
	}
}

// pointJournal is a journal with points before and after its writes.
type pointJournal struct{ run.Journal }

func (j pointJournal) Create(ctx context.Context, d run.Definition, c run.Commit) error {
	passPoint(ctx, false)
	defer passPoint(ctx, false)
	return j.Journal.Create(ctx, d, c)
}

func (j pointJournal) Append(ctx context.Context, c run.Commit) error {
	passPoint(ctx, false)
	defer passPoint(ctx, false)
	return j.Journal.Append(ctx, c)
}

// pointTransport is a transport with points before and after each request.
type pointTransport struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t pointTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	passPoint(r.Context(), true)
	defer passPoint(r.Context(), false)
	return t.RoundTripper.RoundTrip(r)
}

// newClient returns a client for the fake servers.
func newClient() *http.Client { return &http.Client{Transport: pointTransport{http.DefaultTransport}} }
