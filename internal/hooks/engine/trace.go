package engine

import (
	"slices"
	"sync"
)

// trace collects what the nodes of one request do.
type trace struct {
	mu    sync.Mutex
	nodes []NodeTrace
	// pending counts what still runs; done is closed when nothing does.
	pending int
	done    chan struct{}
}

// newTrace makes the trace of a request, which is itself pending until end.
func newTrace() *trace { return &trace{pending: 1, done: make(chan struct{})} }

// begin adds a node and gives its place.
func (t *trace) begin(n NodeTrace) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Console == nil {
		n.Console = []Line{}
	}
	if n.Pending {
		t.pending++
	}
	t.nodes = append(t.nodes, n)
	return len(t.nodes) - 1
}

// set replaces what is known of a node.
func (t *trace) set(i int, n NodeTrace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Console == nil {
		n.Console = []Line{}
	}
	was := t.nodes[i].Pending
	t.nodes[i] = n
	if was && !n.Pending {
		t.finish()
	}
}

// end says that the request itself is over.
func (t *trace) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.finish()
}

// finish counts one that is over; mu is held.
func (t *trace) finish() {
	if t.pending--; t.pending == 0 {
		close(t.done)
	}
}

func (t *trace) settled() <-chan struct{} { return t.done }

// snapshot is a copy of what is known now.
func (t *trace) snapshot() []NodeTrace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.nodes)
}
