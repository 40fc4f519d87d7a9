package install

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/tailscale/hujson"
)

// field is a member of an object to write. Its value is a string, a bool, a []string, a
// []any, a []field or JSON.
type field struct {
	key string
	val any
}

// jsonDoc is a parsed document and its style.
type jsonDoc struct {
	src     []byte
	root    *hujson.Value
	newline string
	unit    string // unit is one step of indentation.
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
		line, column := lineAndColumn(src, root.StartOffset)
		return nil, &syntaxError{line, column, "the document is not an object"}
	}
	if members := membersOf(root); len(members) > 0 {
		if d.isMultiline(root) {
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

// applyEdits applies edits that are in order and do not overlap.
func applyEdits(src []byte, edits ...edit) []byte {
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

// isMultiline reports whether the children of an object or an array are on separate lines.
func (d *jsonDoc) isMultiline(n *hujson.Value) bool {
	if list := childrenOf(n); len(list) > 0 {
		return bytes.IndexByte(d.src[n.StartOffset:list[0].start], '\n') >= 0
	}
	return bytes.IndexByte(d.src[n.StartOffset:n.EndOffset], '\n') >= 0 ||
		n == d.root || len(membersOf(d.root)) == 0 || d.isMultiline(d.root)
}

// indentBefore returns the white space between the start of the line and pos, or "" if
// there is other text.
func (d *jsonDoc) indentBefore(pos int) string {
	line := d.src[bytes.LastIndexByte(d.src[:pos], '\n')+1 : pos]
	if len(bytes.Trim(line, " \t")) > 0 {
		return ""
	}
	return string(line)
}

// lineIndent returns the white space at the start of the line of pos.
func (d *jsonDoc) lineIndent(pos int) string {
	line := bytes.TrimPrefix(d.src[bytes.LastIndexByte(d.src[:pos], '\n')+1:pos], bom)
	return string(line[:len(line)-len(bytes.TrimLeft(line, " \t"))])
}

// skipComments returns the end of the last comment between pos and the next token, or pos,
// and whether that comment ends with its line.
func (d *jsonDoc) skipComments(pos int) (end int, line bool) {
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

// setValue returns the document with val at the path of keys. It adds missing objects.
func (d *jsonDoc) setValue(path []string, val any) ([]byte, error) {
	if d.root == nil {
		return d.createObject(nestValue(path, val)), nil
	}
	n := d.root
	for i, key := range path {
		next, twice := findMember(n, key)
		if twice {
			return nil, d.twiceError(n, key)
		}
		if next == nil {
			rest := nestValue(path[i:], val)
			return d.insertMember(n, rest[0]), nil
		}
		if i < len(path)-1 && next.Value.Kind() != '{' {
			return nil, d.kindError(next, key, "an object")
		}
		n = next
	}
	text := d.renderValue(val, d.isMultiline(d.root), d.lineIndent(n.StartOffset))
	return applyEdits(d.src, edit{n.StartOffset, n.EndOffset, text}), nil
}

// nestValue wraps val in an object for each key of the path.
func nestValue(path []string, val any) []field {
	for i := len(path) - 1; i > 0; i-- {
		val = []field{{path[i], val}}
	}
	return []field{{path[0], val}}
}

// createObject returns a document for a file without a value.
func (d *jsonDoc) createObject(fields []field) []byte {
	text := d.renderValue(fields, true, "") + d.newline
	rest := bytes.TrimRight(d.src, " \t\r\n")
	if len(rest) > 0 && !bytes.Equal(rest, bom) {
		text = d.newline + text
	}
	return append(bytes.Clone(rest), text...)
}

// insertMember adds a member at the end of an object.
func (d *jsonDoc) insertMember(n *hujson.Value, f field) []byte {
	return d.insertChild(n, func(multi bool, indent string) string {
		return quoteJSON(f.key) + d.colon + d.renderValue(f.val, multi, indent)
	})
}

// insertElement adds an element at the end of an array.
func (d *jsonDoc) insertElement(n *hujson.Value, val any) []byte {
	return d.insertChild(n, func(multi bool, indent string) string { return d.renderValue(val, multi, indent) })
}

// insertChild adds a child at the end of an object or an array. render returns its text.
func (d *jsonDoc) insertChild(n *hujson.Value, render func(multi bool, indent string) string) []byte {
	multi, outer := d.isMultiline(n), d.lineIndent(n.StartOffset)
	indent := outer + d.unit
	list := childrenOf(n)
	last, first := n.StartOffset+1, len(list) == 0
	comma := -1
	if !first {
		last, comma = list[len(list)-1].value.EndOffset, commaAfter(list, len(list)-1)
		if comma >= 0 {
			last = comma + 1
		}
		if multi {
			indent = d.lineIndent(list[0].start)
		}
	}
	at, lineComment := d.skipComments(last)
	lead := ""
	switch {
	case multi || lineComment:
		lead = d.newline + indent
	case !first && d.colon != ":", at > last:
		lead = " "
	}
	text := lead + render(multi, indent)
	switch {
	case first:
		if multi && bytes.IndexByte(d.src[at:n.EndOffset], '\n') < 0 {
			return applyEdits(d.src, edit{at, n.EndOffset - 1, text + d.newline + outer})
		}
		return applyEdits(d.src, edit{at, at, text})
	case comma >= 0:
		return applyEdits(d.src, edit{at, at, text + ","})
	default:
		return applyEdits(d.src, edit{last, last, ","}, edit{at, at, text})
	}
}

// removeMember returns the document without a member. It is the inverse of insertMember.
func (d *jsonDoc) removeMember(n *hujson.Value, key string) []byte {
	i := slices.IndexFunc(membersOf(n), func(m hujson.ObjectMember) bool { return textOf(&m.Name) == key })
	if i < 0 {
		return d.src
	}
	return d.removeChild(n, i)
}

// removeChild returns the document without a child of an object or an array. It is the
// inverse of insertChild.
func (d *jsonDoc) removeChild(n *hujson.Value, i int) []byte {
	list := childrenOf(n)
	c, comma, edits := list[i], commaAfter(list, i), []edit(nil)
	before := n.StartOffset + 1
	if i > 0 {
		before = commaAfter(list, i-1) + 1
		if comma < 0 {
			edits = append(edits, edit{before - 1, before, ""})
		}
	}
	start, lineComment := d.skipComments(before)
	end := c.value.EndOffset
	if comma == end {
		end++
	}
	if lineComment && len(newlineAt(d.src, end)) == 0 {
		start = c.start // the following text must not become part of the comment
	}
	edits = append(edits, edit{start, end, ""})
	if comma > c.value.EndOffset {
		edits = append(edits, edit{comma, comma + 1, ""})
	}
	return applyEdits(d.src, edits...)
}

// isEmpty reports whether an object contains nothing, not even a comment.
func (d *jsonDoc) isEmpty(n *hujson.Value) bool {
	return n.Value.Kind() == '{' && len(bytes.TrimSpace(d.src[n.StartOffset+1:n.EndOffset-1])) == 0
}

// emptyAs restores the earlier white space of an object without members.
func (d *jsonDoc) emptyAs(n *hujson.Value, h *jsonDoc, was *hujson.Value) []byte {
	now, then := d.src[n.StartOffset:n.EndOffset], h.src[was.StartOffset:was.EndOffset]
	if len(membersOf(n)) > 0 || !bytes.Equal(withoutSpace(now), withoutSpace(then)) {
		return d.src
	}
	return applyEdits(d.src, edit{n.StartOffset, n.EndOffset, string(then)})
}

// withoutSpace returns a text without its white space.
func withoutSpace(text []byte) []byte { return bytes.Join(bytes.Fields(text), nil) }

func (d *jsonDoc) renderValue(val any, multi bool, indent string) string {
	sep, lead, tail := ","+strings.TrimPrefix(d.colon, ":"), "", ""
	switch v := val.(type) {
	case json.RawMessage:
		return d.renderJSON(v, multi, indent)
	case string:
		return quoteJSON(v)
	case bool:
		return strconv.FormatBool(v)
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quoteJSON(s)
		}
		return "[" + strings.Join(parts, sep) + "]"
	case []any:
		inner := indent
		if multi {
			inner += d.unit
			sep, lead, tail = ","+d.newline+inner, d.newline+inner, d.newline+indent
		}
		parts := make([]string, len(v))
		for i, each := range v {
			parts[i] = d.renderValue(each, multi, inner)
		}
		return "[" + lead + strings.Join(parts, sep) + tail + "]"
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
			parts[i] = quoteJSON(f.key) + d.colon + d.renderValue(f.val, multi, inner)
		}
		return "{" + lead + strings.Join(parts, sep) + tail + "}"
	default:
		return "null"
	}
}

// quoteJSON returns a JSON string without HTML escapes.
func quoteJSON(s string) string { return string(jsontext.AppendString(nil, s)) }
