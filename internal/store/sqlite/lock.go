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

// fileLock is the lock that allows one writer of all processes at a time. Writers queue in
// the kernel instead of polling as SQLite's busy handler does: with many writers the
// longest wait is ten times shorter.
type fileLock struct {
	file    *flock.Flock
	timeout time.Duration
	// turn is a semaphore for one writer of this process. Only the writer that has it and
	// the goroutine of a lockAttempt use file.
	turn chan struct{}

	mu sync.Mutex
	// pending is the attempt in progress. It can last longer than the writer that started
	// it waits.
	pending *lockAttempt
}

// lockAttempt waits for the lock in the kernel and cannot be interrupted. If its writer
// stops waiting, the next writer takes the attempt over.
type lockAttempt struct {
	done   chan struct{}
	wanted bool // a writer waits; otherwise the lock is released as soon as it is acquired
	ended  bool
	err    error
}

func newFileLock(path string, timeout time.Duration) *fileLock {
	return &fileLock{file: flock.New(path, flock.SetPermissions(0o600)), timeout: timeout, turn: make(chan struct{}, 1)}
}

// acquireLock waits for the lock until the timeout or the end of the context.
func (l *fileLock) acquireLock(ctx context.Context) (release func(), err error) {
	return l.acquireLockUnless(ctx, nil)
}

// acquireLockUnless is like acquireLock, but stops waiting when the channel enough is
// closed. It then returns neither a lock nor an error.
func (l *fileLock) acquireLockUnless(ctx context.Context, enough <-chan struct{}) (release func(), err error) {
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case l.turn <- struct{}{}:
	case <-enough:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, l.timeoutError()
	}
	if err := l.acquireFileLock(ctx, timer.C); err != nil {
		<-l.turn
		return nil, err
	}
	return func() {
		_ = l.file.Unlock() // the error means that the file was not locked
		<-l.turn
	}, nil
}

// acquireFileLock acquires the lock between processes. The caller has the turn.
func (l *fileLock) acquireFileLock(ctx context.Context, late <-chan time.Time) error {
	a, err := l.startAttempt()
	if a == nil {
		return err
	}
	select {
	case <-a.done:
	case <-ctx.Done():
		err = ctx.Err()
	case <-late:
		err = l.timeoutError()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !a.ended {
		a.wanted = false
		return err
	}
	l.pending = nil
	if err == nil {
		return a.err
	}
	_ = l.file.Unlock() // acquired after the timeout
	return err
}

// startAttempt tries to take the lock. If another process has the lock, startAttempt
// returns the attempt to wait for. If it has taken the lock or failed with an error, the
// attempt is nil. The lock of a store in memory has no file.
func (l *fileLock) startAttempt() (*lockAttempt, error) {
	if l.file.Path() == "" {
		return nil, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.pending != nil {
		l.pending.wanted = true
		return l.pending, nil
	}
	if free, err := l.file.TryLock(); free || err != nil {
		return nil, err
	}
	a := &lockAttempt{done: make(chan struct{}), wanted: true}
	l.pending = a
	go func() {
		err := error(syscall.EINTR)
		for errors.Is(err, syscall.EINTR) {
			err = l.file.Lock()
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		a.ended, a.err = true, err
		if !a.wanted {
			_ = l.file.Unlock()
			l.pending = nil
		}
		close(a.done)
	}()
	return a, nil
}

func (l *fileLock) timeoutError() error {
	return guideway.Errorf(guideway.CodeUnavailable, "another process has held the store's lock %s for %v", l.file.Path(), l.timeout).
		WithFix("try again; if it fails again, end the process that holds the lock")
}

// close waits for an attempt in progress, at most as long as a writer would.
func (l *fileLock) close() {
	l.mu.Lock()
	a := l.pending
	l.mu.Unlock()
	if a == nil {
		return
	}
	timer := time.NewTimer(l.timeout)
	defer timer.Stop()
	select {
	case <-a.done:
	case <-timer.C: // the attempt ends when the other process releases the lock
	}
}
