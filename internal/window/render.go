package window

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// gap stands where something was left out inside of a value, and is the key of
// the note in an object.
const gap = "…"

// renderer writes a tree with the pieces that are kept.
type renderer struct {
	pieces []piece
	keep   []bool
}

// kept counts the pieces of n that are kept.
func (r *renderer) kept(n *node) int {
	count := 0
	for _, keep := range r.keep[n.first : n.first+n.count] {
		if keep {
			count++
		}
	}
	return count
}

// value writes n; nil if nothing of it is kept. The note is put at its end,
// unless it is empty.
func (r *renderer) value(n *node, note string) []byte {
	kept := r.kept(n)
	if kept == 0 {
		return nil
	}
	if kept == n.count && note == "" {
		return n.raw
	}
	switch n.kind {
	case textNode:
		return r.text(n, note)
	case arrayNode:
		return r.array(n, note)
	case objectNode:
		return r.object(n, note)
	case tableNode:
		return r.table(n, note)
	default:
		return n.raw
	}
}

// text joins the kept parts. A log's line that stands for others says how many.
func (r *renderer) text(n *node, note string) []byte {
	more := make(map[int]int)
	for i := range n.spans {
		if at := n.first + i; !r.keep[at] && r.pieces[at].leader != at && r.keep[r.pieces[at].leader] {
			more[r.pieces[at].leader]++
		}
	}
	var b strings.Builder
	open := false
	for i, s := range n.spans {
		at := n.first + i
		if !r.keep[at] {
			if r.pieces[at].leader == at || !r.keep[r.pieces[at].leader] {
				open = true
			}
			continue
		}
		if open {
			b.WriteString(gap)
			b.WriteByte(' ')
			open = false
		}
		part := n.text[s.from:s.to]
		if count := more[at]; count > 0 {
			body := strings.TrimRight(part, "\n")
			fmt.Fprintf(&b, "%s (%d more like it)%s", body, count, part[len(body):])
			continue
		}
		b.WriteString(part)
	}
	text := b.String()
	if open || note != "" {
		text = strings.TrimRight(text, " \n") + "\n"
	}
	switch {
	case note != "":
		text += note
	case open:
		text += gap
	}
	return quote(text)
}

func (r *renderer) array(n *node, note string) []byte {
	var parts [][]byte
	for _, child := range n.children {
		if part := r.value(child, ""); part != nil {
			parts = append(parts, part)
		}
	}
	if left := len(n.children) - len(parts); note != "" {
		parts = append(parts, quote(note))
	} else if left > 0 {
		parts = append(parts, quote(fmt.Sprintf("%s %d more", gap, left)))
	}
	return slices.Concat([]byte("["), bytes.Join(parts, []byte(",")), []byte("]"))
}

func (r *renderer) object(n *node, note string) []byte {
	var out []byte
	left := 0
	for _, child := range n.children {
		part := r.value(child, "")
		if part == nil {
			left++
			continue
		}
		out = appendField(out, child.key, part)
	}
	if note != "" {
		out = appendField(out, r.gapKey(n), quote(note))
	} else if left > 0 {
		out = appendField(out, r.gapKey(n), quote(fmt.Sprintf("%d more fields", left)))
	}
	return slices.Concat([]byte("{"), out, []byte("}"))
}

// gapKey is a key that the object does not have itself.
func (r *renderer) gapKey(n *node) string {
	key := gap
	for slices.ContainsFunc(n.children, func(child *node) bool { return child.key == key }) {
		key += gap
	}
	return key
}

// table writes the kept rows below one row of column names; what is the same in
// all of them is said once.
func (r *renderer) table(n *node, note string) []byte {
	var rows []*node
	for _, child := range n.children {
		if r.keep[child.first] {
			rows = append(rows, child)
		}
	}
	left := len(n.children) - len(rows)
	if note == "" && left > 0 {
		note = fmt.Sprintf("%s %d more rows", gap, left)
	}
	same := func(column int) bool {
		for _, row := range rows[1:] {
			if !bytes.Equal(row.children[column].raw, rows[0].children[column].raw) {
				return false
			}
		}
		return len(rows) > 1
	}
	var columns, constants []byte
	var varying []int
	for i, name := range n.columns {
		if same(i) {
			constants = appendField(constants, name, rows[0].children[i].raw)
			continue
		}
		varying = append(varying, i)
		columns = appendElement(columns, quote(name))
	}
	var lines []byte
	for _, row := range rows {
		var cells []byte
		for _, i := range varying {
			cells = appendElement(cells, row.children[i].raw)
		}
		lines = appendElement(lines, slices.Concat([]byte("["), cells, []byte("]")))
	}
	var out []byte
	out = appendField(out, "columns", slices.Concat([]byte("["), columns, []byte("]")))
	out = appendField(out, "rows", slices.Concat([]byte("["), lines, []byte("]")))
	if len(constants) > 0 {
		out = appendField(out, "same in all", slices.Concat([]byte("{"), constants, []byte("}")))
	}
	if note != "" {
		out = appendField(out, gap, quote(note))
	}
	return slices.Concat([]byte("{"), out, []byte("}"))
}

func appendField(out []byte, key string, value []byte) []byte {
	if len(out) > 0 {
		out = append(out, ',')
	}
	out = append(out, quote(key)...)
	out = append(out, ':')
	return append(out, value...)
}

func appendElement(out, value []byte) []byte {
	if len(out) > 0 {
		out = append(out, ',')
	}
	return append(out, value...)
}

// quote writes a text as JSON, without escaping what HTML would want escaped.
func quote(text string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(text) != nil {
		return []byte(`""`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}
