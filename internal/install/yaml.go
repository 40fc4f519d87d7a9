package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlDoc is a parsed YAML document. An edit writes one entry again, or the list of servers
// if it is in brackets. Other lines are unchanged.
type yamlDoc struct {
	key string
	src []byte
	// root is the mapping of the document. It is nil if the document is empty.
	root *yaml.Node
	tree map[string]any
	// lines are the offsets of the lines.
	lines []int
}

// newConfiguration returns the members that Continue requires in every file.
func newConfiguration() []field {
	return []field{{"name", "Local Config"}, {"version", "1.0.0"}, {"schema", "v1"}}
}

// readYAML parses a file with at most one document, which is a mapping with the list of
// servers at key. Its error is a *syntaxError.
func readYAML(src []byte, key string) (d *yamlDoc, err error) {
	defer func() {
		if reason := recover(); reason != nil { // yaml.v3 can panic on malicious input
			d, err = nil, &syntaxError{message: fmt.Sprintf("the YAML cannot be read: %v", reason)}
		}
	}()
	if err := checkEncoding(src); err != nil {
		return nil, err
	}
	d = &yamlDoc{key: key, src: src, tree: map[string]any{}}
	d.lines = append(d.lines, len(src)-len(bytes.TrimPrefix(src, bom)))
	for i, c := range src {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	var document, more yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(src[d.lines[0]:]))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF):
		return d, nil
	case err != nil:
		return nil, yamlError(err)
	}
	if err := decoder.Decode(&more); err == nil {
		return nil, &syntaxError{line: more.Line, message: "the file contains more than one document"}
	} else if !errors.Is(err, io.EOF) {
		return nil, yamlError(err)
	}
	if len(document.Content) == 0 || isMissing(document.Content[0]) {
		return d, nil
	}
	if d.root = document.Content[0]; d.root.Kind != yaml.MappingNode {
		return nil, &syntaxError{d.root.Line, d.root.Column, "the document is not a mapping"}
	}
	if err := document.Decode(&d.tree); err != nil { // a key that occurs twice
		return nil, yamlError(err)
	}
	return d, nil
}

// yamlError returns the position and the message of an error of yaml.v3.
func yamlError(err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message = strings.TrimSpace(strings.TrimPrefix(message, "unmarshal errors:"))
	message, _, _ = strings.Cut(message, "\n")
	s := &syntaxError{message: message}
	if n, _ := fmt.Sscanf(message, "line %d:", &s.line); n == 1 {
		_, s.message, _ = strings.Cut(message, ": ")
	}
	return s
}

// isMissing reports whether a node has no text.
func isMissing(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
}

func isFlow(n *yaml.Node) bool { return n.Style&yaml.FlowStyle != 0 }

