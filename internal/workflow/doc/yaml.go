package doc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"go.yaml.in/yaml/v3"
)

// yamlReader converts the tree of yaml.v3. It rejects features without a JSON equivalent,
// such as merge keys, custom tags, infinities and keys that are not scalars.
type yamlReader struct {
	*reporter
	limits  Limits
	columns columnIndex
	// depth is the current depth. nodes and texts are the totals so far, after the
	// expansion of aliases.
	depth, nodes, texts int
	path                pathSteps
	// open holds the anchors that are being expanded, to detect an anchor that contains
	// itself.
	open map[*yaml.Node]bool
}

// parseYAML parses a YAML text with one document.
func parseYAML(r *reporter, data []byte, limits Limits) (root *Node) {
	y := &yamlReader{reporter: r, limits: limits, columns: newColumnIndex(data), open: map[*yaml.Node]bool{}}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case stopReading:
			root = nil
		default:
			// yaml.v3 can panic on malicious input, so a panic becomes a diagnostic.
			r.addDiagnostic(Diagnostic{
				Code: CodeYAMLSyntax, Message: fmt.Sprintf("the YAML cannot be read: %v", reason),
				Fix: "put each string that contains ': ' or begins with '? ' in quotes, or write the definition in JSON",
			})
			root = nil
		}
	}()
	document := y.decodeDocument(data)
	return y.convertNode(document)
}

// decodeDocument decodes the text with yaml.v3 and checks that it contains one document.
func (y *yamlReader) decodeDocument(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		y.addDiagnostic(Diagnostic{
			Code: CodeEmpty, Message: "the file is empty: it contains no data, only comments or white space",
			Fix: "write a definition into the file, or delete the file",
		})
		panic(stopReading{})
	}
	if err != nil {
		y.failSyntax(err)
	}
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		y.failSyntax(err)
	default:
		y.failAt(&more, CodeYAMLMany, "the file contains more than one document", "put each definition into its own file, without a '---' line")
	}
	return document.Content[0]
}

// failSyntax reports an error of yaml.v3 as a diagnostic and ends parsing.
func (y *yamlReader) failSyntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
	}
	y.addDiagnostic(Diagnostic{Code: CodeYAMLSyntax, Line: line, Message: "the YAML cannot be read: " + message, Fix: yamlFix(message)})
	panic(stopReading{})
}

// yamlFix returns the fix for a common error of yaml.v3.
func yamlFix(message string) string {
	switch {
	case strings.Contains(message, "mapping values are not allowed"):
		return "put a string that contains ': ' in quotes, or write it as a block after '|'"
	case strings.Contains(message, "found character that cannot start any token"):
		return "indent with spaces, not tabs; put a string that starts with @, ` or % in quotes"
	case strings.Contains(message, "did not find expected"):
		return "check the indentation, the quotes and the brackets of this line and the line before; put a string that contains ': ' or begins with '? ' in quotes"
	case strings.Contains(message, "unknown anchor"):
		return "define the anchor with & before it is used, or put the value in quotes"
	case strings.Contains(message, "tab"):
		return "indent with spaces"
	default:
		return "check the indentation, the quotes and the brackets; put a string that contains ': ' or begins with '? ' in quotes"
	}
}

// failAt reports a diagnostic at a node and ends parsing.
func (y *yamlReader) failAt(n *yaml.Node, code, message, fix string) {
	y.reportAt(n, code, message, fix)
	panic(stopReading{})
}

// reportAt reports a diagnostic at a node.
func (y *yamlReader) reportAt(n *yaml.Node, code, message, fix string) {
	y.addDiagnostic(Diagnostic{
		Code: code, Line: n.Line, Column: y.columns.byteColumn(n.Line, n.Column),
		Pointer: y.path.toPointer(), Message: message, Fix: fix,
	})
}

