package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// errYAMLForm is returned if an edit could change more than the entry.
var errYAMLForm = errors.New("the list of servers is written in a form that cannot be edited safely")

// yamlDoc is a parsed YAML document with the offsets of its nodes.
type yamlDoc struct {
	src []byte
	// root is the mapping of the document. It is nil if the document is empty.
	root *yaml.Node
	// tree is the document as values.
	tree map[string]any
	// lines are the offsets of the lines, and nodes the nodes in the order of the text.
	lines []int
	nodes []*yaml.Node
}

// readYAML parses a file with at most one document, which is a mapping. Its error is a
// *syntaxError.
func readYAML(src []byte) (d *yamlDoc, err error) {
	defer func() {
		if reason := recover(); reason != nil { // yaml.v3 can panic on malicious input
			d, err = nil, &syntaxError{message: fmt.Sprintf("the YAML cannot be read: %v", reason)}
		}
	}()
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return nil, &syntaxError{1, 1, "the file is UTF-16, not UTF-8"}
	}
	d = &yamlDoc{src: src, tree: map[string]any{}}
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
	if len(document.Content) == 0 || isNull(document.Content[0]) && document.Content[0].Value == "" {
		return d, nil
	}
	if d.root = document.Content[0]; d.root.Kind != yaml.MappingNode {
		return nil, &syntaxError{d.root.Line, d.root.Column, "the document is not a mapping"}
	}
	if err := document.Decode(&d.tree); err != nil { // a key that occurs twice
		return nil, yamlError(err)
	}
	d.collectNodes(d.root)
	return d, nil
}

// yamlError returns the position and the message of an error of yaml.v3.
func yamlError(err error) error {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	message = strings.TrimSpace(strings.TrimPrefix(message, "unmarshal errors:"))
	message, _, _ = strings.Cut(message, "\n")
	s := &syntaxError{message: message}
	if n, _ := fmt.Sscanf(message, "line %d:", &s.line); n == 1 {
		_, message, _ = strings.Cut(message, ": ")
		s.message = message
	}
	return s
}

func (d *yamlDoc) collectNodes(n *yaml.Node) {
	d.nodes = append(d.nodes, n)
	for _, child := range n.Content {
		d.collectNodes(child)
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

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

// textAt returns the text of a member of a mapping, or "".
func textAt(n *yaml.Node, key string) string {
	_, value := lookupNode(n, key)
	if value != nil && value.Kind == yaml.AliasNode {
		value = value.Alias
	}
	if value == nil || value.Kind != yaml.ScalarNode {
		return ""
	}
	return value.Value
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
		for at++; at < len(d.src) && d.src[at]&0xc0 == 0x80; {
			at++
		}
	}
	return at
}

// endOf returns the end of a scalar or of a collection in brackets, or -1 if it cannot be
// found.
func (d *yamlDoc) endOf(n *yaml.Node) int {
	at := d.offsetOf(n)
	if at < 0 {
		return -1
	}
	rest := d.src[at:]
	switch {
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		return d.endOfQuoted(at)
	case n.Kind == yaml.ScalarNode && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0:
		if bytes.HasPrefix(rest, []byte(n.Value)) {
			return at + len(n.Value)
		}
	case n.Kind == yaml.AliasNode && bytes.HasPrefix(rest, []byte("*"+n.Value)):
		return at + 1 + len(n.Value)
	case isFlow(n) && len(rest) > 0 && (rest[0] == '[' || rest[0] == '{'):
		at++
		for _, child := range n.Content {
			end := d.endOf(child)
			if end < 0 {
				return -1
			}
			at = max(at, end)
		}
		return d.endOfFlow(at)
	}
	return -1
}

// endOfQuoted returns the end of a quoted scalar, or -1.
func (d *yamlDoc) endOfQuoted(at int) int {
	if at >= len(d.src) {
		return -1
	}
	quote := d.src[at]
	if quote != '\'' && quote != '"' {
		return -1
	}
	for i := at + 1; i < len(d.src); i++ {
		switch {
		case d.src[i] == '\\' && quote == '"':
			i++
		case d.src[i] == quote && quote == '\'' && i+1 < len(d.src) && d.src[i+1] == quote:
			i++
		case d.src[i] == quote:
			return i + 1
		}
	}
	return -1
}

// endOfFlow returns the end of a collection whose last child ends at or before pos, or -1.
func (d *yamlDoc) endOfFlow(pos int) int {
	for pos < len(d.src) {
		switch d.src[pos] {
		case ' ', '\t', '\r', '\n', ',', ':':
			pos++
		case '#':
			pos = lineEnd(d.src, pos)
		case ']', '}':
			return pos + 1
		default:
			return -1
		}
	}
	return -1
}

// nextNode returns the first node after a node and its children, or nil.
func (d *yamlDoc) nextNode(n *yaml.Node) *yaml.Node {
	count := 0
	var visit func(*yaml.Node)
	visit = func(n *yaml.Node) {
		count++
		for _, child := range n.Content {
			visit(child)
		}
	}
	visit(n)
	for i, each := range d.nodes {
		if each == n && i+count < len(d.nodes) {
			return d.nodes[i+count]
		}
	}
	return nil
}

// blockEnds returns the offsets at which a line can follow a node in block style: after its
// last line with content, and before the next node or the end of the text. The second is
// right if the node ends with a text that has blank lines or lines with #.
func (d *yamlDoc) blockEnds(n *yaml.Node) []int {
	limit, first := len(d.lines), n.Line
	if next := d.nextNode(n); next != nil {
		limit = next.Line - 1
	}
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

// indentOf returns the spaces before a node in its line, or an error if there is other text.
func (d *yamlDoc) indentOf(n *yaml.Node) (string, error) {
	at := d.offsetOf(n)
	if at < 0 {
		return "", errYAMLForm
	}
	before := string(d.src[d.lines[n.Line-1]:at])
	if strings.Trim(before, " ") != "" {
		return "", errYAMLForm
	}
	return before, nil
}

// quoteYAML returns a YAML scalar that is a text in every schema.
func quoteYAML(s string) string {
	word := strings.ToLower(s)
	plain := s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !strings.ContainsRune("/-_.@", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) && (word[0] == '/' || word[0] >= 'a' && word[0] <= 'z')
	switch word {
	case "true", "false", "yes", "no", "on", "off", "y", "n", "null":
		plain = false
	}
	if plain {
		return s
	}
	var out strings.Builder
	for _, r := range quoteJSON(s) {
		if r < unicode.MaxASCII || unicode.IsPrint(r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\U%08X`, r)
		}
	}
	return out.String()
}

// blockLines returns members in block style, one per line, with the indentation.
func blockLines(fields []field, indent string) []string {
	var lines []string
	for _, f := range fields {
		head := indent + quoteYAML(f.key) + ":"
		switch v := f.val.(type) {
		case []field:
			lines = append(append(lines, head), blockLines(v, indent+"  ")...)
		default:
			lines = append(lines, head+" "+flowValue(v))
		}
	}
	return lines
}

// flowValue returns a value on one line.
func flowValue(val any) string {
	switch v := val.(type) {
	case string:
		return quoteYAML(v)
	case bool:
		return strconv.FormatBool(v)
	case []string:
		parts := make([]string, len(v))
		for i, s := range v {
			parts[i] = quoteYAML(s)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []field:
		parts := make([]string, len(v))
		for i, f := range v {
			parts[i] = quoteYAML(f.key) + ": " + flowValue(f.val)
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	return "null"
}
