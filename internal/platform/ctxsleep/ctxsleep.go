// Package ctxsleep sleeps with a context.
package ctxsleep

import (
	"context"
	"time"
)

// For sleeps for d. If ctx is done first, it returns context.Cause.
func For(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}
