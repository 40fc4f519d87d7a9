//go:build unix

package crashtest

import (
	"context"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/guideway-dev/guideway/internal/run"
)

// fate counts the points at which a worker may end: before and after each write of
// the journal, and each call of a model or a tool. At one of them it sends itself a
// signal that nothing can catch.
type fate struct {
	at     int
	signal syscall.Signal

	mu sync.Mutex
	n  int
	// within says that the point was between the decision to call something and
	// the call: the driver has let go of it.
	within bool
}

// point is one of them.
func (f *fate) point(within bool) {
	f.mu.Lock()
	f.n++
	now := f.n == f.at
	f.within = f.within || now && within
	f.mu.Unlock()
	if !now {
		return
	}
	goOn := make(chan os.Signal, 1)
	signal.Notify(goOn, syscall.SIGCONT)
	defer signal.Stop(goOn)
	_ = syscall.Kill(os.Getpid(), f.signal)
	<-goOn // the signal may reach this thread later than others
}

// tell says how many points there were, and which kind of them ended the worker.
func (f *fate) tell(r *reply) {
	f.mu.Lock()
	defer f.mu.Unlock()
	r.Points, r.Within = f.n, f.within
}

// fatal is a journal with points around its writes.
type fatal struct {
	run.Journal
	fate *fate
}

func (j fatal) Create(ctx context.Context, d run.Definition, c run.Commit) error {
	j.fate.point(false)
	defer j.fate.point(false)
	return j.Journal.Create(ctx, d, c)
}

func (j fatal) Append(ctx context.Context, c run.Commit) error {
	j.fate.point(false)
	defer j.fate.point(false)
	return j.Journal.Append(ctx, c)
}

// around puts points around what a transport sends.
func (f *fate) around(t http.RoundTripper) http.RoundTripper { return fateful{t, f} }

type fateful struct {
	http.RoundTripper
	fate *fate
}

// RoundTrip implements http.RoundTripper.
func (t fateful) RoundTrip(r *http.Request) (*http.Response, error) {
	t.fate.point(true)
	defer t.fate.point(false)
	return t.RoundTripper.RoundTrip(r)
}
