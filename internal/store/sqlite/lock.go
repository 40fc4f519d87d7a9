package sqlite

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"time"

	"github.com/gofrs/flock"

	"github.com/guideway-dev/guideway"
)

// fileLock lets one writer of all processes in at a time. Writers queue in the
// kernel rather than by trying again and again, as SQLite's own wait does: with
// many of them the slowest waits a tenth as long.
type fileLock struct {
	file    *flock.Flock
	timeout time.Duration
	// turn has room for one writer of this process. Who is in it alone uses
	// file, but for an attempt.
	turn chan struct{}

	mu sync.Mutex
	// waiting is the attempt under way; it outlives who has made it.
	waiting *attempt
}

// attempt waits for the lock in the kernel, where nothing can stop it. A writer
// that no longer waits leaves it behind, and the next one takes it over.
type attempt struct {
	done   chan struct{}
	wanted bool // somebody waits; else the lock is given back when it comes
	ended  bool
	err    error
}

func newFileLock(path string, timeout time.Duration) *fileLock {
	return &fileLock{file: flock.New(path, flock.SetPermissions(0o600)), timeout: timeout, turn: make(chan struct{}, 1)}
}

// acquire waits for the lock, as long as the timeout and the context allow.
func (l *fileLock) acquire(ctx context.Context) (release func(), err error) {
	return l.acquireUnless(ctx, nil)
}

// acquireUnless is acquire for one who does not need the lock any more once
// enough is closed: then there is neither a lock nor an error.
func (l *fileLock) acquireUnless(ctx context.Context, enough <-chan struct{}) (release func(), err error) {
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
	case <-enough:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, l.late()
	}
	if err := l.acquireFile(ctx, timer.C); err != nil {
		<-l.turn
		return nil, err
	}
	return func() {
		_ = l.file.Unlock() // it fails where there is nothing to unlock
		<-l.turn
	}, nil
}

// acquireFile is acquire between processes. The caller has the turn.
func (l *fileLock) acquireFile(ctx context.Context, late <-chan time.Time) error {
	a, err := l.attempt()
	if a == nil {
		return err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = l.late()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.ended {
		a.wanted = false
		return err
	}
	l.waiting = nil
	if err == nil {
		return a.err
	}
	_ = l.file.Unlock() // it came in the last moment
	return err
}

// attempt gives the attempt to wait for; nil says that there is no need to,
// with an error if there was one.
func (l *fileLock) attempt() (*attempt, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting != nil {
		l.waiting.wanted = true
		return l.waiting, nil
	}
	if free, err := l.file.TryLock(); free || err != nil {
		return nil, err
	}
	a := &attempt{done: make(chan struct{}), wanted: true}
	l.waiting = a
	go func() {
		err := l.file.Lock()
		for errors.Is(err, syscall.EINTR) {
			err = l.file.Lock()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		a.ended, a.err = true, err
		if !a.wanted {
			_ = l.file.Unlock()
			l.waiting = nil
		}
		close(a.done)
	}()
	return a, nil
}

func (l *fileLock) late() error {
	return guideway.Errorf(guideway.CodeUnavailable, "another process has held the store's lock %s for %v", l.file.Path(), l.timeout).
		WithFix("try again; if this persists, end the process that holds the lock")
}

// close gives the lock's file back. An attempt that is still under way is
// waited for as long as a writer would wait.
func (l *fileLock) close() {
	l.mu.Lock()
	a := l.waiting
	l.mu.Unlock()
	if a == nil {
		return
	}
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C: // it ends with the process that holds the lock
	}
}
