package engine

import (
	"slices"
	"sync"
)

// trace collects the traces of the nodes of one request.
type trace struct {
	mu    sync.Mutex
	nodes []NodeTrace
	// pending counts the request and its running fire-and-forget hooks; done is closed when
	// it reaches zero.
	pending int
	done    chan struct{}
}

// newTrace returns the trace of a request, which is pending until endRequest.
func newTrace() *trace { return &trace{pending: 1, done: make(chan struct{})} }

// addNode adds a node and returns its index.
func (t *trace) addNode(n NodeTrace) int {
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

// addFirst adds a node that failed for a message of the call, unless the trace has it: an
// upstream may send any number of messages.
func (t *trace) addFirst(n NodeTrace) {
	t.mu.Lock()
	known := slices.ContainsFunc(t.nodes, func(other NodeTrace) bool { return other.ID == n.ID })
	t.mu.Unlock()
	if !known {
		t.addNode(n)
	}
}

// setNode replaces the trace of a node.
func (t *trace) setNode(i int, n NodeTrace) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n.Console == nil {
		n.Console = []Line{}
	}
	was := t.nodes[i].Pending
	t.nodes[i] = n
	if was && !n.Pending {
		t.countDown()
	}
}

// endRequest marks the request as ended.
func (t *trace) endRequest() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.countDown()
}

// countDown decrements pending. The caller holds mu.
func (t *trace) countDown() {
	if t.pending--; t.pending == 0 {
		close(t.done)
	}
}

func (t *trace) settledDone() <-chan struct{} { return t.done }

// copyNodes returns a copy of the current traces.
func (t *trace) copyNodes() []NodeTrace {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.nodes)
}
