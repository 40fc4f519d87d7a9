package engine

import (
	"encoding/json"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Limits of the changes in a trace.
const (
	maxChanges     = 50
	maxChangeBytes = 1_000
)

// Change is one change by a hook, as an operation of a JSON patch.
type Change struct {
	// Op is add, remove or replace.
	Op string `json:"op"`
	// Pointer is the JSON pointer (RFC 6901) into the context:
	// /request/params/arguments/path.
	Pointer string `json:"pointer"`
	// Before and After are the values. A value longer than maxChangeBytes is a string with
	// the beginning of its JSON.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// changes collects the first changes of a hook, up to a limit.
type changes struct{ list []Change }

func (c *changes) addChange(op string, at doc.Pointer, before, after *tree) {
	if len(c.list) < maxChanges {
		c.list = append(c.list, Change{Op: op, Pointer: string(at), Before: traceValue(before), After: traceValue(after)})
	}
}

// traceValue returns a value as JSON for a trace. For a value of more than maxChangeBytes,
// it returns a string with the beginning of the value's JSON.
func traceValue(t *tree) json.RawMessage {
	if t == nil {
		return nil
	}
	if len(t.raw) <= maxChangeBytes {
		return json.RawMessage(t.raw)
	}
	cut := t.raw[:maxChangeBytes]
	for len(cut) > 0 && !utf8.Valid(cut) {
		cut = cut[:len(cut)-1]
	}
	text, err := json.Marshal(string(cut) + "…")
	if err != nil {
		return nil // a string always has a JSON form
	}
	return text
}

// mergeValue returns a value as a script left it. Unchanged parts keep the bytes of the
// value before: numbers beyond a script's precision and the encoding of strings do not
// change.
func (c *changes) mergeValue(at doc.Pointer, before, after *tree) (merged []byte, same bool) {
	switch {
	case before.kind != after.kind:
	case before.kind == '{':
		return c.mergeObject(at, before, after)
	case before.kind == '[':
		return c.mergeList(at, before, after)
	case before.text == after.text && before.num == after.num && before.flag == after.flag:
		return before.raw, true
	}
	c.addChange("replace", at, before, after)
	return after.raw, false
}

func (c *changes) mergeObject(at doc.Pointer, before, after *tree) ([]byte, bool) {
	out, same := []byte{'{'}, true
	put := func(key string, raw []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			name = []byte(`""`) // a string always has a JSON form
		}
		out = append(append(append(out, name...), ':'), raw...)
	}
	for i, key := range before.keys {
		to := after.valueOf(key)
		if to == nil {
			c.addChange("remove", at.Key(key), before.kids[i], nil)
			same = false
			continue
		}
		raw, alike := c.mergeValue(at.Key(key), before.kids[i], to)
		same = same && alike
		put(key, raw)
	}
	for i, key := range after.keys {
		if before.valueOf(key) == nil {
			c.addChange("add", at.Key(key), nil, after.kids[i])
			same = false
			put(key, after.kids[i].raw)
		}
	}
	if same {
		return before.raw, true
	}
	return append(out, '}'), false
}

func (c *changes) mergeList(at doc.Pointer, before, after *tree) ([]byte, bool) {
	// Equal elements at the end are kept if elements before them were added or removed.
	tail := 0
	if len(before.kids) != len(after.kids) {
		for tail < min(len(before.kids), len(after.kids)) && isEqual(before.kids[len(before.kids)-1-tail], after.kids[len(after.kids)-1-tail]) {
			tail++
		}
	}
	same := len(before.kids) == len(after.kids)
	parts := make([][]byte, 0, len(after.kids))
	for i := range max(len(before.kids), len(after.kids)) - tail {
		switch {
		case i >= len(after.kids)-tail:
			c.addChange("remove", at.Index(i), before.kids[i], nil)
		case i >= len(before.kids)-tail:
			c.addChange("add", at.Index(i), nil, after.kids[i])
			parts = append(parts, after.kids[i].raw)
		default:
			raw, alike := c.mergeValue(at.Index(i), before.kids[i], after.kids[i])
			same = same && alike
			parts = append(parts, raw)
		}
	}
	for i := range tail {
		parts = append(parts, before.kids[len(before.kids)-tail+i].raw)
	}
	if same {
		return before.raw, true
	}
	out := []byte{'['}
	for i, part := range parts {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, part...)
	}
	return append(out, ']'), false
}

// isEqual reports whether a script cannot distinguish two values.
func isEqual(a, b *tree) bool {
	_, same := (&changes{list: make([]Change, maxChanges)}).mergeValue("", a, b)
	return same
}

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
