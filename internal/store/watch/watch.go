// Package watch notifies the watchers of a store's feed.
package watch

import (
	"context"
	"sync"
)

// Hub notifies the watchers in a process. While there are watchers, it runs a listener for
// the changes that other processes make.
type Hub struct {
	// listen calls NotifyAll for changes of other processes, until its context ends.
	listen func(ctx context.Context)

	mu       sync.Mutex
	watchers map[chan struct{}]struct{}
	stop     context.CancelFunc // stop ends the listener; nil if none is running
	closed   bool
	running  sync.WaitGroup
}

// NewHub returns a hub with a listener.
func NewHub(listen func(ctx context.Context)) *Hub {
	return &Hub{listen: listen, watchers: map[chan struct{}]struct{}{}}
}

// Add returns a channel that receives values until the context ends or the hub is closed.
func (h *Hub) Add(ctx context.Context) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || ctx.Err() != nil {
		close(ch)
		return ch
	}
	h.watchers[ch] = struct{}{}
	if h.stop == nil {
		// The listener serves all watchers, so it ends after the last of them.
		listening, stop := context.WithCancel(context.WithoutCancel(ctx))
		h.stop = stop
		h.running.Go(func() { h.listen(listening) })
	}
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.removeWatcher(ch)
	})
	return ch
}

// removeWatcher ends a watch. The caller holds the mutex.
func (h *Hub) removeWatcher(ch chan struct{}) {
	if _, there := h.watchers[ch]; !there {
		return
	}
	delete(h.watchers, ch)
	close(ch)
	if len(h.watchers) == 0 {
		h.stop()
		h.stop = nil
	}
}

// NotifyAll sends a value to every watcher that has none pending.
func (h *Hub) NotifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.watchers {
		select {
		case ch <- struct{}{}:
		default:
		}
	}
}

// Close ends all watches and waits for the end of the listener.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	for ch := range h.watchers {
		h.removeWatcher(ch)
	}
	h.mu.Unlock()
	h.running.Wait()
}
