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

// jsonDoc is a parsed document and its style.
type jsonDoc struct {
	key     string // key is the member of the root that contains the servers.
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
	d := &jsonDoc{src: src, root: root, newline: newlineOf(src), unit: "  ", colon: ": "}
	if root == nil {
		return d, nil
	}
	if root.Value.Kind() != '{' {
		return nil, syntaxAt(src, root.StartOffset, "the document is not an object")
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

func newlineOf(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// newlineAt returns the line break at pos, or "".
func newlineAt(src []byte, pos int) string {
	for _, nl := range []string{"\r\n", "\n"} {
		if bytes.HasPrefix(src[pos:], []byte(nl)) {
			return nl
		}
	}
	return ""
}

// lineEnd returns the end of the line of pos, before its line break.
func lineEnd(src []byte, pos int) int {
	i := bytes.IndexByte(src[pos:], '\n')
	if i < 0 {
		return len(src)
	}
	if i > 0 && src[pos+i-1] == '\r' {
		i--
	}
	return pos + i
}

// values returns the members of the document. It is nil if the document has no value.
func (d *jsonDoc) values() map[string]any {
	var object map[string]any
	if d.root != nil {
		decoder := json.NewDecoder(bytes.NewReader(standardizeJSON(d.src)))
		decoder.UseNumber()
		_ = decoder.Decode(&object) // the document has been parsed
	}
	return object
}

// findValue returns the value at a path, or the last object on it. found is the number of
// keys on the way to it.
func (d *jsonDoc) findValue(path []string) (n *hujson.Value, found int, err error) {
	n = d.root
	for n != nil && found < len(path) {
		if n.Value.Kind() != '{' {
			return nil, 0, syntaxAt(d.src, n.StartOffset, "%q is not an object", path[found-1])
		}
		next, twice := findMember(n, path[found])
		if twice {
			return nil, 0, syntaxAt(d.src, n.StartOffset, "%q occurs twice in this object", path[found])
		}
		if next == nil {
			break
		}
		n, found = next, found+1
	}
	return n, found, nil
}

func (d *jsonDoc) checkEntry(name string) error {
	_, _, err := d.findValue([]string{d.key, name})
	return err
}

func (d *jsonDoc) entryRange(name string) (start, end int, ok bool) {
	n, found, err := d.findValue([]string{d.key, name})
	if err != nil || n == nil || found < 2 {
		return 0, 0, false
	}
	return n.StartOffset, n.EndOffset, true
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

func (d *jsonDoc) setValue(name string, path []string, val any) ([][]byte, error) {
	text, err := d.putValue(append([]string{d.key, name}, path...), val)
	return [][]byte{text}, err
}

// putValue returns the document with val at the path of keys. It adds missing objects.
func (d *jsonDoc) putValue(path []string, val any) ([]byte, error) {
	n, found, err := d.findValue(path)
	switch {
	case err != nil:
		return nil, err
	case n == nil:
		return d.createObject(nestValue(path, val)), nil
	case found < len(path):
		return d.insertMember(n, nestValue(path[found:], val)[0]), nil
	}
	text := d.renderValue(val, d.isMultiline(d.root), d.lineIndent(n.StartOffset))
	return applyEdits(d.src, edit{n.StartOffset, n.EndOffset, text}), nil
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
	if lineComment && newlineAt(d.src, end) == "" {
		start = c.start // the following text must not become part of the comment
	}
	edits = append(edits, edit{start, end, ""})
	if comma > c.value.EndOffset {
		edits = append(edits, edit{comma, comma + 1, ""})
	}
	return applyEdits(d.src, edits...)
}

func (d *jsonDoc) removeEntry(name string, was document) ([][]byte, error) {
	left, err := readJSON(d.removeMember(getMember(d.root, d.key), name))
	if err != nil {
		return nil, err
	}
	servers, text := getMember(left.root, d.key), left.src
	earlier, known := was.(*jsonDoc)
	switch {
	case !known || earlier.root == nil:
		if left.isEmpty(servers) {
			text = applyEdits(text, edit{servers.StartOffset, servers.EndOffset, "{}"})
		}
	case getMember(earlier.root, d.key) != nil:
		text = left.emptyAs(servers, earlier, getMember(earlier.root, d.key))
	case left.isEmpty(servers):
		if left, err = readJSON(left.removeMember(left.root, d.key)); err != nil {
			return nil, err
		}
		text = left.emptyAs(left.root, earlier, earlier.root)
	}
	return [][]byte{text}, nil
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
	inner := indent + d.unit
	var parts []string
	switch v := val.(type) {
	case json.RawMessage:
		return d.renderJSON(v, multi, indent)
	case string:
		return quoteJSON(v)
	case []string:
		for _, s := range v {
			parts = append(parts, quoteJSON(s))
		}
		return "[" + strings.Join(parts, ","+strings.TrimPrefix(d.colon, ":")) + "]"
	case []any:
		for _, each := range v {
			parts = append(parts, d.renderValue(each, multi, inner))
		}
		return "[" + d.joinParts(parts, multi, indent) + "]"
	case []field:
		for _, f := range v {
			parts = append(parts, quoteJSON(f.key)+d.colon+d.renderValue(f.val, multi, inner))
		}
		return "{" + d.joinParts(parts, multi, indent) + "}"
	default:
		return fmt.Sprint(v) // a bool
	}
}

// joinParts joins the members of an object or the elements of an array.
func (d *jsonDoc) joinParts(parts []string, multi bool, indent string) string {
	if !multi || len(parts) == 0 {
		return strings.Join(parts, ","+strings.TrimPrefix(d.colon, ":"))
	}
	lead := d.newline + indent + d.unit
	return lead + strings.Join(parts, ","+lead) + d.newline + indent
}

// quoteJSON returns a JSON string without HTML escapes.
func quoteJSON(s string) string { return string(jsontext.AppendString(nil, s)) }

// renderSnippet returns an object as text to paste.
func renderSnippet(fields []field) string {
	d := &jsonDoc{newline: "\n", unit: "  ", colon: ": "}
	return d.renderValue(fields, true, "")
}
