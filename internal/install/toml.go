package install

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlDoc is a parsed TOML document with its expressions.
type tomlDoc struct {
	key   string
	src   []byte
	tree  map[string]any
	items []tomlItem
}

// tomlItem is a table header, or a key with its value, also in an inline table.
type tomlItem struct {
	header, inline bool
	// path is the full path from the root.
	path []string
	// start is the start of the line, and end is the end of the expression without the
	// line's comment and line break.
	start, end int
	// value is the start of the value of a key.
	value int
}

// isUnder reports whether the item is at the path or below it.
func (i tomlItem) isUnder(path []string) bool {
	return len(i.path) >= len(path) && slices.Equal(i.path[:len(path)], path)
}

// readTOML parses a document whose servers are in the table key. Its error is a *syntaxError.
func readTOML(src []byte, key string) (*tomlDoc, error) {
	d := &tomlDoc{key: key, src: src, tree: map[string]any{}}
	from := len(src) - len(bytes.TrimPrefix(src, bom))
	if err := toml.Unmarshal(src[from:], &d.tree); err != nil {
		s := &syntaxError{message: strings.TrimPrefix(err.Error(), "toml: ")}
		var de *toml.DecodeError
		if errors.As(err, &de) {
			s.line, s.column = de.Position()
		}
		return nil, s
	}
	var parser unstable.Parser
	parser.Reset(src[from:])
	var table []string
	for parser.NextExpression() {
		node := parser.Expression()
		if node.Kind == unstable.KeyValue {
			d.addItem(node, table, from, false)
		} else {
			table = d.addItem(node, nil, from, false)
		}
	}
	return d, nil
}

// addItem adds an expression in a table, and those in its inline table. It returns the path
// of the expression.
func (d *tomlDoc) addItem(node *unstable.Node, table []string, from int, inline bool) []string {
	item := tomlItem{header: node.Kind != unstable.KeyValue, inline: inline, path: slices.Clone(table)}
	at := from // the end of the key
	for key := node.Key(); key.Next(); {
		raw := key.Node().Raw
		if at == from {
			item.start = max(from, bytes.LastIndexByte(d.src[:from+int(raw.Offset)], '\n')+1)
		}
		item.path = append(item.path, string(key.Node().Data))
		at = from + int(raw.Offset+raw.Length)
	}
	if item.header {
		item.end = at + bytes.IndexByte(d.src[at:], ']') + 1
		if node.Kind == unstable.ArrayTable {
			item.end++
		}
		d.items = append(d.items, item)
		return item.path
	}
	at += bytes.IndexByte(d.src[at:], '=') + 1
	item.value = len(d.src) - len(bytes.TrimLeft(d.src[at:], " \t"))
	item.end = from + int(node.Raw.Offset+node.Raw.Length)
	d.items = append(d.items, item)
	if value := node.Value(); value.Kind == unstable.InlineTable {
		for children := value.Children(); children.Next(); {
			d.addItem(children.Node(), item.path, from, true)
		}
	}
	return item.path
}

func (d *tomlDoc) values() map[string]any { return d.tree }

func (d *tomlDoc) checkEntry(string) error {
	if _, ok := d.tree[d.key].(map[string]any); !ok && d.tree[d.key] != nil {
		return &syntaxError{message: `"` + d.key + `" is not a table`}
	}
	return nil
}

// An entry can be in several places.
func (d *tomlDoc) entryRange(string) (start, end int, ok bool) { return 0, 0, false }

// setValue sets a value of an entry in any of its forms, or replaces the entry.
func (d *tomlDoc) setValue(name string, path []string, val any) ([][]byte, error) {
	if len(path) == 0 {
		texts, err := d.removeEntry(name, nil)
		if err != nil {
			return nil, err
		}
		if d, err = readTOML(texts[0], d.key); err != nil {
			return nil, err
		}
		fields, _ := val.([]field)
		return [][]byte{d.addEntry(name, fields)}, nil
	}
	full := slices.Concat([]string{d.key, name}, path)
	for _, item := range d.items {
		if !item.header && slices.Equal(item.path, full) {
			return [][]byte{applyEdits(d.src, edit{item.value, item.end, renderTOML(val)})}, nil
		}
	}
	parent, key := full[:len(full)-1], full[len(full)-1]
	var last *tomlItem // last is the last expression directly in the value's own table.
	inside := false
	for i, item := range d.items {
		switch {
		case item.header:
			inside = slices.Equal(item.path, parent)
		case slices.Equal(item.path, parent):
			return [][]byte{d.insertInline(item, tomlLine(field{key, val}))}, nil
		}
		if inside && !item.inline {
			last = &d.items[i]
		}
	}
	switch {
	case last != nil:
		at := lineEnd(d.src, last.end)
		return [][]byte{applyEdits(d.src, edit{at, at, newlineOf(d.src) + tomlLine(field{key, val})})}, nil
	case len(path) > 1:
		return d.setValue(name, path[:len(path)-1], []field{{key, val}})
	}
	return nil, errForm
}

