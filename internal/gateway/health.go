package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/gateway/upstream"
)

// maxBackoff limits the delay for a failing upstream, in multiples of the interval.
const maxBackoff = 10

// Watch checks the upstreams until ctx ends. It pings the running upstreams and retries the
// failed ones, at first at every interval and then less often. It does not start upstreams
// that were never used. The last value of intervals is the interval between checks; before
// the first value and after a zero there are no checks.
func (g *Gateway) Watch(ctx context.Context, intervals <-chan time.Duration) {
	w := &watcher{}
	tick := time.NewTicker(time.Hour)
	tick.Stop()
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			w.wg.Wait()
			return
		case every := <-intervals:
			w.reset(every)
			if tick.Stop(); every > 0 {
				tick.Reset(every)
			}
		case now := <-tick.C:
			w.checkDue(ctx, now, g.allMembers())
		}
	}
}

// watcher stores the next check of each upstream.
type watcher struct {
	wg sync.WaitGroup

	mu    sync.Mutex
	every time.Duration
	due   map[*upstream.Upstream]*schedule
}

// reset clears the schedule.
func (w *watcher) reset(every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every, w.due = every, map[*upstream.Upstream]*schedule{}
}

// schedule is the next check of an upstream.
type schedule struct {
	at   time.Time
	wait time.Duration
	busy bool
}

// checkDue checks the upstreams that are due, each concurrently.
func (w *watcher) checkDue(ctx context.Context, now time.Time, members []*member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[*upstream.Upstream]bool{}
	for _, m := range members {
		u := m.Upstream
		there[u] = true
		t := w.due[u]
		if t == nil {
			t = &schedule{wait: w.every}
			w.due[u] = t
		}
		if t.busy || now.Before(t.at) {
			continue
		}
		t.busy = true
		w.wg.Go(func() { w.checkUpstream(ctx, m, t) })
	}
	for _, u := range slices.Collect(maps.Keys(w.due)) {
		if !there[u] {
			delete(w.due, u)
		}
	}
}

// checkUpstream checks one upstream.
func (w *watcher) checkUpstream(ctx context.Context, m *member, t *schedule) {
	var err error
	if m.Health().Condition == upstream.ConditionFailed {
		_, err = m.Refresh(ctx, m.listWant())
	} else {
		_, err = m.Ping(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.busy = false
	if err != nil {
		t.wait = min(2*t.wait, maxBackoff*w.every)
	} else {
		t.wait = w.every
	}
	// The time is slightly before a tick, so that the check is due at that tick.
	t.at = time.Now().Add(t.wait - w.every/10)
}
