package install

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlFormat is a configuration in YAML with a list of servers, edited as text at the
// positions of its nodes. Every edit is checked by parsing: only the entry may differ.
type yamlFormat struct {
	// key is the member of the root that contains the list.
	key string
}

var _ format = yamlFormat{}

// newConfiguration returns the members that Continue requires in every file.
func newConfiguration() []field {
	return []field{{"name", "Local Config"}, {"version", "1.0.0"}, {"schema", "v1"}}
}

func (y yamlFormat) lookupEntry(src []byte, name string) (Entry, bool, error) {
	d, err := readYAML(src)
	if err != nil {
		return Entry{}, false, err
	}
	item, err := y.findItem(d, name)
	if err != nil || item == nil {
		return Entry{}, false, err
	}
	e := Entry{Command: textAt(item, "command"), URL: textAt(item, "url")}
	if _, args := lookupNode(item, "args"); args != nil && args.Kind == yaml.SequenceNode {
		for _, a := range args.Content {
			e.Args = append(e.Args, a.Value)
		}
	}
	if _, env := lookupNode(item, "env"); env != nil && env.Kind == yaml.MappingNode && len(env.Content) > 0 {
		e.Env = map[string]string{}
		for i := 0; i+1 < len(env.Content); i += 2 {
			e.Env[env.Content[i].Value] = textAt(env, env.Content[i].Value)
		}
	}
	_, options := lookupNode(item, "requestOptions")
	_, headers := lookupNode(options, "headers")
	e.Authorization = textAt(headers, authorizationHeader)
	return e, true, nil
}

// findItem returns the mapping of a server, or nil.
func (y yamlFormat) findItem(d *yamlDoc, name string) (*yaml.Node, error) {
	list, err := y.findList(d)
	if err != nil || list == nil {
		return nil, err
	}
	var found *yaml.Node
	for _, item := range list.Content {
		if item.Kind != yaml.MappingNode || textAt(item, "name") != name {
			continue
		}
		if found != nil {
			return nil, &syntaxError{item.Line, item.Column, fmt.Sprintf("%q occurs twice in this list", name)}
		}
		found = item
	}
	return found, nil
}

// findList returns the list of servers, or nil if it is missing or empty.
func (y yamlFormat) findList(d *yamlDoc) (*yaml.Node, error) {
	_, list := lookupNode(d.root, y.key)
	switch {
	case list == nil && d.tree[y.key] != nil:
		return nil, errYAMLForm // merged from another mapping
	case list == nil || isNull(list) && list.Value == "":
		return nil, nil
	case list.Kind != yaml.SequenceNode:
		return nil, &syntaxError{list.Line, list.Column, fmt.Sprintf("%q is not a list", y.key)}
	}
	return list, nil
}

func (y yamlFormat) putEntry(src []byte, name string, e Entry) ([]byte, error) {
	d, err := readYAML(src)
	if err != nil {
		return nil, err
	}
	item, err := y.findItem(d, name)
	if err != nil {
		return nil, err
	}
	if item != nil {
		return y.updateItem(d, item, name, e)
	}
	list, err := y.findList(d)
	if err != nil {
		return nil, err
	}
	switch key, _ := lookupNode(d.root, y.key); {
	case d.root == nil:
		return y.firstChecked(d, name, d.appendLines(append(blockLines(newConfiguration(), ""), y.listLines("", name, e)...), len(src)))
	case isFlow(d.root) && key == nil:
		return y.firstChecked(d, name, d.addToFlow(d.root, quoteJSON(y.key)+": ["+flowEntry(name, e)+"]"))
	case key == nil:
		indent, err := d.indentOf(d.root)
		if err != nil {
			return nil, err
		}
		ends := append([]int{len(src)}, d.blockEnds(d.root)...)
		return y.firstChecked(d, name, d.appendLines(y.listLines(indent, name, e), ends...))
	case list == nil:
		return y.fillList(d, key, name, e)
	case isFlow(list):
		return y.firstChecked(d, name, d.addToFlow(list, flowEntry(name, e)))
	}
	return y.addItem(d, list, name, e)
}

// listLines returns the list of servers with one entry, in block style.
func (y yamlFormat) listLines(indent, name string, e Entry) []string {
	return append([]string{indent + y.key + ":"}, itemLines(indent+"  ", "- ", name, e)...)
}

// itemLines returns an entry as an item of a list in block style. dash is the text before
// the first member.
func itemLines(indent, dash, name string, e Entry) []string {
	lines := blockLines(yamlFields(name, e), indent+strings.Repeat(" ", len(dash)))
	lines[0] = indent + dash + strings.TrimLeft(lines[0], " ")
	return lines
}

// yamlFields returns the members of an entry.
func yamlFields(name string, e Entry) []field {
	f := []field{{"name", name}}
	if e.URL != "" {
		f = append(f, field{"type", "streamable-http"}, field{"url", e.URL})
		if e.Authorization != "" {
			f = append(f, field{"requestOptions", []field{{"headers", []field{{authorizationHeader, e.Authorization}}}}})
		}
		return f
	}
	f = append(f, field{"command", e.Command}, field{"args", e.Args})
	if len(e.Env) > 0 {
		f = append(f, field{"env", variableFields(e.Env)})
	}
	return f
}

// flowEntry returns an entry in JSON, which is also YAML.
func flowEntry(name string, e Entry) string {
	d := &jsonDoc{newline: "\n", unit: "  ", colon: ": "}
	return d.renderValue(yamlFields(name, e), false, "")
}

