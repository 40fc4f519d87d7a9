//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/crash"
	"github.com/guideway-dev/guideway/internal/machine"
	"github.com/guideway-dev/guideway/internal/run"
)

// shortLease is a lease that ends while a test waits, in milliseconds.
const shortLease = 150

// TestStopped halts a worker at each point of a run for longer than its lease.
// Another one takes the run over and leads it to its end. When the first one goes
// on it writes nothing any more, and neither asks a model nor calls a tool, but for
// a call that it had let go of when it was halted.
func TestStopped(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	for _, s := range stores() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t)
			p := s.place(t, o)
			all := points(t, o, p)
			p.Lease = shortLease
			every := crash.Amount(t, "GUIDEWAY_CRASH_STOPS", 20, 40)
			var first sync.WaitGroup
			turns := make(chan struct{}, 4) // so many at a time
			for n := 3; n <= all; n += every {
				turns <- struct{}{}
				first.Go(func() {
					defer func() { <-turns }()
					stop(t, o, p, n)
				})
			}
			first.Wait()
		})
	}
}

// stop has a worker halt at one point of a run of its own.
func stop(t *testing.T, o *outside, p place, point int) {
	halted := hire(t, p.ending(point, syscall.SIGSTOP))
	defer halted.Kill()
	j := &journey{t: t, outside: o, place: p, task: fmt.Sprint("task ", point)}
	r, err := halted.Do(order{Do: opStart, Task: j.task}) // the first points are before the run is known
	if err != nil || !r.OK() {
		t.Errorf("begin: %v %+v", err, r)
		return
	}
	j.id = r.Run
	_, driven := halted.Send(order{Do: opDrive, Run: j.id})
	if err := j.takeOver(); err != nil {
		t.Errorf("halted at point %d: %v", point, err)
		return
	}
	if err := halted.Continue(); err != nil {
		t.Error(err)
		return
	}
	r, err = driven()
	if err != nil {
		t.Errorf("halted at point %d: %v", point, err)
		return
	}
	if r.Within {
		j.begun = 1
	}
	before := j.events
	w := hire(t, p)
	if done, err := j.live(w); err != nil || !done {
		t.Errorf("halted at point %d: %v", point, err)
		return
	}
	if !slices.EqualFunc(before, j.events, func(a, b run.Event) bool { return a.Seq == b.Seq && string(a.MAC) == string(b.MAC) }) {
		t.Errorf("halted at point %d: who has lost the lease has written: %d events, then %d (%+v)", point, len(before), len(j.events), r)
	}
	j.judge()
}

// takeOver has another worker lead the run to its end, as soon as it is let.
func (j *journey) takeOver() error {
	w := hire(j.t, j.place)
	defer w.Kill()
	for {
		done, err := j.attempt(w)
		if done || err != nil {
			return err
		}
	}
}

// attempt has a worker lead the run on, unless another one does.
func (j *journey) attempt(w *worker) (done bool, err error) {
	r, err := w.Do(order{Do: opDrive, Run: j.id})
	switch {
	case err != nil:
		return false, err
	case r.Code == guideway.CodeConflict || r.OK() && r.Status == machine.StatusRunning:
		<-time.After(5 * time.Millisecond) // another one is at work
		return false, nil
	case !r.OK():
		return false, fmt.Errorf("%s: %s", r.Code, r.Message)
	case r.Status.Ended():
		return j.read(w, r)
	}
	next, err := j.decide(r)
	if err != nil {
		return false, err
	}
	if r, err = w.Do(next); err == nil && !r.OK() && r.Code != guideway.CodeRefused && r.Code != guideway.CodeConflict {
		err = fmt.Errorf("%s: %s", r.Code, r.Message)
	}
	return false, err
}

// TestTogether has several processes want to drive the same runs at once: each is
// driven by one of them, every model and tool is asked once, and who comes second
// is told.
func TestTogether(t *testing.T) {
	t.Parallel()
	const processes, runs = 3, 4
	for _, s := range stores() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t)
			p := s.place(t, o)
			var workers []*worker
			for range processes { // they open one new journal at once
				workers = append(workers, hire(t, p))
			}
			var all []*journey
			for i := range runs {
				j := &journey{t: t, outside: o, place: p, task: fmt.Sprint("task ", i)}
				j.id = workers[i%processes].MustOpen().MustDo(order{Do: opStart, Task: j.task}).Run
				all = append(all, j)
			}
			var lost sync.Map
			var work sync.WaitGroup
			for _, w := range workers {
				for _, j := range all {
					work.Go(func() {
						r, err := w.Do(order{Do: opDrive, Run: j.id})
						switch {
						case err != nil || !r.OK() && r.Code != guideway.CodeConflict:
							t.Errorf("drive: %v %+v", err, r)
						case !r.OK():
							lost.Store(w, true)
						}
					})
				}
			}
			work.Wait()
			for _, j := range all {
				if done, err := j.attempt(workers[0]); err != nil || !done {
					t.Fatalf("the run is not at its end: %v", err)
				}
				j.judge()
				sent, ran, names := o.of(j.task, j.id)
				for i, n := range sent {
					if n != 1 {
						t.Errorf("request %d was sent %d times", i, n)
					}
				}
				for key, n := range ran {
					if n != 1 {
						t.Errorf("%s was called %d times", names[key], n)
					}
				}
			}
			for _, w := range workers {
				w.Dismiss()
			}
		})
	}
}
