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

	"github.com/guideway-dev/guideway/internal/jsontext"
	"go.yaml.in/yaml/v3"
)

// yamlReader turns yaml.v3's tree into ours. What JSON cannot say is refused:
// merge keys, tags of types of one's own, binary data, infinities, keys that are
// not scalars.
type yamlReader struct {
	*reporter
	limits  Limits
	columns columns
	// depth, nodes and texts are what has been read, aliases expanded.
	depth, nodes, texts int
	path                path
	// open holds the anchors being expanded, to find one that holds itself.
	open map[*yaml.Node]bool
}

// parseYAML reads a YAML text of one document.
func parseYAML(r *reporter, data []byte, limits Limits) (root *Node) {
	y := &yamlReader{reporter: r, limits: limits, columns: newColumns(data), open: map[*yaml.Node]bool{}}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case stop:
			root = nil
		default:
			// yaml.v3 has panicked on hostile input before: it is a finding,
			// not the end of the process.
			r.report(Diagnostic{
				Code: CodeYAMLSyntax, Message: fmt.Sprintf("the YAML cannot be read: %v", reason),
				Fix: "simplify the file, or write the definition in JSON",
			})
			root = nil
		}
	}()
	document := y.decode(data)
	return y.value(document)
}

// decode lets yaml.v3 read the text and makes sure that it is one document.
func (y *yamlReader) decode(data []byte) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, more yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) || err == nil && len(document.Content) == 0 {
		y.report(Diagnostic{
			Code: CodeEmpty, Message: "the file is empty: it holds comments at most",
			Fix: "write a definition into it, or delete it",
		})
		panic(stop{})
	}
	if err != nil {
		y.syntax(err)
	}
	switch err := decoder.Decode(&more); {
	case errors.Is(err, io.EOF):
	case err != nil:
		y.syntax(err)
	default:
		y.stop(&more, CodeYAMLMany, "the file holds more than one document", "put each definition into a file of its own, without a line of ---")
	}
	return document.Content[0]
}

// syntax turns an error of yaml.v3 into a finding and ends the reading.
func (y *yamlReader) syntax(err error) {
	message := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if m := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message); m != nil {
		line, _ = strconv.Atoi(m[1])
		message = message[len(m[0]):]
	}
	y.report(Diagnostic{Code: CodeYAMLSyntax, Line: line, Message: "the YAML cannot be read: " + message, Fix: yamlFix(message)})
	panic(stop{})
}

// yamlFix says how to mend yaml.v3's commonest complaints.
func yamlFix(message string) string {
	switch {
	case strings.Contains(message, "mapping values are not allowed"):
		return "put a text that holds ': ' in quotes, or write it as a block after '|'"
	case strings.Contains(message, "found character that cannot start any token"):
		return "indent with spaces, not tabs; put a text that begins with @, ` or % in quotes"
	case strings.Contains(message, "did not find expected"):
		return "check the indentation, the quotes and the brackets on this line and the one before"
	case strings.Contains(message, "unknown anchor"):
		return "define the anchor with & before it is used, or put the text in quotes"
	case strings.Contains(message, "tab"):
		return "indent with spaces"
	default:
		return "check the indentation, the quotes and the brackets on this line"
	}
}

// stop reports a finding at a node and ends the reading.
func (y *yamlReader) stop(n *yaml.Node, code, message, fix string) {
	y.refuse(n, code, message, fix)
	panic(stop{})
}

// refuse reports a finding at a node.
func (y *yamlReader) refuse(n *yaml.Node, code, message, fix string) {
	y.report(Diagnostic{
		Code: code, Line: n.Line, Column: y.columns.bytes(n.Line, n.Column),
		Pointer: y.path.pointer(), Message: message, Fix: fix,
	})
}

