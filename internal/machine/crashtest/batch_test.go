//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// batch is a set of runs that one worker drives concurrently. A crash of the worker
// interrupts all of them, each at a different point.
type batch []*trackedRun

// newBatch returns a batch of runs.
func newBatch(t *testing.T, o *fakeServers, p location, name string, runs int) batch {
	t.Helper()
	var c batch
	for i := range runs {
		c = append(c, &trackedRun{t: t, outside: o, place: p, task: fmt.Sprintf("%s, task %d", name, i)})
	}
	return c
}

// driveAll makes a worker drive all runs that have not ended, each until it ends or halts.
func (c batch) driveAll(w *worker, doomed func(i int, j *trackedRun) crashPlan) error {
	errs := make([]error, len(c))
	var side sync.WaitGroup
	for i, j := range c {
		if !j.done {
			d := doomed(i, j)
			side.Go(func() { errs[i] = j.driveRun(w, d) })
		}
	}
	side.Wait()
	return errors.Join(errs...)
}

// killAtPoints makes a worker drive the runs, and kills it when each run has reached its
// point or its end. It returns the number of interrupted runs.
func (c batch) killAtPoints(t *testing.T, p location, point func(i int, j *trackedRun) int) (int, error) {
	t.Helper()
	before := c.countDeaths()
	w := startWorker(t, p)
	err := c.driveAll(w, func(i int, j *trackedRun) crashPlan { return crashPlan{point: point(i, j)} })
	w.Kill()
	for _, j := range c {
		if err == nil && !j.done && !j.halted {
			err = fmt.Errorf("the worker died before the run of %s reached its breakpoint: %s", j.task, w.Stderr())
		}
	}
	return c.countDeaths() - before, err
}

// countDeaths returns the number of deaths of all runs.
func (c batch) countDeaths() int {
	n := 0
	for _, j := range c {
		n += j.deaths
	}
	return n
}

// finishAll drives all runs to their end without a crash and checks them.
func (c batch) finishAll(t *testing.T, p location) {
	t.Helper()
	w := startWorker(t, p).MustOpen()
	err := c.driveAll(w, func(int, *trackedRun) crashPlan { return crashPlan{} })
	w.Shutdown()
	if err != nil {
		t.Fatalf("the runs did not end: %v\n%s", err, w.Stderr())
	}
	for _, j := range c {
		if !j.done {
			t.Fatalf("the run of %s did not end\n%s", j.task, w.Stderr())
		}
		j.checkRun()
	}
}
