// Package ctxsleep waits.
package ctxsleep

import (
	"context"
	"time"
)

// For waits for a time. Where ctx ends sooner it gives the reason, context.Cause.
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
