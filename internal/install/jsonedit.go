package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/jsontext"
)

// field is a member of an object to write; its value is a string, a []string, a
// []field or JSON.
type field struct {
	key string
	val any
}

// jsonDoc is a parsed document and the style that its author writes in.
type jsonDoc struct {
	src     []byte
	root    *jsonNode
	newline string
	unit    string // one step of indentation
	colon   string
}

func readJSON(src []byte) (*jsonDoc, error) {
	root, _, err := parseJSONC(src)
	if err != nil {
		return nil, err
	}
	d := &jsonDoc{src: src, root: root, newline: "\n", unit: "  ", colon: ": "}
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		d.newline = "\r\n"
	}
	if root == nil {
		return d, nil
	}
	if root.kind != '{' {
		line, column := position(src, root.start)
		return nil, &syntaxError{line, column, "the document is not an object"}
	}
	if len(root.members) > 0 {
		first := root.members[0]
		if d.multiline(root) {
			if indent := d.indentBefore(first.keyStart); indent != "" {
				d.unit = indent
			}
		} else if src[first.val.start-1] == ':' {
			d.colon = ":"
		}
	}
	return d, nil
}

// edit replaces src[start:end] by text.
type edit struct {
	start, end int
	text       string
}

// apply applies edits that are in order and do not overlap.
func apply(src []byte, edits ...edit) []byte {
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		out.Write(src[at:e.start])
		out.WriteString(e.text)
		at = e.end
	}
	out.Write(src[at:])
	return out.Bytes()
}

// multiline says whether the members of an object stand on lines of their own.
func (d *jsonDoc) multiline(n *jsonNode) bool {
	if len(n.members) > 0 {
		return bytes.IndexByte(d.src[n.start:n.members[0].keyStart], '\n') >= 0
	}
	return bytes.IndexByte(d.src[n.start:n.end], '\n') >= 0 ||
		n == d.root || len(d.root.members) == 0 || d.multiline(d.root)
}

