package crash

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// WorkerLife describes the use of a worker until it is killed.
type WorkerLife[O any, R Reply] struct {
	Random *rand.Rand
	// Check compares the state of the worker's store with the expected state before any
	// order.
	Check func(*Worker[O, R]) error
	// Clients send orders concurrently until the worker is killed.
	Clients []func(*Worker[O, R]) error
	// The worker is killed at a random time: after fewer than Replies replies and a further
	// time of less than Rest.
	Replies int
	Rest    time.Duration
}

// maxOpening bounds the time until a worker is killed while it opens its store.
const maxOpening = 40 * time.Millisecond

// Run runs a worker until it is killed. One in eight workers, chosen at random, is killed
// while it opens its store. opened reports whether the store was opened.
func (l WorkerLife[O, R]) Run(w *Worker[O, R]) (opened bool, err error) {
	defer w.Kill()
	if l.Random.IntN(8) == 0 {
		l.killAfter(w, maxOpening)
		return false, nil
	}
	r, err := w.Opened()
	if err != nil {
		return false, fmt.Errorf("a worker cannot open its store: %w", err)
	}
	if !r.OK() {
		return false, fmt.Errorf("a worker cannot open its store: %+v", r)
	}
	if err := l.Check(w); err != nil {
		return true, err
	}
	errs := make([]error, len(l.Clients))
	var clients sync.WaitGroup
	for i, client := range l.Clients {
		clients.Go(func() {
			if errs[i] = client(w); errs[i] != nil {
				w.Kill() // no more replies are expected
			}
		})
	}
	w.WaitReplies(l.Random.IntN(l.Replies))
	l.killAfter(w, l.Rest)
	clients.Wait()
	return true, errors.Join(errs...)
}

// killAfter waits for a random time of less than most, and kills a worker.
func (l WorkerLife[O, R]) killAfter(w *Worker[O, R], most time.Duration) {
	<-time.After(time.Duration(l.Random.Int64N(int64(most))))
	w.Kill()
}