// lookupNode returns the key and the value of a member of a mapping, or nil.
func lookupNode(n *yaml.Node, key string) (name, value *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Kind == yaml.ScalarNode && n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

func (d *yamlDoc) values() map[string]any { return d.tree }

func (d *yamlDoc) checkEntry(name string) error {
	key, list := lookupNode(d.root, d.key)
	switch {
	case key == nil && d.tree[d.key] != nil:
		return errForm // merged from another mapping
	case key == nil || isMissing(list):
		return nil
	case list.Kind != yaml.SequenceNode:
		return &syntaxError{list.Line, list.Column, fmt.Sprintf("%q is not a list", d.key)}
	}
	found := false
	for i, each := range d.list() {
		if item := list.Content[i]; each["name"] == name {
			if found {
				return &syntaxError{item.Line, item.Column, fmt.Sprintf("%q occurs twice in this list", name)}
			}
			if found = true; item.Kind != yaml.MappingNode {
				return errForm // an alias
			}
		}
	}
	return nil
}

// list returns the servers. A server that is not a mapping is nil.
func (d *yamlDoc) list() []map[string]any {
	values, _ := d.tree[d.key].([]any)
	list := make([]map[string]any, len(values))
	for i, each := range values {
		list[i], _ = each.(map[string]any)
	}
	return list
}

// findItem returns the index of an entry in the list, or -1, and the list, or nil.
func (d *yamlDoc) findItem(name string) (int, *yaml.Node) {
	_, list := lookupNode(d.root, d.key)
	return slices.IndexFunc(d.list(), func(item map[string]any) bool { return item["name"] == name }), list
}

func (d *yamlDoc) setValue(name string, path []string, val any) ([][]byte, error) {
	i, list := d.findItem(name)
	if len(path) == 0 {
		fields, _ := val.([]field)
		val = append([]field{{"name", name}}, fields...)
	}
	if i < 0 {
		return d.addItem(list, newNode(val)), nil
	}
	item := list.Content[i]
	if err := setNode(item, path, val); err != nil {
		return nil, err
	}
	if isFlow(list) {
		return d.rewriteList(list), nil
	}
	return d.rewrite(item, item, item), nil
}

// addItem returns the texts with an entry at the end of the list, which may be missing.
func (d *yamlDoc) addItem(list, item *yaml.Node) [][]byte {
	items := []*yaml.Node{item}
	switch {
	case d.root == nil:
		return d.appendLines(newNode(append(newConfiguration(), field{d.key, items})), "", "", len(d.src))
	case list == nil && !isFlow(d.root):
		indent := strings.Repeat(" ", d.root.Column-1)
		return d.appendLines(newNode([]field{{d.key, items}}), indent, indent, append([]int{len(d.src)}, d.blockEnds(d.root)...)...)
	case list == nil:
		d.root.Content = append(d.root.Content, newNode(d.key), newNode(items))
		return d.rewrite(d.root, d.root, d.root)
	case isMissing(list) || isFlow(list):
		list.Kind, list.Tag, list.Content = yaml.SequenceNode, "!!seq", append(list.Content, item)
		return d.rewriteList(list)
	}
	indent, dash := strings.Repeat(" ", list.Column-1), "- "
	if first := list.Content[0]; first.Line == list.Line && first.Column > list.Column+1 {
		dash = "-" + strings.Repeat(" ", first.Column-list.Column-1)
	}
	return d.appendLines(item, indent+dash, indent+strings.Repeat(" ", len(dash)), d.blockEnds(list)...)
}

func (d *yamlDoc) removeEntry(name string, was document) ([][]byte, error) {
	i, list := d.findItem(name)
	key, _ := lookupNode(d.root, d.key)
	earlier, known := was.(*yamlDoc)
	var earlierKey, earlierList *yaml.Node
	if known {
		earlierKey, earlierList = lookupNode(earlier.root, d.key)
	}
	last := len(list.Content) == 1
	switch {
	case last && known && earlierKey == nil && isFlow(d.root):
		at := slices.Index(d.root.Content, key)
		d.root.Content = slices.Delete(d.root.Content, at, at+2)
		return d.rewrite(d.root, d.root, d.root), nil
	case last && known && earlierKey == nil:
		return d.removeLines(key.Line, list), nil
	case !isFlow(list) && (!last || earlierList != nil && isMissing(earlierList)):
		return d.removeLines(d.dashLine(list, list.Content[i]), list.Content[i]), nil
	}
	if list.Content = slices.Delete(list.Content, i, i+1); last {
		list.Style |= yaml.FlowStyle
	}
	return d.rewriteList(list), nil
}

// entryRange returns the place of an entry in a list in block style.
func (d *yamlDoc) entryRange(name string) (start, end int, ok bool) {
	i, list := d.findItem(name)
	if i < 0 || isFlow(list) {
		return 0, 0, false
	}
	start, end = d.offsetOf(list.Content[i]), d.blockEnds(list.Content[i])[0]
	return start, end, start >= 0 && start <= end
}

// rewriteList returns the possible texts (see document.setValue) with the list written
// again: in brackets if it was on one line.
func (d *yamlDoc) rewriteList(list *yaml.Node) [][]byte {
	if isFlow(d.root) {
		return d.rewrite(d.root, d.root, d.root)
	}
	if len(list.Content) > 0 && d.blockEnds(list)[0] > d.lineStart(list.Line) {
		list.Style &^= yaml.FlowStyle
	}
	key, _ := lookupNode(d.root, d.key)
	return d.rewrite(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, list}}, key, list)
}