// convertNode converts one node and expands aliases.
func (y *yamlReader) convertNode(n *yaml.Node) *Node {
	y.nodes++
	if y.nodes > y.limits.MaxNodes {
		y.failAt(n, CodeNodes, fmt.Sprintf("the document has more than %d values, aliases expanded", y.limits.MaxNodes), "split the definition, or use fewer aliases")
	}
	y.texts += len(n.Value)
	if y.texts > y.limits.MaxBytes {
		y.failAt(n, CodeNodes, fmt.Sprintf("the document's texts are larger than %d bytes, aliases expanded", y.limits.MaxBytes), "split the definition, or use fewer aliases")
	}
	out := &Node{Line: n.Line, Column: y.columns.byteColumn(n.Line, n.Column)}
	switch n.Kind {
	case yaml.AliasNode:
		return y.expandAlias(n)
	case yaml.MappingNode:
		y.checkTag(n, "!!map")
		y.enterLevel(n, func() { y.readMapping(n, out) })
	case yaml.SequenceNode:
		y.checkTag(n, "!!seq")
		y.enterLevel(n, func() { y.readSequence(n, out) })
	default:
		y.readScalar(n, out)
	}
	return out
}

// expandAlias converts the value of an alias.
func (y *yamlReader) expandAlias(n *yaml.Node) *Node {
	if y.open[n.Alias] {
		y.failAt(n, CodeYAMLAlias, fmt.Sprintf("the alias *%s refers to a value that contains it", n.Value), "write the value in place of the alias")
	}
	y.open[n.Alias] = true
	out := y.convertNode(n.Alias)
	delete(y.open, n.Alias)
	return out
}

// enterLevel checks the depth limit, and calls read one level deeper.
func (y *yamlReader) enterLevel(n *yaml.Node, read func()) {
	y.depth++
	if y.depth > y.limits.MaxDepth {
		y.failAt(n, CodeDepth, fmt.Sprintf("sequences and mappings are nested deeper than %d levels", y.limits.MaxDepth), "flatten the structure")
	}
	if n.Anchor != "" && !y.open[n] {
		y.open[n] = true
		defer delete(y.open, n)
	}
	y.path = append(y.path, pathStep{unread: true})
	read()
	y.path = y.path[:len(y.path)-1]
	y.depth--
}

// readSequence reads a sequence's elements.
func (y *yamlReader) readSequence(n *yaml.Node, out *Node) {
	out.Kind = Array
	out.Items = make([]*Node, 0, len(n.Content))
	for i, item := range n.Content {
		y.path[len(y.path)-1] = pathStep{index: i, array: true}
		out.Items = append(out.Items, y.convertNode(item))
	}
}

// readMapping reads a mapping's members.
func (y *yamlReader) readMapping(n *yaml.Node, out *Node) {
	out.Kind = Object
	out.Members = make([]Member, 0, len(n.Content)/2)
	var seen keySet
	for i := 0; i+1 < len(n.Content); i += 2 {
		y.path[len(y.path)-1] = pathStep{unread: true}
		key := y.checkKey(n.Content[i])
		y.texts += len(key.Value)
		m := Member{Key: key.Value, Line: key.Line, Column: y.columns.byteColumn(key.Line, key.Column)}
		y.path[len(y.path)-1] = pathStep{key: m.Key}
		first := seen.findKey(out.Members, m.Key)
		if first >= 0 {
			y.addDuplicateKey(y.path.toPointer(), m.Key, m.Line, m.Column, out.Members[first].Line)
		}
		m.Value = y.convertNode(n.Content[i+1])
		if first < 0 {
			out.Members = append(out.Members, m)
		}
	}
}

// checkKey returns a mapping's key, which must be a scalar.
func (y *yamlReader) checkKey(n *yaml.Node) *yaml.Node {
	key := n
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		key = n.Alias
	}
	if key.Kind != yaml.ScalarNode {
		y.failAt(n, CodeYAMLKey, "a key is a list or a mapping", "use a string as the key")
	}
	switch key.ShortTag() {
	case "!!merge":
		y.failAt(n, CodeYAMLMerge, "the merge key << is not supported: YAML 1.2 removed it, and parsers interpret it differently", "write the members out, or use an alias for each value")
	case "!!null":
		if key.Value == "" {
			y.failAt(n, CodeYAMLKey, "a key is missing before ':'", "write the key; put a string that contains ': ' in quotes")
		}
	case "!!binary":
		y.failAt(n, CodeYAMLKey, "a key is binary data", "use a string as the key")
	}
	return key
}

