package engine

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// The bounds of what a trace keeps of changes.
const (
	maxChanges     = 50
	maxChangeBytes = 1_000
)

// Change is one difference that a hook made, as a step of a JSON patch.
type Change struct {
	// Op is add, remove or replace.
	Op string `json:"op"`
	// Pointer is the RFC 6901 JSON pointer into the context:
	// /request/params/arguments/path.
	Pointer string `json:"pointer"`
	// Before and After are the values; one that is long is a text that is cut.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
}

// changes collects differences, the first of them.
type changes struct{ list []Change }

func (c *changes) add(op string, at doc.Pointer, before, after *tree) {
	if len(c.list) < maxChanges {
		c.list = append(c.list, Change{Op: op, Pointer: string(at), Before: shown(before), After: shown(after)})
	}
}

// shown is a value as a trace keeps it.
func shown(t *tree) json.RawMessage {
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
		return nil // a text always has a JSON form
	}
	return text
}

// merge gives a value as a script left it, with the bytes of the value before
// wherever the script has changed nothing: numbers that a script cannot hold, and
// the spelling of texts, go on as they came.
func (c *changes) merge(at doc.Pointer, before, after *tree) (merged []byte, same bool) {
	switch {
	case before.kind != after.kind:
	case before.kind == '{':
		return c.object(at, before, after)
	case before.kind == '[':
		return c.array(at, before, after)
	case before.text == after.text && before.num == after.num && before.flag == after.flag:
		return before.raw, true
	}
	c.add("replace", at, before, after)
	return after.raw, false
}

func (c *changes) object(at doc.Pointer, before, after *tree) ([]byte, bool) {
	out, same := []byte{'{'}, true
	put := func(key string, raw []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		name, err := json.Marshal(key)
		if err != nil {
			name = []byte(`""`) // a text always has a JSON form
		}
		out = append(append(append(out, name...), ':'), raw...)
	}
	for i, key := range before.keys {
		to := after.get(key)
		if to == nil {
			c.add("remove", at.Key(key), before.kids[i], nil)
			same = false
			continue
		}
		raw, alike := c.merge(at.Key(key), before.kids[i], to)
		same = same && alike
		put(key, raw)
	}
	for i, key := range after.keys {
		if before.get(key) == nil {
			c.add("add", at.Key(key), nil, after.kids[i])
			same = false
			put(key, after.kids[i].raw)
		}
	}
	if same {
		return before.raw, true
	}
	return append(out, '}'), false
}

func (c *changes) array(at doc.Pointer, before, after *tree) ([]byte, bool) {
	// What is alike at the end stays alike where something before it came or
	// went.
	tail := 0
	if len(before.kids) != len(after.kids) {
		for tail < min(len(before.kids), len(after.kids)) && alike(before.kids[len(before.kids)-1-tail], after.kids[len(after.kids)-1-tail]) {
			tail++
		}
	}
	same := len(before.kids) == len(after.kids)
	parts := make([][]byte, 0, len(after.kids))
	for i := range max(len(before.kids), len(after.kids)) - tail {
		switch {
		case i >= len(after.kids)-tail:
			c.add("remove", at.Index(i), before.kids[i], nil)
		case i >= len(before.kids)-tail:
			c.add("add", at.Index(i), nil, after.kids[i])
			parts = append(parts, after.kids[i].raw)
		default:
			raw, alike := c.merge(at.Index(i), before.kids[i], after.kids[i])
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

// alike says whether two values are the same to a script.
func alike(a, b *tree) bool {
	_, same := (&changes{list: make([]Change, maxChanges)}).merge("", a, b)
	return same
}