// value turns one node, aliases expanded, into ours.
func (y *yamlReader) value(n *yaml.Node) *Node {
	y.nodes++
	if y.nodes > y.limits.MaxNodes {
		y.stop(n, CodeNodes, fmt.Sprintf("the document has more than %d values, aliases expanded", y.limits.MaxNodes), "split the definition; write less with aliases")
	}
	y.texts += len(n.Value)
	if y.texts > y.limits.MaxBytes {
		y.stop(n, CodeNodes, fmt.Sprintf("the document's texts come to more than %d bytes, aliases expanded", y.limits.MaxBytes), "split the definition; write less with aliases")
	}
	out := &Node{Line: n.Line, Column: y.columns.bytes(n.Line, n.Column)}
	switch n.Kind {
	case yaml.AliasNode:
		return y.alias(n)
	case yaml.MappingNode:
		y.tag(n, "!!map")
		y.inside(n, func() { y.mapping(n, out) })
	case yaml.SequenceNode:
		y.tag(n, "!!seq")
		y.inside(n, func() { y.sequence(n, out) })
	default:
		y.scalar(n, out)
	}
	return out
}

// alias expands an alias where it stands.
func (y *yamlReader) alias(n *yaml.Node) *Node {
	if n.Alias == nil || y.open[n.Alias] {
		y.stop(n, CodeYAMLAlias, fmt.Sprintf("the alias *%s stands inside what it names", n.Value), "write the value out")
	}
	y.open[n.Alias] = true
	out := y.value(n.Alias)
	delete(y.open, n.Alias)
	return out
}

// inside goes one level down.
func (y *yamlReader) inside(n *yaml.Node, read func()) {
	y.depth++
	if y.depth > y.limits.MaxDepth {
		y.stop(n, CodeDepth, fmt.Sprintf("sequences and mappings nest deeper than %d levels here", y.limits.MaxDepth), "flatten the structure")
	}
	if n.Anchor != "" && !y.open[n] {
		y.open[n] = true
		defer delete(y.open, n)
	}
	y.path = append(y.path, step{unread: true})
	read()
	y.path = y.path[:len(y.path)-1]
	y.depth--
}

// sequence reads a sequence's elements.
func (y *yamlReader) sequence(n *yaml.Node, out *Node) {
	out.Kind = Array
	out.Items = make([]*Node, 0, len(n.Content))
	for i, item := range n.Content {
		y.path[len(y.path)-1] = step{index: i, array: true}
		out.Items = append(out.Items, y.value(item))
	}
}

// mapping reads a mapping's members.
func (y *yamlReader) mapping(n *yaml.Node, out *Node) {
	out.Kind = Object
	out.Members = make([]Member, 0, len(n.Content)/2)
	var seen keys
	for i := 0; i+1 < len(n.Content); i += 2 {
		y.path[len(y.path)-1] = step{unread: true}
		key := y.key(n.Content[i])
		y.texts += len(key.Value)
		m := Member{Key: key.Value, Line: key.Line, Column: y.columns.bytes(key.Line, key.Column)}
		y.path[len(y.path)-1] = step{key: m.Key}
		first := seen.find(out.Members, m.Key)
		if first >= 0 {
			y.duplicate(y.path.pointer(), m.Key, m.Line, m.Column, out.Members[first].Line)
		}
		m.Value = y.value(n.Content[i+1])
		if first < 0 {
			out.Members = append(out.Members, m)
		}
	}
}

// key checks a mapping's key: a scalar, whose text is the key.
func (y *yamlReader) key(n *yaml.Node) *yaml.Node {
	key := n
	if n.Kind == yaml.AliasNode && n.Alias != nil {
		key = n.Alias
	}
	if key.Kind != yaml.ScalarNode {
		y.stop(n, CodeYAMLKey, "a key is a list or a mapping", "use a text as the key")
	}
	switch key.ShortTag() {
	case "!!merge":
		y.stop(n, CodeYAMLMerge, "the merge key << is refused: YAML 1.2 dropped it, and readers differ in what it means", "write the members out, or use an alias for each value")
	case "!!null":
		if key.Value == "" {
			y.stop(n, CodeYAMLKey, "a key is missing before ':'", "write the key; put a text that holds ': ' in quotes")
		}
	case "!!binary":
		y.stop(n, CodeYAMLKey, "a key is binary data", "use a text as the key")
	}
	return key
}

