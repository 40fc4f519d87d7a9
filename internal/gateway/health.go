package gateway

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/guideway-dev/guideway/internal/upstream"
)

// maxBackoff is how many times the interval at most an upstream that does not
// answer is left alone.
const maxBackoff = 10

// Watch looks after the upstreams until ctx ends: it pings those that run, and
// tries those again that have failed, every interval at first and less and less
// often where that is in vain. What was never needed is not started. The interval is
// the last one that came; zero, or none yet, is never.
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
			w.begin(every)
			if tick.Stop(); every > 0 {
				tick.Reset(every)
			}
		case now := <-tick.C:
			w.look(ctx, now, g.all())
		}
	}
}

// watcher remembers when each upstream is due.
type watcher struct {
	wg sync.WaitGroup

	mu    sync.Mutex
	every time.Duration
	due   map[*upstream.Upstream]*turn
}

// begin forgets who was due when.
func (w *watcher) begin(every time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.every, w.due = every, map[*upstream.Upstream]*turn{}
}

// turn is when an upstream is looked at again.
type turn struct {
	at   time.Time
	wait time.Duration
	busy bool
}

// look looks after those that are due, each by itself.
func (w *watcher) look(ctx context.Context, now time.Time, members []*member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	there := map[*upstream.Upstream]bool{}
	for _, m := range members {
		u := m.Upstream
		there[u] = true
		t := w.due[u]
		if t == nil {
			t = &turn{wait: w.every}
			w.due[u] = t
		}
		if t.busy || now.Before(t.at) {
			continue
		}
		t.busy = true
		w.wg.Go(func() { w.attend(ctx, u, t) })
	}
	for _, u := range slices.Collect(maps.Keys(w.due)) {
		if !there[u] {
			delete(w.due, u)
		}
	}
}

// attend looks after one upstream.
func (w *watcher) attend(ctx context.Context, u *upstream.Upstream, t *turn) {
	var err error
	if u.Health().Condition == upstream.ConditionFailed {
		_, err = u.Refresh(ctx)
	} else {
		_, err = u.Ping(ctx)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	t.busy = false
	if err != nil {
		t.wait = min(2*t.wait, maxBackoff*w.every)
	} else {
		t.wait = w.every
	}
	// A little early, so that the tick of that time finds it due.
	t.at = time.Now().Add(t.wait - w.every/10)
}
