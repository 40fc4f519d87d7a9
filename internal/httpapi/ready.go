package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

const (
	// readyInterval is the minimum time between two checks, because anyone may ask.
	readyInterval = time.Second
	// readyTime is the time limit of a check.
	readyTime = 2 * time.Second
)

// readiness is the result of the last check whether the server can serve requests.
type readiness struct {
	mu      sync.Mutex
	checked time.Time
	err     error
}

// getReady reports whether the server can serve requests. The reason is in the log alone.
func (a *api) getReady(c *call) (any, error) {
	if a.checkReady(c.Context()) != nil {
		c.status = http.StatusServiceUnavailable
		return json.RawMessage(`{"status":"unavailable"}` + "\n"), nil
	}
	return json.RawMessage(`{"status":"ready"}` + "\n"), nil
}

// checkReady checks the server, unless it was checked recently.
func (a *api) checkReady(ctx context.Context) error {
	r := &a.ready
	r.mu.Lock()
	defer r.mu.Unlock()
	if a.CheckReady == nil || !r.checked.IsZero() && time.Since(r.checked) < readyInterval {
		return r.err
	}
	// The result is for all callers, so a caller that disconnects does not end the check.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), readyTime)
	defer cancel()
	before := r.err
	r.err, r.checked = a.CheckReady(ctx), time.Now()
	if r.err != nil && before == nil {
		a.Logger.Warn("the server cannot serve requests", "error", r.err)
	}
	return r.err
}