// tag refuses a collection of another type than JSON's.
func (y *yamlReader) tag(n *yaml.Node, usual string) {
	if tag := n.ShortTag(); tag != usual {
		y.refuse(n, CodeYAMLTag, fmt.Sprintf("the type %s is not known here", tag), "remove the tag")
	}
}

// scalar reads a scalar by the type that yaml.v3 resolves it to. Timestamps stay
// the text that they are.
func (y *yamlReader) scalar(n *yaml.Node, out *Node) {
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!timestamp":
		out.Kind, out.Text = String, n.Value
		if strings.IndexByte(n.Value, 0) >= 0 {
			y.refuse(n, CodeNUL, "the text holds a NUL (\\0), which no text has and stores cut off", "remove it")
		}
		if !utf8.ValidString(n.Value) {
			y.refuse(n, CodeEncoding, "an escape in this text does not give valid UTF-8", "write the character itself")
		}
	case "!!null":
		out.Kind = Null
	case "!!bool":
		out.Kind = Bool
		if err := n.Decode(&out.Flag); err != nil {
			y.refuse(n, CodeYAMLTag, fmt.Sprintf("%s is not a boolean", excerpt(n.Value)), "write true or false")
		}
	case "!!int", "!!float":
		out.Kind = Number
		y.number(n, out)
	default:
		y.refuse(n, CodeYAMLTag, fmt.Sprintf("the type %s is not known here", tag), "remove the tag; put a text that begins with '!' in quotes")
	}
}

// number reads a number in any of YAML's notations.
func (y *yamlReader) number(n *yaml.Node, out *Node) {
	var value any
	if err := n.Decode(&value); err != nil {
		y.refuse(n, CodeYAMLNumber, fmt.Sprintf("%s is not a number", excerpt(n.Value)), "write a decimal number, or put the text in quotes")
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
		y.refuse(n, CodeNumberRange, fmt.Sprintf("%s is not a finite number", excerpt(n.Value)), "write a finite number or null; put a text in quotes")
		out.Num = 0
	}
	out.Text = n.Value
	if !isJSONNumber(out.Text) {
		out.Text = string(jsontext.AppendNumber(nil, out.Num))
	}
}

// isJSONNumber says whether the text is a number in JSON too.
func isJSONNumber(text string) bool {
	rest := strings.TrimPrefix(text, "-")
	digits := strings.TrimLeft(rest, "0123456789")
	whole := rest[:len(rest)-len(digits)]
	if whole == "" || len(whole) > 1 && whole[0] == '0' {
		return false
	}
	if fraction, ok := strings.CutPrefix(digits, "."); ok {
		digits = strings.TrimLeft(fraction, "0123456789")
		if digits == fraction {
			return false
		}
	}
	if digits == "" {
		return true
	}
	if digits[0] != 'e' && digits[0] != 'E' {
		return false
	}
	exponent := digits[1:]
	if exponent != "" && (exponent[0] == '+' || exponent[0] == '-') {
		exponent = exponent[1:]
	}
	return exponent != "" && strings.Trim(exponent, "0123456789") == ""
}

// columns turns yaml.v3's columns, which count characters, into bytes. In a text
// of ASCII they are the same.
type columns struct {
	// runes holds the offset of every character, lines the number of the
	// character that each line begins with.
	runes, lines []int32
}

// newColumns indexes the text, a line ending as YAML has it.
func newColumns(data []byte) columns {
	if !slices.ContainsFunc(data, func(c byte) bool { return c >= utf8.RuneSelf }) {
		return columns{}
	}
	c := columns{lines: []int32{0}}
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

// bytes gives the column in bytes.
func (c *columns) bytes(line, column int) int {
	if c.lines == nil || line < 1 || line > len(c.lines) {
		return column
	}
	first := int(c.lines[line-1])
	at := min(first+max(column, 1)-1, len(c.runes)-1)
	return int(c.runes[at]-c.runes[first]) + 1
}
