//go:build unix

package crashtest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/guideway-dev/guideway"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/guideway-dev/guideway/internal/testutil/crash"
)

// shortLease is a lease that ends while a test waits, in milliseconds.
const shortLease = 150

// TestStopped halts a worker for longer than its lease, with runs at each of their
// points. Another one takes the runs over and leads them to their end. When the first
// one goes on it writes nothing any more, and neither asks a model nor calls a tool,
// but for a call that it had let go of when it was halted.
func TestStopped(t *testing.T) {
	crash.Long(t)
	t.Parallel()
	const side = 8 // runs at once
	for _, s := range stores() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			o := newOutside(t)
			p := s.place(t, o)
			all := points(t, o, p)
			p.Lease = shortLease
			every := crash.Amount(t, "GUIDEWAY_CRASH_STOPS", 10, 20)
			var ends []int
			for n := 3; n <= all; n += every { // the first points are before the run is known
				ends = append(ends, n)
			}
			halted, workers := 0, 0
			for batch := range slices.Chunk(ends, side) {
				c := newCompany(t, o, p, fmt.Sprint("from point ", batch[0]), len(batch))
				halted, workers = halted+c.stop(t, p, batch), workers+1
				if t.Failed() {
					t.Fatalf("halted at the points %v", batch)
				}
			}
			if halted < len(ends)/2 { // a lease may end by itself where the machine is busy
				t.Errorf("of %d runs %d were halted: nothing was tested", len(ends), halted)
			}
			t.Logf("%d workers were halted, with %d runs at their points", workers, halted)
		})
	}
}

// stop has a worker halt with its runs at their points. It gives the number of those
// that have come there.
func (c company) stop(t *testing.T, p place, ends []int) int {
	t.Helper()
	w := hire(t, p).MustOpen()
	defer w.Kill()
	var side sync.WaitGroup
	for i, j := range c {
		side.Go(func() {
			r, err := w.Do(order{Do: opStart, Task: j.task, Point: ends[i]})
			if err == nil && r.OK() {
				j.id = r.Run
				r, err = w.Do(order{Do: opDrive, Run: j.id, Task: j.task})
			}
			if err != nil || !r.OK() && r.Code != guideway.CodeConflict {
				t.Errorf("begin: %v %+v", err, r)
			}
			j.halted = r.Halted
		})
	}
	if side.Wait(); t.Failed() {
		return 0
	}
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	other := hire(t, p).MustOpen()
	defer other.Kill()
	c.each(func(j *journey) error { return j.takeOver(other) })
	if err := w.Continue(); err != nil {
		t.Fatal(err)
	}
	halted := 0
	for _, j := range c {
		if j.halted {
			halted++
		}
	}
	c.each(func(j *journey) error { return j.goOn(w, other) })
	return halted
}

// each does something for all runs, side by side.
func (c company) each(do func(j *journey) error) {
	var side sync.WaitGroup
	for _, j := range c {
		side.Go(func() {
			if err := do(j); err != nil {
				j.t.Errorf("%s: %v", j.task, err)
			}
		})
	}
	side.Wait()
}

// goOn has the worker that was halted go on with the run, and looks by another one at
// what it has done.
func (j *journey) goOn(w, other *worker) error {
	if !j.halted {
		return nil
	}
	r, err := w.Do(order{Do: opGoOn, Task: j.task})
	if err != nil {
		return err
	}
	if r.Within {
		j.begun = 1
	}
	before := j.events
	if err := j.live(other, doom{}); err != nil {
		return err
	}
	if !slices.EqualFunc(before, j.events, func(a, b run.Event) bool { return a.Seq == b.Seq && string(a.MAC) == string(b.MAC) }) {
		return fmt.Errorf("who has lost the lease has written: %d events, then %d (%+v)", len(before), len(j.events), r)
	}
	j.judge()
	return nil
}

// takeOver has another worker lead the run to its end, as soon as it is let.
func (j *journey) takeOver(w *worker) error {
	for !j.done {
		if err := j.attempt(w); err != nil {
			return err
		}
	}
	return nil
}

// attempt has a worker lead the run on, unless another one does.
func (j *journey) attempt(w *worker) error {
	r, err := w.Do(order{Do: opDrive, Run: j.id, Task: j.task})
	switch {
	case err != nil:
		return err
	case r.Code == guideway.CodeConflict || r.OK() && r.Status == machineengine.StatusRunning:
		<-time.After(50 * time.Millisecond) // another one is at work
		return nil
	case !r.OK():
		return fmt.Errorf("%s: %s", r.Code, r.Message)
	case r.Status.Ended():
		return j.read(w, r)
	}
	next, err := j.decide(r)
	if err != nil {
		return err
	}
	if r, err = w.Do(next); err == nil && !r.OK() && r.Code != guideway.CodeRefused && r.Code != guideway.CodeConflict {
		err = fmt.Errorf("%s: %s", r.Code, r.Message)
	}
	return err
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
						r, err := w.Do(order{Do: opDrive, Run: j.id, Task: j.task})
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
				if err := j.attempt(workers[0]); err != nil || !j.done {
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
