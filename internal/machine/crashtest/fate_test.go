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

// fate counts the points of one run at which its worker may end: before and after
// each write of the journal, and each call of a model or a tool. At one of them the
// run halts, so that a worker that is killed then, or stopped, takes many runs along,
// each at a point of its own; or the worker ends itself at once, in the midst of what
// the others do.
type fate struct {
	at int
	// kills has the worker end itself at the point.
	kills bool
	// halted is closed when the run has come to its point, goOn when it may go on.
	halted, goOn chan struct{}
	// underWay gives the reply to the last order. The orders for a run come one after
	// the other.
	underWay chan reply

	mu sync.Mutex
	n  int
	// within says that it halted between the decision to call something and the call:
	// the driver has let go of it.
	within bool
	free   bool
}

func newFate(at int, kills bool) *fate {
	return &fate{at: at, kills: kills, halted: make(chan struct{}), goOn: make(chan struct{})}
}

// point is one of them. Behind the one at which a run halts there is none that it
// passes.
func (f *fate) point(within bool) {
	f.mu.Lock()
	f.n++
	now, halts := f.n == f.at, f.at > 0 && f.n >= f.at && !f.free
	// A sign of life may have been the point, with a call beside it.
	f.within = f.within || halts && within
	f.mu.Unlock()
	if now && f.kills {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	}
	if now {
		close(f.halted)
	}
	if halts { // the signal may reach this thread later than others
		<-f.goOn
	}
}

// release lets the run go on.
func (f *fate) release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.free = true
	close(f.goOn)
}

// tell says how many points there were, and what halted it.
func (f *fate) tell(r *reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Points, r.Within = f.n, f.within
}

// ofFate has what is done in a context be part of a run's fate.
type ofFate struct{}

func (f *fate) in(ctx context.Context) context.Context { return context.WithValue(ctx, ofFate{}, f) }

// point is a point of the run that something is done for.
func point(ctx context.Context, within bool) {
	if f, ok := ctx.Value(ofFate{}).(*fate); ok {
		f.point(within)
	}
}

// fatal is a journal with points around its writes.
type fatal struct{ run.Journal }

func (j fatal) Create(ctx context.Context, d run.Definition, c run.Commit) error {
	point(ctx, false)
	defer point(ctx, false)
	return j.Journal.Create(ctx, d, c)
}

func (j fatal) Append(ctx context.Context, c run.Commit) error {
	point(ctx, false)
	defer point(ctx, false)
	return j.Journal.Append(ctx, c)
}

// fateful puts points around what a transport sends.
type fateful struct{ http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t fateful) RoundTrip(r *http.Request) (*http.Response, error) {
	point(r.Context(), true)
	defer point(r.Context(), false)
	return t.RoundTripper.RoundTrip(r)
}

// client asks what is outside.
func client() *http.Client { return &http.Client{Transport: fateful{http.DefaultTransport}} }
