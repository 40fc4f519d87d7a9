package sqlite

import (
	"context"
	"errors"
	"slices"
	"sync"
)

// maxTogether bounds how many changes share a transaction, and so how long other
// processes wait for it.
const maxTogether = 64

// The statements around each of several changes in one transaction.
const (
	sqlBeginChange = `SAVEPOINT change`
	sqlUndoChange  = `ROLLBACK TO change`
	sqlEndChange   = `RELEASE change`
)

// errBroken is what a change comes to whose transaction has ended in a panic.
var errBroken = errors.New("the transaction has broken off")

// change is what a caller wants to be done in a transaction.
type change struct {
	do func(*txn) error
	// done is closed when err is the outcome, which is durable.
	done chan struct{}
	err  error
}

// queue has the changes that no transaction has taken up yet, the oldest first.
type queue struct {
	mu      sync.Mutex
	waiting []*change
}

func (q *queue) add(c *change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, c)
}

// withdraw takes a change back; false where a transaction has it already.
func (q *queue) withdraw(c *change) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, c)
	if i < 0 {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// take gives a change with the oldest of the others, in the order in which they
// came; nothing where the change is not there any more.
func (q *queue) take(own *change, most int) []*change {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, own)
	if i < 0 {
		return nil
	}
	n := min(most, len(q.waiting))
	if i >= n { // the last of them leaves it its place
		q.waiting = slices.Insert(slices.Delete(q.waiting, i, i+1), n-1, own)
	}
	list := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return list
}

// share is write for what may be done together with what others want at the same
// time. Whoever finds nobody at work begins at once; what comes while a transaction
// is under way, or while another process has the lock, goes into the next one, and
// whoever gets the lock first carries out all of it. Each change is whole or not at
// all whatever becomes of the others, and the outcome is told when it is durable.
// A change whose context ends before a transaction has taken it up is not made;
// behind that it is too late, and the outcome is told as it is.
//
// do may be called twice, and changes nothing but the database.
func (s *Store) share(ctx context.Context, doing string, do func(context.Context, *txn) error) error {
	if err := s.enter(ctx, doing); err != nil {
		return err
	}
	defer s.leave()
	lasting := context.WithoutCancel(ctx)
	c := &change{do: func(t *txn) error { return do(lasting, t) }, done: make(chan struct{})}
	s.queue.add(c)
	return s.fault(doing, s.await(ctx, c))
}

// await gives the outcome of a change that is in the queue.
func (s *Store) await(ctx context.Context, c *change) error {
	release, err := s.lock.acquireUnless(ctx, c.done)
	if err != nil {
		if s.queue.withdraw(c) {
			return err
		}
		<-c.done
		return c.err
	}
	if release != nil {
		defer release()
		s.lead(ctx, c)
	}
	return c.err
}

// lead carries out a change and those that wait with it, unless somebody else has.
// The caller has the lock.
func (s *Store) lead(ctx context.Context, own *change) {
	list := s.queue.take(own, maxTogether)
	told := false
	defer func() {
		for _, c := range list {
			if !told {
				c.err = errBroken
			}
			close(c.done)
		}
	}()
	s.together(ctx, list)
	told = true
	if slices.ContainsFunc(list, func(c *change) bool { return c.err == nil }) {
		s.watch.notify()
	}
}

// together makes one transaction of several changes, and one of each where that
// fails: what is at fault is then told to the change that it belongs to.
func (s *Store) together(ctx context.Context, list []*change) {
	if len(list) > 1 {
		begun, err := s.transact(ctx, func(ctx context.Context, t *txn) error {
			for _, c := range list {
				if err := t.apart(ctx, c); err != nil {
					return err
				}
			}
			return nil
		})
		switch {
		case err == nil:
			return
		case !begun:
			tell(list, err)
			return
		}
	}
	for i, c := range list {
		begun, err := s.transact(ctx, func(_ context.Context, t *txn) error { return c.do(t) })
		if c.err = err; err != nil && !begun {
			tell(list[i:], err)
			return
		}
	}
}

// tell gives changes the same outcome.
func tell(list []*change, err error) {
	for _, c := range list {
		c.err = err
	}
}

// apart makes a change within the transaction, so that it is undone alone where it
// fails. An error is one of the transaction.
func (t *txn) apart(ctx context.Context, c *change) error {
	if _, err := t.exec(ctx, sqlBeginChange); err != nil {
		return err
	}
	words := len(t.words)
	if c.err = c.do(t); c.err != nil {
		t.words = t.words[:words]
		// After some errors, as of a full disk, SQLite has undone everything: then
		// there is nothing to go back to.
		if _, err := t.exec(ctx, sqlUndoChange); err != nil {
			return errors.Join(c.err, err)
		}
	}
	_, err := t.exec(ctx, sqlEndChange)
	return err
}