// addItem adds an entry at the end of a list in block style.
func (y yamlFormat) addItem(d *yamlDoc, list *yaml.Node, name string, e Entry) ([]byte, error) {
	indent, err := d.indentOf(list)
	if err != nil {
		return nil, err
	}
	dash := "- "
	if first := list.Content[0]; first.Line == list.Line && first.Column > list.Column+1 {
		dash = "-" + strings.Repeat(" ", first.Column-list.Column-1)
	}
	return y.firstChecked(d, name, d.appendLines(itemLines(indent, dash, name, e), d.blockEnds(list)...))
}

// fillList adds the first entry to a list without a value.
func (y yamlFormat) fillList(d *yamlDoc, key *yaml.Node, name string, e Entry) ([]byte, error) {
	indent, err := d.indentOf(key)
	if err != nil {
		return nil, err
	}
	return y.firstChecked(d, name, d.appendLines(itemLines(indent+"  ", "- ", name, e), d.lineStart(key.Line)))
}

// firstChecked returns the first text that differs from the document in the entry only.
func (y yamlFormat) firstChecked(d *yamlDoc, name string, texts [][]byte) ([]byte, error) {
	before := y.withoutEntry(d.tree, name)
	if d.root == nil {
		for _, f := range newConfiguration() {
			before[f.key] = f.val
		}
	}
	for _, text := range texts {
		after, err := readYAML(text)
		if err == nil && sameValue(before, y.withoutEntry(after.tree, name)) {
			return text, nil
		}
	}
	return nil, errYAMLForm
}

// withoutEntry returns a document without an entry, and without the list if it is then empty.
func (y yamlFormat) withoutEntry(tree map[string]any, name string) map[string]any {
	tree = maps.Clone(tree)
	list, _ := tree[y.key].([]any)
	list = slices.DeleteFunc(slices.Clone(list), func(item any) bool {
		members, _ := item.(map[string]any)
		return members["name"] == name
	})
	if _, isList := tree[y.key].([]any); isList || tree[y.key] == nil {
		if tree[y.key] = list; len(list) == 0 {
			delete(tree, y.key)
		}
	}
	return tree
}

func (y yamlFormat) removeEntry(src []byte, name string, hint []byte) ([]byte, error) {
	d, err := readYAML(src)
	if err != nil {
		return nil, err
	}
	list, err := y.findList(d)
	if err != nil || list == nil {
		return src, err
	}
	item, err := y.findItem(d, name)
	if err != nil || item == nil {
		return src, err
	}
	texts := y.textsWithout(d, list, item, hint)
	for i, text := range texts {
		if hint != nil && bytes.HasPrefix(src, text) { // the entry was at the end
			texts[i] = slices.Concat(bytes.TrimRight(text, "\r\n"), hint[len(bytes.TrimRight(hint, "\r\n")):])
		}
	}
	return y.firstChecked(d, name, texts)
}

// textsWithout returns the texts without an item of the list. If no other item is left, the
// list is removed if hint has none; it is empty if hint is nil.
func (y yamlFormat) textsWithout(d *yamlDoc, list, item *yaml.Node, hint []byte) [][]byte {
	key, _ := lookupNode(d.root, y.key)
	alone, known, had := len(list.Content) == 1, false, false
	if h, err := readYAML(hint); err == nil && hint != nil {
		known, had = true, hasKey(h.root, y.key)
	}
	switch {
	case alone && known && !had:
		return d.removeMember(d.root, key, list)
	case isFlow(list):
		return d.removeFromFlow(list, item)
	}
	text := ""
	if alone && !had {
		text = strings.Repeat(" ", list.Column-1) + "[]" + newlineOf(d.src)
	}
	var texts [][]byte
	for _, end := range d.blockEnds(item) {
		texts = append(texts, applyEdits(d.src, edit{d.lines[d.dashLine(list, item)-1], end, text}))
	}
	return texts
}

func hasKey(n *yaml.Node, key string) bool { name, _ := lookupNode(n, key); return name != nil }

func (y yamlFormat) restoreEntry(src []byte, name string, from []byte) ([]byte, error) {
	old, found, err := y.lookupEntry(from, name)
	if err != nil {
		return nil, err
	}
	if !found {
		return nil, errNothingToRestore
	}
	d, err := readYAML(src)
	if err != nil {
		return nil, err
	}
	f, err := readYAML(from)
	if err != nil {
		return nil, err
	}
	now, then := y.itemText(d, name), y.itemText(f, name)
	if now.text != "" && then.text != "" {
		text, err := y.firstChecked(d, name, [][]byte{applyEdits(src, edit{now.start, now.end, then.text})})
		if got, _, lookupErr := y.lookupEntry(text, name); err == nil && lookupErr == nil && sameEntry(got, old) {
			return text, nil
		}
	}
	return y.putEntry(src, name, old)
}

// itemText returns the text of an entry in block style, or of one in brackets.
func (y yamlFormat) itemText(d *yamlDoc, name string) edit {
	item, err := y.findItem(d, name)
	if err != nil || item == nil {
		return edit{}
	}
	start, end := d.offsetOf(item), d.endOf(item)
	if !isFlow(item) {
		end = d.blockEnds(item)[0]
	}
	if start < 0 || end < start {
		return edit{}
	}
	return edit{start, end, string(d.src[start:end])}
}

func (y yamlFormat) entrySnippet(name string, e Entry) string {
	return strings.Join(y.listLines("", name, e), "\n")
}

func (y yamlFormat) fileNotes([]byte, string) []string { return nil }
