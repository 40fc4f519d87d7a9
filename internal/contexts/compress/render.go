package compress

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// gapMark marks an omission inside a value. In an object it is the key of the note.
const gapMark = "…"

// longLine is the length from which PlainText writes a list or an object on several lines.
const longLine = 200

// PlainText returns a JSON value as lines for reading: a string as its text, a long list or
// object with a heading before each of its values, and other values as they are.
func PlainText(raw string) string {
	if text, ok := unquoteText(raw); ok {
		return text
	}
	if len(raw) < longLine {
		return raw
	}
	var b strings.Builder
	writePart := func(heading, value string) {
		separator := " "
		if len(value) >= longLine && value[0] != '"' {
			separator = "\n"
		}
		b.WriteString(heading + ":" + separator + strings.TrimSuffix(PlainText(value), "\n") + "\n")
	}
	if fields, ok := readObject(raw); ok {
		for _, f := range fields {
			writePart(f.key, f.value)
		}
	} else if elements, ok := readArray(raw); ok {
		for i, element := range elements {
			writePart("["+strconv.Itoa(i)+"]", element)
		}
	} else {
		return raw
	}
	return b.String()
}

// renderer renders a tree with the kept pieces.
type renderer struct {
	pieces []piece
	keep   []bool
}

// countKept returns the number of kept pieces of n.
func (r *renderer) countKept(n *node) int {
	count := 0
	for _, keep := range r.keep[n.first : n.first+n.count] {
		if keep {
			count++
		}
	}
	return count
}

// appendValue appends n, of which at least one piece is kept, and the note unless it is empty.
func (r *renderer) appendValue(out []byte, n *node, note string) []byte {
	if note == "" && r.countKept(n) == n.count {
		return append(out, n.raw...)
	}
	switch n.kind {
	case textNode:
		return r.appendText(out, n, note)
	case arrayNode:
		return r.appendArray(out, n, note)
	case objectNode:
		return r.appendObject(out, n, note)
	case tableNode:
		return r.appendTable(out, n, note)
	default:
		return append(out, n.raw...)
	}
}

// appendText appends the kept parts. A log line includes the number of omitted lines with the
// same message.
func (r *renderer) appendText(out []byte, n *node, note string) []byte {
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
			b.WriteString(gapMark)
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
		text += gapMark
	}
	return jsontext.AppendString(out, text)
}

func (r *renderer) appendArray(out []byte, n *node, note string) []byte {
	out = append(out, '[')
	left, from := 0, len(out)
	for _, child := range n.children {
		if r.countKept(child) == 0 {
			left++
			continue
		}
		out = r.appendValue(appendComma(out, from), child, "")
	}
	if note != "" {
		out = jsontext.AppendString(appendComma(out, from), note)
	} else if left > 0 {
		out = jsontext.AppendString(appendComma(out, from), gapMark+" "+strconv.Itoa(left)+" more")
	}
	return append(out, ']')
}

func (r *renderer) appendObject(out []byte, n *node, note string) []byte {
	out = append(out, '{')
	left, from := 0, len(out)
	for _, child := range n.children {
		if child.count > 0 && r.countKept(child) == 0 {
			left++
			continue
		}
		out = r.appendValue(appendKey(out, from, child.key), child, "")
	}
	if note != "" {
		out = jsontext.AppendString(appendKey(out, from, r.gapKey(n)), note)
	} else if left > 0 {
		out = jsontext.AppendString(appendKey(out, from, r.gapKey(n)), countFields(left))
	}
	return append(out, '}')
}

// countFields returns the text for fields that are left out.
func countFields(n int) string {
	if n == 1 {
		return "1 more field"
	}
	return strconv.Itoa(n) + " more fields"
}

// gapKey returns a key that the object does not contain.
func (r *renderer) gapKey(n *node) string {
	key := gapMark
	for slices.ContainsFunc(n.children, func(child *node) bool { return child.key == key }) {
		key += gapMark
	}
	return key
}

// appendTable appends one row of column names and the kept rows. Values that are equal in all
// rows are written once.
func (r *renderer) appendTable(out []byte, n *node, note string) []byte {
	rows := lists.Filter(n.children, func(child *node) bool { return r.keep[child.first] })
	left := len(n.children) - len(rows)
	if note == "" && left > 0 {
		note = fmt.Sprintf("%s %d more rows", gapMark, left)
		if left == 1 {
			note = gapMark + " 1 more row"
		}
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
		out = jsontext.AppendString(appendComma(out, from), n.columns[i])
	}
	out = append(appendKey(append(out, ']'), start, "rows"), '[')
	from = len(out)
	for _, row := range rows {
		out = append(appendComma(out, from), '[')
		cells := len(out)
		for _, i := range varying {
			out = append(appendComma(out, cells), row.children[i].raw...)
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
		out = jsontext.AppendString(appendKey(out, start, gapMark), note)
	}
	return append(out, '}')
}

// appendComma appends a comma if anything was written since from.
func appendComma(out []byte, from int) []byte {
	if len(out) > from {
		out = append(out, ',')
	}
	return out
}

// appendKey appends the key of a member of the object whose members begin at from.
func appendKey(out []byte, from int, key string) []byte {
	return append(jsontext.AppendString(appendComma(out, from), key), ':')
}
