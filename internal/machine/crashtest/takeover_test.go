//go:build unix

package crashtest

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// TestTakeover ends a worker that drives runs, by SIGKILL or as a server ends, and checks
// that another worker finishes the runs without a command. The clocks of the workers differ
// by five minutes.
func TestTakeover(t *testing.T) {
	t.Parallel()
	crash.SkipIfShort(t)
	for _, s := range journalKinds() {
		for _, name := range []string{"kill", "shutdown"} {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				t.Parallel()
				o := newFakeServers(t)
				p := s.place(t, o)
				p.Serves = true
				first := startWorker(t, p).MustOpen()
				runs := startHeld(t, o, first, p)
				p.Skew = 300
				other := startWorker(t, p).MustOpen()
				ended := time.Now()
				if name == "kill" {
					first.Kill()
				} else {
					first.Shutdown()
				}
				for range runs {
					<-o.arrived
				}
				t.Logf("%d runs were taken over %s after the end of the process", len(runs), time.Since(ended).Round(10*time.Millisecond))
				close(o.held)
				runs.finish(t, other)
				other.Shutdown()
			})
		}
	}
}

// TestDatabaseOutage cuts the connections to the database for longer than an instance may be
// silent, while models answer. Each answer is recorded, and no call is repeated.
func TestDatabaseOutage(t *testing.T) {
	t.Parallel()
	crash.SkipIfShort(t)
	o := newFakeServers(t)
	p := location{Dir: crash.Dir(t), Outside: o.URL, Postgres: crash.EmptyPostgres(t), Serves: true}
	cable := newCable(t, &p.Postgres)
	workers := []*worker{startWorker(t, p).MustOpen(), startWorker(t, p).MustOpen()}
	runs := startHeld(t, o, workers[0], p)
	cable.cut()
	close(o.held)
	<-time.After(12 * time.Second)
	cable.mend()
	runs.finish(t, workers[1])
	runs.checkCalledOnce()
	for _, w := range workers {
		w.Shutdown()
	}
}

// startHeld starts runs at a worker that executes jobs, and waits until each waits for its
// first answer. The model holds its answers until o.held is closed.
func startHeld(t *testing.T, o *fakeServers, w *worker, p location) batch {
	t.Helper()
	const runs = 6
	o.held, o.arrived = make(chan struct{}), make(chan struct{}, 1000)
	b := newBatch(t, o, p, fmt.Sprintf("held %p", o.held), runs) // each batch has tasks of its own
	for _, j := range b {
		j.id = w.MustDo(order{Do: opStart, Task: j.task}).Run
	}
	for range b {
		<-o.arrived
	}
	return b
}

// finish waits until all runs have ended, and checks them.
func (c batch) finish(t *testing.T, w *worker) {
	t.Helper()
	for _, j := range c {
		for !j.done {
			r := w.MustDo(order{Do: opWait, Run: j.id, Task: j.task})
			if r.Status.Ended() {
				if err := j.readResult(w, r); err != nil {
					t.Fatal(err)
				}
			} else if r.Pause != nil {
				t.Fatalf("the run of %s is paused: %+v", j.task, r.Pause)
			}
		}
		j.checkRun()
	}
}

// checkCalledOnce checks that each call of the runs was made once.
func (c batch) checkCalledOnce() {
	for _, j := range c {
		j.t.Helper()
		sent, ran, names := j.outside.copyCounts(j.task, j.id)
		for i, n := range sent {
			if n != 1 {
				j.t.Errorf("request %d of %s was sent %d times", i, j.task, n)
			}
		}
		for key, n := range ran {
			if n != 1 {
				j.t.Errorf("%s was called %d times", names[key], n)
			}
		}
	}
}

// cable is a proxy of connections that can be cut.
type cable struct {
	target string

	mu    sync.Mutex
	isCut bool
	open  map[net.Conn]bool
}

// newCable starts a proxy to the server in a URL, and replaces the server by the proxy.
func newCable(t *testing.T, server *string) *cable {
	t.Helper()
	at, err := url.Parse(*server)
	if err != nil {
		t.Fatal(err)
	}
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	c := &cable{target: at.Host, open: map[net.Conn]bool{}}
	at.Host = fmt.Sprint(l.Addr())
	*server = at.String()
	go func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			go c.forward(in)
		}
	}()
	return c
}

// forward copies the data of one connection.
func (c *cable) forward(in net.Conn) {
	defer func() { _ = in.Close() }()
	out, err := (&net.Dialer{}).Dial("tcp", c.target)
	if err != nil {
		return
	}
	defer func() { _ = out.Close() }()
	c.mu.Lock()
	if c.isCut {
		c.mu.Unlock()
		return
	}
	c.open[in], c.open[out] = true, true
	c.mu.Unlock()
	go func() {
		_, _ = io.Copy(out, in)
		_ = out.Close()
	}()
	_, _ = io.Copy(in, out)
}

// cut closes all connections and refuses new ones until mend is called.
func (c *cable) cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = true
	for conn := range c.open {
		_ = conn.Close()
	}
	clear(c.open)
}

func (c *cable) mend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isCut = false
}