// indentBefore is the white space between the start of the line and pos; "" if
// there is anything else.
func (d *jsonDoc) indentBefore(pos int) string {
	line := d.src[bytes.LastIndexByte(d.src[:pos], '\n')+1 : pos]
	if len(bytes.Trim(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}

// lineIndent is the white space at the start of the line of pos.
func (d *jsonDoc) lineIndent(pos int) string {
	line := bytes.TrimPrefix(d.src[bytes.LastIndexByte(d.src[:pos], '\n')+1:pos], bom)
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// trivia gives the end of the last comment between pos and the next token, or
// pos if there is none, and whether it is one that its line ends.
func (d *jsonDoc) trivia(pos int) (end int, line bool) {
	end = pos
	for pos < len(d.src) {
		switch d.src[pos] {
		case ' ', '\t', '\r', '\n':
			pos++
			continue
		case '/':
			if next := commentEnd(d.src, pos); next > 0 {
				line = d.src[pos+1] == '/'
				pos, end = next, next
				continue
			}
		}
		break
	}
	return end, line
}

// set gives the document with val at the path of keys: replaced, or added with
// the objects that lead to it.
func (d *jsonDoc) set(path []string, val any) ([]byte, error) {
	if d.root == nil {
		return d.create(nest(path, val)), nil
	}
	n := d.root
	for i, key := range path {
		if n.twice(key) {
			return nil, fmt.Errorf("%q is there twice", key)
		}
		next := n.member(key)
		if next == nil {
			rest := nest(path[i:], val)
			return d.insert(n, rest[0]), nil
		}
		if i < len(path)-1 && next.kind != '{' {
			line, column := position(d.src, next.start)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is not an object", key)}
		}
		n = next
	}
	text := d.render(val, d.multiline(d.root), d.lineIndent(n.start))
	return apply(d.src, edit{n.start, n.end, text}), nil
}

// nest wraps val in an object for each key of the path.
func nest(path []string, val any) []field {
	for i := len(path) - 1; i > 0; i-- {
		val = []field{{path[i], val}}
	}
	return []field{{path[0], val}}
}

// create writes the document into a file that has no value.
func (d *jsonDoc) create(fields []field) []byte {
	text := d.render(fields, true, "") + d.newline
	rest := bytes.TrimRight(d.src, " \t\r\n")
	if len(rest) > 0 && !bytes.Equal(rest, bom) {
		text = d.newline + text
	}
	return append(bytes.Clone(rest), text...)
}

// insert adds a member at the end of an object.
func (d *jsonDoc) insert(n *jsonNode, f field) []byte {
	multi, outer := d.multiline(n), d.lineIndent(n.start)
	indent := outer + d.unit
	last, first := n.start+1, len(n.members) == 0
	comma := -1
	if !first {
		tail := n.members[len(n.members)-1]
		if last, comma = tail.val.end, tail.comma; comma >= 0 {
			last = comma + 1
		}
		if multi {
			indent = d.lineIndent(n.members[0].keyStart)
		}
	}
	at, lineComment := d.trivia(last)
	lead := ""
	switch {
	case multi || lineComment:
		lead = d.newline + indent
	case !first && d.colon != ":", at > last:
		lead = " "
	}
	text := lead + quote(f.key) + d.colon + d.render(f.val, multi, indent)
	switch {
	case first:
		if multi && bytes.IndexByte(d.src[at:n.end], '\n') < 0 {
			return apply(d.src, edit{at, n.end - 1, text + d.newline + outer})
		}
		return apply(d.src, edit{at, at, text})
	case comma >= 0:
		return apply(d.src, edit{at, at, text + ","})
	default:
		return apply(d.src, edit{last, last, ","}, edit{at, at, text})
	}
}

// remove gives the document without a member; it is what insert undoes.
func (d *jsonDoc) remove(n *jsonNode, key string) []byte {
	i := 0
	for i < len(n.members) && n.members[i].key != key {
		i++
	}
	if i == len(n.members) {
		return d.src
	}
	m, edits := n.members[i], []edit(nil)
	before := n.start + 1
	if i > 0 {
		before = n.members[i-1].comma + 1
		if m.comma < 0 {
			edits = append(edits, edit{before - 1, before, ""})
		}
	}
	start, lineComment := d.trivia(before)
	end := m.val.end
	if m.comma == end {
		end++
	}
	if lineComment && end < len(d.src) && d.src[end] != '\n' && d.src[end] != '\r' {
		start = m.keyStart // what follows must not join the comment
	}
	edits = append(edits, edit{start, end, ""})
	if m.comma > m.val.end {
		edits = append(edits, edit{m.comma, m.comma + 1, ""})
	}
	return apply(d.src, edits...)
}

// bare says whether there is nothing in an object, not even a comment.
func (d *jsonDoc) bare(n *jsonNode) bool {
	return n.kind == '{' && len(bytes.TrimSpace(d.src[n.start+1:n.end-1])) == 0
}

// emptyAs gives an object without members the white space that it had before.
func (d *jsonDoc) emptyAs(n *jsonNode, h *jsonDoc, was *jsonNode) []byte {
	now, then := d.src[n.start:n.end], h.src[was.start:was.end]
	if len(n.members) > 0 || !bytes.Equal(ink(now), ink(then)) {
		return d.src
	}
	return apply(d.src, edit{n.start, n.end, string(then)})
}

// ink is a text without its white space.
func ink(text []byte) []byte { return bytes.Join(bytes.Fields(text), nil) }

func (d *jsonDoc) render(val any, multi bool, indent string) string {
	sep, lead, tail := ","+strings.TrimPrefix(d.colon, ":"), "", ""
	switch v := val.(type) {
	case json.RawMessage:
		return d.renderJSON(v, multi, indent)
	case string:
		return quote(v)
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quote(s)
		}
		return "[" + strings.Join(parts, sep) + "]"
	case []field:
		if len(v) == 0 {
			return "{}"
		}
		inner := indent
		if multi {
			inner += d.unit
			sep, lead, tail = ","+d.newline+inner, d.newline+inner, d.newline+indent
		}
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = quote(f.key) + d.colon + d.render(f.val, multi, inner)
		}
		return "{" + lead + strings.Join(parts, sep) + tail + "}"
	default:
		return "null"
	}
}

// quote writes a JSON string without the escapes for HTML.
func quote(s string) string { return string(jsontext.AppendString(nil, s)) }
