package doc

import (
	"slices"
	"strconv"

	"github.com/guideway-dev/guideway/internal/jsontext"
)

// Canonical writes the value as RFC 8785 wants it: keys sorted by UTF-16 units,
// numbers as ECMAScript writes them, nothing escaped that need not be. A JSON
// and a YAML text that mean the same have the same canonical form.
func Canonical(n *Node) []byte {
	w := writer{out: make([]byte, 0, 128)}
	w.value(n)
	return w.out
}

// Mark is Canonical, and notes in each node where its value stands in the text,
// so that Source finds it. The nodes' texts and keys become parts of the text
// where they can: then nothing of the document that was read is kept in memory
// by what was taken from the nodes. Only the owner of the tree may call it.
func Mark(n *Node) string {
	size := n.size()
	w := writer{mark: true, out: make([]byte, 0, size+size/16)}
	w.value(n)
	text := string(w.out)
	n.adopt(text)
	return text
}

// Source is the canonical form of n, a part of the text that Mark gave for the
// tree; "" if n is nil.
func (n *Node) Source(text string) string {
	if n == nil {
		return ""
	}
	return text[n.from:n.to]
}

// Span says where in the text that Mark gave the value stands.
func (n *Node) Span() (from, to int) { return int(n.from), int(n.to) }

// size is about the length of the canonical form, without escapes.
func (n *Node) size() int {
	if n == nil {
		return len("null")
	}
	size := len(n.Text) + len(`"",`)
	for _, item := range n.Items {
		size += item.size()
	}
	for i := range n.Members {
		size += len(n.Members[i].Key) + len(`"":`) + n.Members[i].Value.size()
	}
	return size
}

// adopt makes the texts and keys below n parts of the canonical text. One that
// is escaped there keeps memory of its own.
func (n *Node) adopt(text string) {
	if n == nil {
		return
	}
	if n.Kind == String && int(n.to-n.from) == len(n.Text)+2 {
		n.Text = text[n.from+1 : n.to-1]
	}
	for _, item := range n.Items {
		item.adopt(text)
	}
	for i := range n.Members {
		m := &n.Members[i]
		if end := int(m.from) + 1 + len(m.Key); text[end] == '"' && text[m.from+1:end] == m.Key {
			m.Key = text[m.from+1 : end]
		}
		m.Value.adopt(text)
	}
}

// writer writes the canonical form.
type writer struct {
	out []byte
	// mark says that the nodes are told where they stand.
	mark bool
}

// value writes one value.
func (w *writer) value(n *Node) {
	if n == nil {
		w.out = append(w.out, "null"...)
		return
	}
	from := len(w.out)
	switch n.Kind {
	case Bool:
		w.out = strconv.AppendBool(w.out, n.Flag)
	case Number:
		w.out = jsontext.AppendNumber(w.out, n.Num)
	case String:
		w.out = jsontext.AppendString(w.out, n.Text)
	case Array:
		w.out = append(w.out, '[')
		for i, item := range n.Items {
			if i > 0 {
				w.out = append(w.out, ',')
			}
			w.value(item)
		}
		w.out = append(w.out, ']')
	case Object:
		w.object(n)
	default:
		w.out = append(w.out, "null"...)
	}
	if w.mark {
		n.from, n.to = int32(from), int32(len(w.out))
	}
}

// object writes an object's members in the order of their keys.
func (w *writer) object(n *Node) {
	var few [16]*Member
	members := few[:0]
	for i := range n.Members {
		members = append(members, &n.Members[i])
	}
	slices.SortFunc(members, func(a, b *Member) int { return compareUTF16(a.Key, b.Key) })
	w.out = append(w.out, '{')
	for i, m := range members {
		if i > 0 {
			w.out = append(w.out, ',')
		}
		if w.mark {
			m.from = int32(len(w.out))
		}
		w.out = jsontext.AppendString(w.out, m.Key)
		w.out = append(w.out, ':')
		w.value(m.Value)
	}
	w.out = append(w.out, '}')
}

// compareUTF16 orders valid UTF-8 by its UTF-16 code units. That differs from the
// order of bytes only above U+FFFF, whose surrogates come before U+E000: the
// former begin with the bytes from 0xf0 on, the latter with 0xee and 0xef.
func compareUTF16(a, b string) int {
	for i := range min(len(a), len(b)) {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		if x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0) {
			return int(y) - int(x)
		}
		return int(x) - int(y)
	}
	return len(a) - len(b)
}