// rewrite returns the texts with a node written again in place of the lines from the start of
// one node to the end of another. It omits texts that lose a comment.
func (d *yamlDoc) rewrite(n, from, to *yaml.Node) [][]byte {
	var texts [][]byte
	start := d.offsetOf(from)
	for _, end := range d.blockEnds(to) {
		if start < 0 || start > end {
			continue
		}
		old := d.src[start:end]
		walkNodes(n, func(each *yaml.Node) { // yaml.v3 can assign the comments around the text to a node in it
			for _, comment := range []*string{&each.HeadComment, &each.FootComment} {
				if first, _, _ := strings.Cut(*comment, "\n"); !bytes.Contains(old, []byte(first)) {
					*comment = ""
				}
			}
		})
		text := d.encode(n, "", strings.Repeat(" ", from.Column-1))
		if !bytes.HasSuffix(old, []byte("\n")) {
			text = strings.TrimRight(text, "\r\n")
		}
		if keepsComments(old, text) {
			texts = append(texts, applyEdits(d.src, edit{start, end, text}))
		}
	}
	return texts
}

// keepsComments reports whether each comment of a text is in another one.
func keepsComments(old []byte, text string) bool {
	for line := range bytes.Lines(old) {
		for i, c := range line {
			if c == '#' && (i == 0 || line[i-1] == ' ' || line[i-1] == '\t') && !strings.Contains(text, string(bytes.TrimSpace(line[i:]))) {
				return false
			}
		}
	}
	return true
}

// encode returns a node as lines, of which the first starts with first, and the others with
// indent.
func (d *yamlDoc) encode(n *yaml.Node, first, indent string) string {
	nl := newlineOf(d.src)
	var out strings.Builder
	for line := range strings.Lines(encodeYAML(n)) {
		if line = strings.TrimSuffix(line, "\n"); line != "" {
			line = first + line
		}
		out.WriteString(line + nl)
		first = indent
	}
	return out.String()
}

func encodeYAML(n *yaml.Node) string {
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if encoder.Encode(n) != nil || encoder.Close() != nil {
		return "" // not an entry, so that the edit is refused
	}
	return out.String()
}

// appendLines returns one text for each offset, with a node written there. An offset is the
// start of a line or the end of the text.
func (d *yamlDoc) appendLines(n *yaml.Node, first, indent string, offsets ...int) [][]byte {
	text := d.encode(n, first, indent)
	var texts [][]byte
	for _, at := range offsets {
		lead := ""
		if before := bytes.TrimPrefix(d.src[:at], bom); len(before) > 0 && before[len(before)-1] != '\n' {
			lead = newlineOf(d.src)
		}
		texts = append(texts, applyEdits(d.src, edit{at, at, lead + text}))
	}
	return texts
}

// removeLines returns the texts without the lines from a line to the end of a node.
func (d *yamlDoc) removeLines(line int, to *yaml.Node) [][]byte {
	var texts [][]byte
	for _, end := range d.blockEnds(to) {
		texts = append(texts, applyEdits(d.src, edit{d.lines[line-1], end, ""}))
	}
	return texts
}

// dashLine returns the line with the dash of an item, which can be before the item.
func (d *yamlDoc) dashLine(list, item *yaml.Node) int {
	line := item.Line
	for line > list.Line {
		text := d.line(line)
		if len(text) >= list.Column && text[list.Column-1] == '-' && len(bytes.Trim(text[:list.Column-1], " ")) == 0 {
			break
		}
		line--
	}
	return line
}