// checkTag rejects a collection with a tag that JSON does not have.
func (y *yamlReader) checkTag(n *yaml.Node, usual string) {
	if tag := n.ShortTag(); tag != usual {
		y.reportAt(n, CodeYAMLTag, fmt.Sprintf("the type %s is not supported", tag), "remove the tag")
	}
}

// readScalar reads a scalar of the type that yaml.v3 resolves. Timestamps stay strings.
func (y *yamlReader) readScalar(n *yaml.Node, out *Node) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		out.Kind, out.Text = String, n.Value
		if strings.IndexByte(n.Value, 0) >= 0 {
			y.reportAt(n, CodeNUL, "the string contains a NUL (\\0), which is not allowed", "remove the NUL")
		}
		if !utf8.ValidString(n.Value) {
			y.reportAt(n, CodeEncoding, "an escape in the string is not valid UTF-8", "write the character itself instead of the escape")
		}
	case "!!null":
		out.Kind = Null
	case "!!bool":
		out.Kind = Bool
		if err := n.Decode(&out.Flag); err != nil {
			y.reportAt(n, CodeYAMLTag, fmt.Sprintf("%s is not a boolean", excerpt(n.Value)), "write true or false")
		}
	case "!!int", "!!float":
		out.Kind = Number
		y.readNumber(n, out)
	default:
		y.reportAt(n, CodeYAMLTag, fmt.Sprintf("the type %s is not supported", tag), "remove the tag; put a string that starts with '!' in quotes")
	}
}

// readNumber reads a number in any YAML notation.
func (y *yamlReader) readNumber(n *yaml.Node, out *Node) {
	var value any
	if err := n.Decode(&value); err != nil {
		y.reportAt(n, CodeYAMLNumber, fmt.Sprintf("%s is not a value of the type %s", excerpt(n.Value), n.ShortTag()), "remove the tag, or write a value of its type")
		return
	}
	switch v := value.(type) {
	case int:
		out.Num = float64(v)
	case int64:
		out.Num = float64(v)
	case uint64:
		out.Num = float64(v)
	case float64:
		out.Num = v
	}
	if math.IsInf(out.Num, 0) || math.IsNaN(out.Num) {
		y.reportAt(n, CodeNumberRange, fmt.Sprintf("%s is not a finite number", excerpt(n.Value)), "write a finite number or null; put a string in quotes")
		out.Num = 0
	}
	out.Text = n.Value
	if !jsontext.IsNumber(out.Text) {
		out.Text = string(jsontext.AppendNumber(nil, out.Num))
	}
}

// columnIndex converts the columns of yaml.v3, which count characters, to bytes. In ASCII
// texts they are equal.
type columnIndex struct {
	// runes holds the offset of every character, lines the index of the first character of
	// each line.
	runes, lines []int32
}

// newColumnIndex indexes the text with the line endings of YAML.
func newColumnIndex(data []byte) columnIndex {
	if !slices.ContainsFunc(data, func(c byte) bool { return c >= utf8.RuneSelf }) {
		return columnIndex{}
	}
	c := columnIndex{lines: []int32{0}}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		c.runes = append(c.runes, int32(i))
		i += size
		ends := r == '\n' || r == '\u0085' || r == '\u2028' || r == '\u2029' ||
			r == '\r' && (i == len(data) || data[i] != '\n')
		if ends {
			c.lines = append(c.lines, int32(len(c.runes)))
		}
	}
	c.runes = append(c.runes, int32(len(data)))
	return c
}

// byteColumn returns the column in bytes.
func (c *columnIndex) byteColumn(line, column int) int {
	if c.lines == nil || line < 1 || line > len(c.lines) {
		return column
	}
	first := int(c.lines[line-1])
	at := min(first+max(column, 1)-1, len(c.runes)-1)
	return int(c.runes[at]-c.runes[first]) + 1
}
