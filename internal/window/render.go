package window

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/jsontext"
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

// value appends n, of which something is kept. The note is put at its end, unless it
// is empty.
func (r *renderer) value(out []byte, n *node, note string) []byte {
	if note == "" && r.kept(n) == n.count {
		return append(out, n.raw...)
	}
	switch n.kind {
	case textNode:
		return r.text(out, n, note)
	case arrayNode:
		return r.array(out, n, note)
	case objectNode:
		return r.object(out, n, note)
	case tableNode:
		return r.table(out, n, note)
	default:
		return append(out, n.raw...)
	}
}

// text joins the kept parts. A log's line that stands for others says how many.
func (r *renderer) text(out []byte, n *node, note string) []byte {
	var more map[int]int
	for i := range n.spans {
		if at := n.first + i; !r.keep[at] && r.pieces[at].leader != at && r.keep[r.pieces[at].leader] {
			if more == nil {
				more = make(map[int]int)
			}
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
	return jsontext.AppendString(out, text)
}

func (r *renderer) array(out []byte, n *node, note string) []byte {
	out = append(out, '[')
	left, from := 0, len(out)
	for _, child := range n.children {
		if r.kept(child) == 0 {
			left++
			continue
		}
		out = r.value(separated(out, from), child, "")
	}
	if note != "" {
		out = jsontext.AppendString(separated(out, from), note)
	} else if left > 0 {
		out = jsontext.AppendString(separated(out, from), gap+" "+strconv.Itoa(left)+" more")
	}
	return append(out, ']')
}

func (r *renderer) object(out []byte, n *node, note string) []byte {
	out = append(out, '{')
	left, from := 0, len(out)
	for _, child := range n.children {
		if r.kept(child) == 0 {
			left++
			continue
		}
		out = r.value(appendKey(out, from, child.key), child, "")
	}
	if note != "" {
		out = jsontext.AppendString(appendKey(out, from, r.gapKey(n)), note)
	} else if left > 0 {
		out = jsontext.AppendString(appendKey(out, from, r.gapKey(n)), strconv.Itoa(left)+" more fields")
	}
	return append(out, '}')
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
func (r *renderer) table(out []byte, n *node, note string) []byte {
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
			if row.children[column].raw != rows[0].children[column].raw {
				return false
			}
		}
		return len(rows) > 1
	}
	var constant, varying []int
	for i := range n.columns {
		if same(i) {
			constant = append(constant, i)
		} else {
			varying = append(varying, i)
		}
	}
	out = append(out, '{')
	start := len(out)
	out = append(appendKey(out, start, "columns"), '[')
	from := len(out)
	for _, i := range varying {
		out = jsontext.AppendString(separated(out, from), n.columns[i])
	}
	out = append(appendKey(append(out, ']'), start, "rows"), '[')
	from = len(out)
	for _, row := range rows {
		out = append(separated(out, from), '[')
		cells := len(out)
		for _, i := range varying {
			out = append(separated(out, cells), row.children[i].raw...)
		}
		out = append(out, ']')
	}
	out = append(out, ']')
	if len(constant) > 0 {
		out = append(appendKey(out, start, "same in all"), '{')
		from = len(out)
		for _, i := range constant {
			out = append(appendKey(out, from, n.columns[i]), rows[0].children[i].raw...)
		}
		out = append(out, '}')
	}
	if note != "" {
		out = jsontext.AppendString(appendKey(out, start, gap), note)
	}
	return append(out, '}')
}

// separated puts a comma behind what there is since from.
func separated(out []byte, from int) []byte {
	if len(out) > from {
		out = append(out, ',')
	}
	return out
}

// appendKey begins a member of an object whose members begin at from.
func appendKey(out []byte, from int, key string) []byte {
	return append(jsontext.AppendString(separated(out, from), key), ':')
}
