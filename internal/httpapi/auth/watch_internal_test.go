package auth

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchCredentialEndsOnlyARunningRequest checks that a request continues while its
// token is valid, and is ended once after the token was revoked.
func TestWatchCredentialEndsOnlyARunningRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			var ended atomic.Int32
			var revoked atomic.Bool
			stop := WatchCredential(func() bool { return !revoked.Load() }, func() { ended.Add(1) })
			<-time.After(3*tokenCheckInterval + tokenCheckInterval/2)
			if synctest.Wait(); ended.Load() != 0 {
				t.Fatal("a request with a valid token was ended")
			}
			revoked.Store(true)
			<-time.After(tokenCheckInterval)
			if synctest.Wait(); ended.Load() != 1 {
				t.Fatalf("a request with a revoked token was ended %d times", ended.Load())
			}
			stop()
		}
	})
}

// TestStoppedWatch checks that a watch does not end a request after stop has returned, even
// if stop is called at the time of the check.
func TestStoppedWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for range 200 {
			var stopped, late atomic.Bool
			stop := WatchCredential(func() bool { return false }, func() { late.Store(stopped.Load()) })
			<-time.After(tokenCheckInterval)
			stop()
			stopped.Store(true)
			synctest.Wait()
			if late.Load() {
				t.Fatal("a request was ended after its watch had stopped")
			}
		}
	})
}