// insertInline adds a member at the end of an inline table.
func (d *tomlDoc) insertInline(table tomlItem, text string) []byte {
	inside := bytes.TrimRight(d.src[table.value+1:table.end-1], " \t")
	at := table.value + 1 + len(inside)
	if len(bytes.TrimSpace(inside)) > 0 {
		text = ", " + text
	} else {
		text = " " + text
	}
	if d.src[at] == '}' {
		text += " "
	}
	return applyEdits(d.src, edit{at, at, text})
}

// addEntry writes a section at the end, or a member into the inline table of servers.
func (d *tomlDoc) addEntry(name string, fields []field) []byte {
	for _, item := range d.items {
		if !item.header && slices.Equal(item.path, []string{d.key}) {
			return d.insertInline(item, name+" = "+renderTOML(fields))
		}
	}
	nl := newlineOf(d.src)
	text := strings.ReplaceAll(renderSection(d.key, name, fields)+"\n", "\n", nl)
	body := bytes.TrimPrefix(d.src, bom)
	switch {
	case len(bytes.TrimSpace(body)) == 0:
	case !bytes.HasSuffix(body, []byte("\n")):
		text = nl + nl + text
	case !bytes.HasSuffix(body, []byte(nl+nl)):
		text = nl + text
	}
	return append(bytes.Clone(d.src), text...)
}

func (d *tomlDoc) removeEntry(name string, _ document) ([][]byte, error) {
	entry := []string{d.key, name}
	items := slices.DeleteFunc(slices.Clone(d.items), func(i tomlItem) bool { return i.inline })
	var edits []edit
	for i := 0; i < len(items); i++ {
		if !items[i].isUnder(entry) {
			continue
		}
		first := i
		for i+1 < len(items) && items[i+1].isUnder(entry) {
			i++
		}
		start, end := items[first].start, lineEnd(d.src, items[i].end)
		end += len(newlineAt(d.src, end))
		if nl := newlineOf(d.src); items[first].header && bytes.HasSuffix(d.src[:start], []byte(nl+nl)) {
			start -= len(nl)
		}
		edits = append(edits, edit{start, end, ""})
	}
	return [][]byte{applyEdits(d.src, edits...)}, nil
}

// renderSection returns an entry as a table.
func renderSection(key, name string, fields []field) string {
	text := "[" + key + "." + name + "]"
	for _, f := range fields {
		text += "\n" + tomlLine(f)
	}
	return text
}

func tomlLine(f field) string { return bareOrQuoted(f.key) + " = " + renderTOML(f.val) }

// renderTOML returns a value on one line.
func renderTOML(val any) string {
	var parts []string
	switch v := val.(type) {
	case []string:
		for _, s := range v {
			parts = append(parts, quoteTOML(s))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []field:
		for _, f := range v {
			parts = append(parts, tomlLine(f))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	default:
		return quoteTOML(asText(v))
	}
}

func bareOrQuoted(key string) string {
	if key == "" || CheckName(key) != nil {
		return quoteTOML(key)
	}
	return key
}

// quoteTOML returns a TOML string. If possible, a text with backslashes becomes a literal
// string, so that Windows paths stay readable.
func quoteTOML(s string) string {
	plain := !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f || r == '\'' || r == 0xfffd })
	if plain && strings.Contains(s, `\`) {
		return "'" + s + "'"
	}
	return strings.ReplaceAll(quoteJSON(s), "\x7f", `\u007F`) // a JSON string is a TOML string if this character is escaped
}