// newNode returns a value as a node.
func newNode(val any) *yaml.Node {
	n := &yaml.Node{}
	switch v := val.(type) {
	case []field:
		n.Kind = yaml.MappingNode
		for _, f := range v {
			n.Content = append(n.Content, newNode(f.key), newNode(f.val))
		}
	case []*yaml.Node:
		n.Kind, n.Content = yaml.SequenceNode, v
	default:
		_ = n.Encode(val) // texts can be encoded
		if n.Kind == yaml.SequenceNode {
			n.Style = yaml.FlowStyle
		}
	}
	return n
}

// setNode sets the value at a path of keys below a node. It adds missing mappings, and keeps
// comments.
func setNode(n *yaml.Node, path []string, val any) error {
	if len(path) > 0 {
		if isMissing(n) {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		if n.Kind != yaml.MappingNode {
			return errForm
		}
		name, value := lookupNode(n, path[0])
		if name == nil {
			value = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
			n.Content = append(n.Content, newNode(path[0]), value)
		}
		return setNode(value, path[1:], val)
	}
	with := newNode(val)
	for i, old := range n.Content[:min(len(n.Content), len(with.Content))] {
		if old.Kind == yaml.ScalarNode && old.Value == with.Content[i].Value {
			with.Content[i] = old
		}
	}
	if n.Kind != with.Kind || n.Kind == yaml.ScalarNode {
		n.Style = with.Style
	}
	n.Kind, n.Tag, n.Value, n.Alias, n.Content = with.Kind, with.Tag, with.Value, nil, with.Content
	return nil
}

func walkNodes(n *yaml.Node, visit func(*yaml.Node)) {
	visit(n)
	for _, child := range n.Content {
		walkNodes(child, visit)
	}
}

// offsetOf returns the offset of a node, or -1 if the text has line breaks that YAML counts
// and this editor does not.
func (d *yamlDoc) offsetOf(n *yaml.Node) int {
	if n.Line < 1 || n.Line > len(d.lines) || n.Column < 1 {
		return -1
	}
	at := d.lines[n.Line-1]
	for range n.Column - 1 {
		if at >= len(d.src) || d.src[at] == '\n' {
			return -1
		}
		_, size := utf8.DecodeRune(d.src[at:])
		at += size
	}
	return at
}

// blockEnds returns the offsets at which a line can follow a node: after its last line with
// content, and before the next node or the end of the text. The second offset is right if
// the node ends with a text that has blank lines or lines with #.
func (d *yamlDoc) blockEnds(n *yaml.Node) []int {
	first, limit := n.Line, len(d.lines)
	walkNodes(n, func(each *yaml.Node) { first = max(first, each.Line) })
	walkNodes(d.root, func(each *yaml.Node) {
		if each.Line > first {
			limit = min(limit, each.Line-1)
		}
	})
	last := limit
	for last > first && isBlank(d.line(last)) {
		last--
	}
	ends := []int{d.lineStart(last)}
	if limit != last {
		ends = append(ends, d.lineStart(limit))
	}
	return ends
}

// line returns a line by its number, which starts at 1.
func (d *yamlDoc) line(number int) []byte { return d.src[d.lines[number-1]:d.lineStart(number)] }

// lineStart returns the offset after a number of lines.
func (d *yamlDoc) lineStart(lines int) int {
	if lines >= len(d.lines) {
		return len(d.src)
	}
	return d.lines[lines]
}

// isBlank reports whether a line has no content: it is empty, a comment or the end of the
// document.
func isBlank(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#' || bytes.HasPrefix(line, []byte("..."))
}

// renderList returns the list of servers with one entry.
func renderList(key, name string, fields []field) string {
	entry := append([]field{{"name", name}}, fields...)
	return strings.TrimSpace(encodeYAML(newNode([]field{{key, []*yaml.Node{newNode(entry)}}})))
}
