// Package ctxsleep sleeps until a duration has passed or a context is done.
package ctxsleep

import (
	"context"
	"time"
)

// For waits for d. If ctx is done first, it returns context.Cause(ctx).
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
