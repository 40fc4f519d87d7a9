//go:build unix

package crashtest

import (
	"errors"
	"fmt"
	"sync"
	"testing"
)

// company is runs that one worker leads side by side: whatever becomes of it becomes
// of all of them, each at a place of its own.
type company []*journey

// newCompany is one of so many runs.
func newCompany(t *testing.T, o *outside, p place, name string, runs int) company {
	t.Helper()
	var c company
	for i := range runs {
		c = append(c, &journey{t: t, outside: o, place: p, task: fmt.Sprintf("%s, task %d", name, i)})
	}
	return c
}

// live has a worker lead all runs that are not at their end, each as far as it comes.
func (c company) live(w *worker, doomed func(i int, j *journey) doom) error {
	errs := make([]error, len(c))
	var side sync.WaitGroup
	for i, j := range c {
		if !j.done {
			d := doomed(i, j)
			side.Go(func() { errs[i] = j.live(w, d) })
		}
	}
	side.Wait()
	return errors.Join(errs...)
}

// die has a worker lead them, and kills it when each has come to its point or its
// end. It gives the number of runs that it took along.
func (c company) die(t *testing.T, p place, point func(i int, j *journey) int) (int, error) {
	t.Helper()
	before := c.deaths()
	w := hire(t, p)
	err := c.live(w, func(i int, j *journey) doom { return doom{point: point(i, j)} })
	w.Kill()
	for _, j := range c {
		if err == nil && !j.done && !j.halted {
			err = fmt.Errorf("the worker died before the run of %s was at its point: %s", j.task, w.Said())
		}
	}
	return c.deaths() - before, err
}

// deaths counts those of all runs.
func (c company) deaths() int {
	n := 0
	for _, j := range c {
		n += j.deaths
	}
	return n
}

// arrive leads all runs to their end without any more trouble, and judges them.
func (c company) arrive(t *testing.T, p place) {
	t.Helper()
	w := hire(t, p).MustOpen()
	err := c.live(w, func(int, *journey) doom { return doom{} })
	w.Dismiss()
	if err != nil {
		t.Fatalf("the runs do not end: %v\n%s", err, w.Said())
	}
	for _, j := range c {
		if !j.done {
			t.Fatalf("the run of %s does not end\n%s", j.task, w.Said())
		}
		j.judge()
	}
}
