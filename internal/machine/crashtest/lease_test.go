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

// TestStopped stops a worker, with its runs at different points, until others consider it as
// ended. Another worker takes over the runs and finishes them. When the stopped worker continues,
// it writes nothing and calls no model or tool, except for a call that it was about to
// make.
func TestStopped(t *testing.T) {
	crash.SkipIfShort(t)
	t.Parallel()
	const side = 8 // number of concurrent runs
	for _, s := range journalKinds() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			o := newFakeServers(t)
			p := s.place(t, o)
			all := countPoints(t, o, p)
			every := crash.Amount(t, "GUIDEWAY_CRASH_STOPS", 10, 20)
			var ends []int
			for n := 3; n <= all; n += every { // before point 3 the run is not in the journal
				ends = append(ends, n)
			}
			halted, workers := 0, 0
			for batch := range slices.Chunk(ends, side) {
				c := newBatch(t, o, p, fmt.Sprint("from point ", batch[0]), len(batch))
				halted, workers = halted+c.haltAtPoints(t, p, batch), workers+1
				if t.Failed() {
					t.Fatalf("runs halted at the points %v", batch)
				}
			}
			if halted < len(ends)/2 {
				t.Errorf("only %[2]d of %[1]d runs halted, which tests too little", len(ends), halted)
			}
			t.Logf("%d workers were halted, with %d runs at their points", workers, halted)
		})
	}
}

// haltAtPoints stops a worker with its runs at their points, lets another worker finish the
// runs, and continues the first worker. It returns the number of runs that reached their
// point.
func (c batch) haltAtPoints(t *testing.T, p location, ends []int) int {
	t.Helper()
	w := startWorker(t, p).MustOpen()
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
	processes{p}.declareEnded(t, w.PID())
	other := startWorker(t, p).MustOpen()
	defer other.Kill()
	c.forEach(func(j *trackedRun) error { return j.takeOver(other) })
	if err := w.Continue(); err != nil {
		t.Fatal(err)
	}
	halted := 0
	for _, j := range c {
		if j.halted {
			halted++
		}
	}
	c.forEach(func(j *trackedRun) error { return j.continueHalted(w, other) })
	return halted
}

// forEach calls do for all runs concurrently.
func (c batch) forEach(do func(j *trackedRun) error) {
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

// continueHalted lets the stopped worker continue the run, and checks through another
// worker that no event was written.
func (j *trackedRun) continueHalted(w, other *worker) error {
	if !j.halted {
		return nil
	}
	r, err := w.Do(order{Do: opGoOn, Task: j.task})
	if err != nil {
		return err
	}
	if r.Within {
		j.unsentCalls = 1
	}
	before := j.events
	if err := j.driveRun(other, crashPlan{}); err != nil {
		return err
	}
	if !slices.EqualFunc(before, j.events, func(a, b run.Event) bool { return a.Seq == b.Seq && string(a.MAC) == string(b.MAC) }) {
		return fmt.Errorf("the worker wrote after it lost the lease: %d events, then %d (%+v)", len(before), len(j.events), r)
	}
	j.checkRun()
	return nil
}

// takeOver makes another worker finish the run as soon as the lease expires.
func (j *trackedRun) takeOver(w *worker) error {
	for !j.done {
		if err := j.tryDrive(w); err != nil {
			return err
		}
	}
	return nil
}

// tryDrive makes a worker drive the run unless another one does.
func (j *trackedRun) tryDrive(w *worker) error {
	r, err := w.Do(order{Do: opDrive, Run: j.id, Task: j.task})
	switch {
	case err != nil:
		return err
	case r.Code == guideway.CodeConflict || r.OK() && r.Status == machineengine.StatusRunning:
		<-time.After(50 * time.Millisecond) // another worker still drives the run
		return nil
	case !r.OK():
		return fmt.Errorf("%s: %s", r.Code, r.Message)
	case r.Status.Ended():
		return j.readResult(w, r)
	}
	next, err := j.nextOrder(r)
	if err != nil {
		return err
	}
	if r, err = w.Do(next); err == nil && !r.OK() && r.Code != guideway.CodeRefused && r.Code != guideway.CodeConflict {
		err = fmt.Errorf("%s: %s", r.Code, r.Message)
	}
	return err
}

// TestTogether drives the same runs from several processes concurrently, and checks that
// every model and tool call is made once. A process may get a conflict.
func TestTogether(t *testing.T) {
	t.Parallel()
	const processes, runs = 3, 4
	for _, s := range journalKinds() {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			o := newFakeServers(t)
			p := s.place(t, o)
			var workers []*worker
			for range processes { // the processes also create the journal concurrently
				workers = append(workers, startWorker(t, p))
			}
			var all []*trackedRun
			for i := range runs {
				j := &trackedRun{t: t, outside: o, place: p, task: fmt.Sprint("task ", i)}
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
				if err := j.tryDrive(workers[0]); err != nil || !j.done {
					t.Fatalf("the run has not ended: %v", err)
				}
				j.checkRun()
				sent, ran, names := o.copyCounts(j.task, j.id)
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
				w.Shutdown()
			}
		})
	}
}
