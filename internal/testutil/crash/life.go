package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// Life is what a worker does until it is killed.
type Life[O any, R Reply] struct {
	Random *rand.Rand
	// Check compares what the worker finds with what is known, before anything
	// else is done.
	Check func(*Worker[O, R]) error
	// Clients send orders, side by side, as long as the worker lives.
	Clients []func(*Worker[O, R]) error
	// Replies and Rest are when it is killed at the latest: after so many replies,
	// and then after so long.
	Replies int
	Rest    time.Duration
}

// opening is how long a worker that is killed while it opens has, at most.
const opening = 40 * time.Millisecond

// Live is a worker's life from its start to its end. Every eighth is killed while
// it opens its place. opened says that it was killed later.
func (l Life[O, R]) Live(w *Worker[O, R]) (opened bool, err error) {
	defer w.Kill()
	if l.Random.IntN(8) == 0 {
		l.after(w, opening)
		return false, nil
	}
	if r, err := w.Opened(); err != nil || !r.OK() {
		return false, fmt.Errorf("a worker does not open its place: %w %+v", err, r)
	}
	if err := l.Check(w); err != nil {
		return true, err
	}
	errs := make([]error, len(l.Clients))
	var clients sync.WaitGroup
	for i, client := range l.Clients {
		clients.Go(func() {
			if errs[i] = client(w); errs[i] != nil {
				w.Kill() // there is nothing left to wait for
			}
		})
	}
	w.Acknowledges(l.Random.IntN(l.Replies))
	l.after(w, l.Rest)
	clients.Wait()
	return true, errors.Join(errs...)
}

// after kills a worker after a random time.
func (l Life[O, R]) after(w *Worker[O, R], most time.Duration) {
	<-time.After(time.Duration(l.Random.Int64N(int64(most))))
	w.Kill()
}
