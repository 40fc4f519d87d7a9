package doc

import (
	"slices"
	"strconv"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// Canonical returns the RFC 8785 form of the value: keys sorted by UTF-16 units, numbers as
// in ECMAScript, minimal escapes. Equivalent JSON and YAML texts have the same canonical
// form.
func Canonical(n *Node) []byte {
	w := canonicalWriter{out: make([]byte, 0, 128)}
	w.writeValue(n)
	return w.out
}

// Mark returns the canonical form and records the range of each value in its node, for
// Source. The texts and keys of the nodes become substrings of the canonical text if
// possible, so that values taken from the nodes do not keep the original document in
// memory. Mark changes the nodes, so no other goroutine may use the tree during the call.
func Mark(n *Node) string {
	size := n.estimateSize()
	w := canonicalWriter{mark: true, out: make([]byte, 0, size+size/16)}
	w.writeValue(n)
	text := string(w.out)
	n.shareText(text)
	return text
}

// Source returns the canonical form of n, a substring of the text that Mark returned for
// the tree; "" if n is nil.
func (n *Node) Source(text string) string {
	if n == nil {
		return ""
	}
	return text[n.from:n.to]
}

// Span returns the range of the value in the text that Mark returned.
func (n *Node) Span() (from, to int) { return int(n.from), int(n.to) }

// estimateSize returns the approximate length of the canonical form, without escapes.
func (n *Node) estimateSize() int {
	if n == nil {
		return len("null")
	}
	size := len(n.Text) + len(`"",`)
	for _, item := range n.Items {
		size += item.estimateSize()
	}
	for i := range n.Members {
		size += len(n.Members[i].Key) + len(`"":`) + n.Members[i].Value.estimateSize()
	}
	return size
}

// shareText replaces the texts and keys below n with substrings of the canonical text.
// Escaped texts keep their own memory.
func (n *Node) shareText(text string) {
	if n == nil {
		return
	}
	if n.Kind == String && int(n.to-n.from) == len(n.Text)+2 {
		n.Text = text[n.from+1 : n.to-1]
	}
	for _, item := range n.Items {
		item.shareText(text)
	}
	for i := range n.Members {
		m := &n.Members[i]
		if end := int(m.from) + 1 + len(m.Key); text[end] == '"' && text[m.from+1:end] == m.Key {
			m.Key = text[m.from+1 : end]
		}
		m.Value.shareText(text)
	}
}

// canonicalWriter writes the canonical form.
type canonicalWriter struct {
	out []byte
	// mark is set if the ranges are recorded in the nodes.
	mark bool
}

// writeValue writes one value.
func (w *canonicalWriter) writeValue(n *Node) {
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
			w.writeValue(item)
		}
		w.out = append(w.out, ']')
	case Object:
		w.writeObject(n)
	default:
		w.out = append(w.out, "null"...)
	}
	if w.mark {
		n.from, n.to = int32(from), int32(len(w.out))
	}
}

// writeObject writes an object's members in the order of their keys.
func (w *canonicalWriter) writeObject(n *Node) {
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
		w.writeValue(m.Value)
	}
	w.out = append(w.out, '}')
}

// compareUTF16 orders valid UTF-8 by its UTF-16 code units. The order differs from the
// order of the bytes only if a character above U+FFFF (first byte 0xf0 or higher) is
// compared with a character from U+E000 to U+FFFF (first byte 0xee or 0xef): in UTF-16 the
// first one comes before the second, because its surrogates are below U+E000.
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
