package postgres

import (
	"context"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ctxsleep"
	"github.com/guideway-dev/guideway/internal/store/rows"
)

const (
	firstPause = 10 * time.Millisecond
	maxPause   = 500 * time.Millisecond
)

// callAttempt is one attempt of a call. maybeCommitted reports whether an earlier attempt
// got no response and may have been committed: a writer then checks before it writes.
type callAttempt func(ctx context.Context, maybeCommitted bool) error

// retryWrite runs a call that writes. It retries while the server is unreachable, restarts
// or rolls the transaction back, for at most the store's patience.
func (s *Store) retryWrite(ctx context.Context, what string, f callAttempt) error {
	maybeCommitted, err := s.retryCall(ctx, what, f)
	if !maybeCommitted || guideway.ErrorCode(err) != guideway.CodeUnavailable {
		return err
	}
	return guideway.Errorf(guideway.CodeUnavailable, "%w; it is unknown whether the call succeeded", err).
		WithFix("after the server answers again, check whether the call succeeded before you repeat it")
}

// retryUnlessStored runs a call that writes, with the retries of retryWrite. After an attempt
// without a response it first checks whether that attempt was committed. If the transaction
// of that attempt is still in progress, the next one conflicts with it, and the check is
// repeated.
func (s *Store) retryUnlessStored(
	ctx context.Context, what string, stored func(context.Context, rows.Reader) (bool, error), write func(context.Context) error,
) error {
	return s.retryWrite(ctx, what, func(ctx context.Context, maybeCommitted bool) error {
		if !maybeCommitted {
			return write(ctx)
		}
		if there, err := stored(ctx, conn{s.pool}); err != nil || there {
			return err
		}
		err := write(ctx)
		if guideway.ErrorCode(err) == guideway.CodeConflict {
			if there, again := stored(ctx, conn{s.pool}); again != nil || there {
				return again
			}
		}
		return err
	})
}

// retryRead runs a call that only reads, with the same retries as retryWrite.
func (s *Store) retryRead(ctx context.Context, what string, f func(ctx context.Context) error) error {
	_, err := s.retryCall(ctx, what, func(ctx context.Context, _ bool) error { return f(ctx) })
	return err
}

func (s *Store) retryCall(ctx context.Context, what string, f callAttempt) (maybeCommitted bool, err error) {
	s.inUse.RLock()
	defer s.inUse.RUnlock()
	if s.closed {
		return false, guideway.Errorf(guideway.CodeUnavailable, "the store is closed")
	}
	started, delay := time.Now(), firstPause
	for {
		if err := ctx.Err(); err != nil {
			return maybeCommitted, s.wrapError(what, err)
		}
		err := s.callOnce(ctx, maybeCommitted, f)
		if err == nil {
			return false, nil
		}
		outcome := outcomeOf(err)
		maybeCommitted = maybeCommitted || outcome == outcomeUnknown
		if outcome == outcomeFailed || time.Since(started)+delay > s.patience || ctxsleep.For(ctx, delay) != nil {
			return maybeCommitted, s.wrapError(what, err)
		}
		delay = min(2*delay, maxPause)
	}
}

// callOnce makes one attempt with a timeout.
func (s *Store) callOnce(ctx context.Context, maybeCommitted bool, f callAttempt) error {
	ctx, cancel := context.WithTimeout(ctx, s.callTimeout)
	defer cancel()
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	return f(ctx, maybeCommitted)
}
