package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxBatch bounds the number of changes in one transaction, and so the time that other
// processes wait for it.
const maxBatch = 64

// The statements around each change if several share a transaction.
const (
	sqlSavepoint  = `SAVEPOINT change`
	sqlRollbackTo = `ROLLBACK TO change`
	sqlRelease    = `RELEASE change`
)

// errPanicked is the result of changes whose transaction panicked.
var errPanicked = errors.New("the transaction panicked")

// change is a request of a caller to change the database in a transaction.
type change struct {
	do func(*txn) error
	// done is closed after err is set. If err is nil, the change is then durable.
	done chan struct{}
	err  error
}

// commitQueue contains the changes that are not part of a transaction yet, the oldest
// first.
type commitQueue struct {
	mu      sync.Mutex
	waiting []*change
}

func (q *commitQueue) push(c *change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, c)
}

// removeWaiting removes a change. It returns false if a transaction already includes it.
func (q *commitQueue) removeWaiting(c *change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// takeBatch removes and returns a batch: the given change and the oldest other changes, in
// the order of their arrival. It returns nil if the change is no longer in the queue.
func (q *commitQueue) takeBatch(own *change, most int) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, own)
	if i < 0 {
		return nil
	}
	n := min(most, len(q.waiting))
	if i >= n { // if own came too late for the batch, it is the last change of the batch
		q.waiting = slices.Insert(slices.Delete(q.waiting, i, i+1), n-1, own)
	}
	list := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return list
}

// commitShared makes a change that may share a transaction with concurrent changes (group
// commit). A single change is committed without delay. Changes that arrive during a
// transaction, or while another process has the lock, join the next transaction: the first
// caller that gets the lock commits all of them. Each change is applied completely or not
// at all, independent of the others, and its result is returned when it is durable. If the
// context ends before a transaction includes the change, the change is not made. After that
// the end of the context has no effect.
//
// do may be called twice, and must change nothing but the database.
func (s *Store) commitShared(ctx context.Context, doing string, do func(context.Context, *txn) error) error {
	if err := s.beginCall(ctx, doing); err != nil {
		return err
	}
	defer s.endCall()
	lasting := context.WithoutCancel(ctx)
	c := &change{do: func(t *txn) error { return do(lasting, t) }, done: make(chan struct{})}
	s.queue.push(c)
	return s.wrapError(doing, s.awaitResult(ctx, c))
}

// awaitResult returns the result of a change in the queue.
func (s *Store) awaitResult(ctx context.Context, c *change) error {
	release, err := s.lock.acquireLockUnless(ctx, c.done)
	if err != nil {
		if s.queue.removeWaiting(c) {
			return err
		}
		<-c.done
		return c.err
	}
	if release != nil {
		defer release()
		s.runBatch(ctx, c)
	}
	return c.err
}

// runBatch commits a change and the waiting changes, unless another caller has done so. The
// caller has the lock.
func (s *Store) runBatch(ctx context.Context, own *change) {
	list := s.queue.takeBatch(own, maxBatch)
	told := false
	defer func() {
		for _, c := range list {
			if !told {
				c.err = errPanicked
			}
			close(c.done)
		}
	}()
	s.commitBatch(ctx, list)
	told = true
	if slices.ContainsFunc(list, func(c *change) bool { return c.err == nil }) {
		s.watch.NotifyAll()
	}
}

// commitBatch commits several changes in one transaction. If that fails, it commits each
// change in its own transaction, so that the error is reported to the change that caused
// it.
func (s *Store) commitBatch(ctx context.Context, list []*change) {
	if len(list) > 1 {
		begun, err := s.runTransaction(ctx, func(ctx context.Context, t *txn) error {
			for _, c := range list {
				if err := t.withSavepoint(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case err == nil:
			return
		case !begun:
			setResult(list, err)
			return
		}
	}
	for i, c := range list {
		begun, err := s.runTransaction(ctx, func(_ context.Context, t *txn) error { return c.do(t) })
		if c.err = err; err != nil && !begun {
			setResult(list[i:], err)
			return
		}
	}
}

// setResult sets the result of changes.
func setResult(list []*change, err error) {
	for _, c := range list {
		c.err = err
	}
}

// withSavepoint makes a change within a savepoint, so that only this change is undone if it
// fails. A returned error means that the whole transaction must be rolled back.
func (t *txn) withSavepoint(ctx context.Context, c *change) error {
	if _, err := t.execStatement(ctx, sqlSavepoint); err != nil {
		return err
	}
	words := len(t.words)
	if c.err = c.do(t); c.err != nil {
		t.words = t.words[:words]
		// After some errors, such as a full disk, SQLite has already rolled back the
		// transaction and the savepoint does not exist.
		if _, err := t.execStatement(ctx, sqlRollbackTo); err != nil {
			return errors.Join(c.err, err)
		}
	}
	_, err := t.execStatement(ctx, sqlRelease)
	return err
}
