package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/tailscale/hujson"
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
	root    *hujson.Value
	newline string
	unit    string // one step of indentation
	colon   string
}

func readJSON(src []byte) (*jsonDoc, error) {
	root, err := parseJSONC(src)
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
	if root.Value.Kind() != '{' {
		line, column := position(src, root.StartOffset)
		return nil, &syntaxError{line, column, "the document is not an object"}
	}
	if members := membersOf(root); len(members) > 0 {
		if d.multiline(root) {
			if indent := d.indentBefore(members[0].Name.StartOffset); indent != "" {
				d.unit = indent
			}
		} else if src[members[0].Value.StartOffset-1] == ':' {
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
func (d *jsonDoc) multiline(n *hujson.Value) bool {
	if members := membersOf(n); len(members) > 0 {
		return bytes.IndexByte(d.src[n.StartOffset:members[0].Name.StartOffset], '\n') >= 0
	}
	return bytes.IndexByte(d.src[n.StartOffset:n.EndOffset], '\n') >= 0 ||
		n == d.root || len(membersOf(d.root)) == 0 || d.multiline(d.root)
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
		next, twice := findMember(n, key)
		if twice {
			return nil, fmt.Errorf("%q is there twice", key)
		}
		if next == nil {
			rest := nest(path[i:], val)
			return d.insert(n, rest[0]), nil
		}
		if i < len(path)-1 && next.Value.Kind() != '{' {
			line, column := position(d.src, next.StartOffset)
			return nil, &syntaxError{line, column, fmt.Sprintf("%q is not an object", key)}
		}
		n = next
	}
	text := d.render(val, d.multiline(d.root), d.lineIndent(n.StartOffset))
	return apply(d.src, edit{n.StartOffset, n.EndOffset, text}), nil
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
func (d *jsonDoc) insert(n *hujson.Value, f field) []byte {
	multi, outer := d.multiline(n), d.lineIndent(n.StartOffset)
	indent := outer + d.unit
	members := membersOf(n)
	last, first := n.StartOffset+1, len(members) == 0
	comma := -1
	if !first {
		last, comma = members[len(members)-1].Value.EndOffset, commaAfter(members, len(members)-1)
		if comma >= 0 {
			last = comma + 1
		}
		if multi {
			indent = d.lineIndent(members[0].Name.StartOffset)
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
		if multi && bytes.IndexByte(d.src[at:n.EndOffset], '\n') < 0 {
			return apply(d.src, edit{at, n.EndOffset - 1, text + d.newline + outer})
		}
		return apply(d.src, edit{at, at, text})
	case comma >= 0:
		return apply(d.src, edit{at, at, text + ","})
	default:
		return apply(d.src, edit{last, last, ","}, edit{at, at, text})
	}
}

// remove gives the document without a member; it is what insert undoes.
func (d *jsonDoc) remove(n *hujson.Value, key string) []byte {
	members := membersOf(n)
	i := slices.IndexFunc(members, func(m hujson.ObjectMember) bool { return textOf(&m.Name) == key })
	if i < 0 {
		return d.src
	}
	m, comma, edits := members[i], commaAfter(members, i), []edit(nil)
	before := n.StartOffset + 1
	if i > 0 {
		before = commaAfter(members, i-1) + 1
		if comma < 0 {
			edits = append(edits, edit{before - 1, before, ""})
		}
	}
	start, lineComment := d.trivia(before)
	end := m.Value.EndOffset
	if comma == end {
		end++
	}
	if lineComment && len(newlineAt(d.src, end)) == 0 {
		start = m.Name.StartOffset // the text that follows must not join the comment
	}
	edits = append(edits, edit{start, end, ""})
	if comma > m.Value.EndOffset {
		edits = append(edits, edit{comma, comma + 1, ""})
	}
	return apply(d.src, edits...)
}

// bare says whether there is nothing in an object, not even a comment.
func (d *jsonDoc) bare(n *hujson.Value) bool {
	return n.Value.Kind() == '{' && len(bytes.TrimSpace(d.src[n.StartOffset+1:n.EndOffset-1])) == 0
}

// emptyAs gives an object without members the white space that it had before.
func (d *jsonDoc) emptyAs(n *hujson.Value, h *jsonDoc, was *hujson.Value) []byte {
	now, then := d.src[n.StartOffset:n.EndOffset], h.src[was.StartOffset:was.EndOffset]
	if len(membersOf(n)) > 0 || !bytes.Equal(ink(now), ink(then)) {
		return d.src
	}
	return apply(d.src, edit{n.StartOffset, n.EndOffset, string(then)})
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
