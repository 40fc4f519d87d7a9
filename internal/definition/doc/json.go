package doc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonReader reads RFC 8259 JSON in one pass. The text is valid UTF-8.
type jsonReader struct {
	*reporter
	text   string
	limits Limits
	// pos is the next byte; line is its line and start that line's offset.
	pos, line, start int
	depth, nodes     int
	path             path
	// slab holds the nodes to come: one allocation for many.
	slab []Node
	// scratch is for a string that has escapes, members and items for those of
	// the objects and arrays that are being read.
	scratch []byte
	members []Member
	items   []*Node
}

// stop ends the reading after a finding that leaves nothing to go on with.
type stop struct{}

// parseJSON reads a JSON text.
func parseJSON(r *reporter, data []byte, limits Limits) (root *Node) {
	j := &jsonReader{reporter: r, text: string(data), limits: limits, line: 1}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case stop:
			root = nil
		default:
			panic(reason)
		}
	}()
	root = j.value()
	j.space()
	if j.pos < len(j.text) {
		j.trailing()
	}
	return root
}

// node makes the node of a value that begins here.
func (j *jsonReader) node(kind Kind) *Node {
	j.nodes++
	if j.nodes > j.limits.MaxNodes {
		j.fail(CodeNodes, j.pos, fmt.Sprintf("the document has more than %d values", j.limits.MaxNodes), "split the definition")
	}
	if len(j.slab) == 0 {
		j.slab = make([]Node, 64)
	}
	n := &j.slab[0]
	j.slab = j.slab[1:]
	n.Kind, n.Line, n.Column = kind, j.line, j.pos-j.start+1
	return n
}

// space skips white space and counts lines.
func (j *jsonReader) space() {
	for j.pos < len(j.text) {
		switch j.text[j.pos] {
		case '\n':
			j.line++
			j.start = j.pos + 1
		case ' ', '\t', '\r':
		default:
			return
		}
		j.pos++
	}
}

// value reads one value of any kind.
func (j *jsonReader) value() *Node {
	j.space()
	if j.pos >= len(j.text) {
		j.unexpected("a value")
	}
	switch c := j.text[j.pos]; {
	case c == '"':
		n := j.node(String)
		n.Text = j.string()
		return n
	case c == '{':
		return j.object()
	case c == '[':
		return j.array()
	case c == '-' || c >= '0' && c <= '9':
		return j.number()
	default:
		return j.literal()
	}
}

// literal reads true, false and null.
func (j *jsonReader) literal() *Node {
	rest := j.text[j.pos:]
	for _, known := range [...]struct {
		text string
		kind Kind
		flag bool
	}{{"true", Bool, true}, {"false", Bool, false}, {"null", Null, false}} {
		if strings.HasPrefix(rest, known.text) && wordLength(rest) == len(known.text) {
			n := j.node(known.kind)
			n.Flag = known.flag
			j.pos += len(known.text)
			return n
		}
	}
	j.unexpected("a value")
	return nil
}

// enter goes one level down and checks the limit.
func (j *jsonReader) enter() {
	j.depth++
	if j.depth > j.limits.MaxDepth {
		j.fail(CodeDepth, j.pos, fmt.Sprintf("arrays and objects nest deeper than %d levels here", j.limits.MaxDepth), "flatten the structure")
	}
	j.path = append(j.path, step{unread: true})
}

// leave goes one level up.
func (j *jsonReader) leave() {
	j.depth--
	j.path = j.path[:len(j.path)-1]
}

// array reads an array whose bracket is next.
func (j *jsonReader) array() *Node {
	n, base := j.node(Array), len(j.items)
	j.enter()
	j.pos++
	for {
		j.space()
		if j.next(']') {
			break
		}
		j.path[len(j.path)-1] = step{index: len(j.items) - base, array: true}
		item := j.value()
		j.items = append(j.items, item)
		if j.separator(n, ']') {
			break
		}
	}
	j.leave()
	n.Items = slices.Clone(j.items[base:])
	j.items = j.items[:base]
	return n
}

// object reads an object whose brace is next.
func (j *jsonReader) object() *Node {
	n, base := j.node(Object), len(j.members)
	j.enter()
	j.pos++
	var seen keys
	for {
		j.space()
		if j.next('}') {
			break
		}
		j.member(n, base, &seen)
		if j.separator(n, '}') {
			break
		}
	}
	j.leave()
	n.Members = slices.Clone(j.members[base:])
	j.members = j.members[:base]
	return n
}

// member reads a key, a colon and a value. Those of the object that were read
// before begin at base.
func (j *jsonReader) member(n *Node, base int, seen *keys) {
	j.path[len(j.path)-1] = step{unread: true}
	if j.pos >= len(j.text) || j.text[j.pos] != '"' {
		j.badKey(n)
	}
	m := Member{Line: j.line, Column: j.pos - j.start + 1}
	m.Key = j.string()
	j.path[len(j.path)-1] = step{key: m.Key}
	first := seen.find(j.members[base:], m.Key)
	if first >= 0 {
		j.duplicate(j.path.pointer(), m.Key, m.Line, m.Column, j.members[base+first].Line)
	}
	j.space()
	if !j.next(':') {
		j.badColon(m.Key)
	}
	m.Value = j.value()
	if first < 0 {
		j.members = append(j.members, m)
		n.Members = j.members[base:] // until the object ends
	}
}

// next skips the byte if it is next.
func (j *jsonReader) next(c byte) bool {
	if j.pos < len(j.text) && j.text[j.pos] == c {
		j.pos++
		return true
	}
	return false
}

// separator reads what follows an element; true means that the closing bracket
// was next.
func (j *jsonReader) separator(n *Node, closing byte) bool {
	j.space()
	if j.next(closing) {
		return true
	}
	comma := j.pos
	if !j.next(',') {
		j.badSeparator(n, closing)
	}
	line, start := j.line, j.start
	j.space()
	if j.pos < len(j.text) && j.text[j.pos] == closing {
		j.report(Diagnostic{
			Code: CodeJSONSyntax, Line: line, Column: comma - start + 1, Pointer: j.parent(),
			Message: fmt.Sprintf("there is a comma before the closing '%c'", closing),
			Fix:     "remove the comma",
		})
	}
	return false
}

// number reads a number whose first byte is next.
func (j *jsonReader) number() *Node {
	n := j.node(Number)
	begin := j.pos
	j.next('-')
	switch {
	case j.next('0'):
		if j.digits() > 0 {
			j.fail(CodeJSONSyntax, begin, "a number cannot begin with a zero", "leave out the leading zero, or put the text in double quotes")
		}
	case j.digits() == 0:
		j.fail(CodeJSONSyntax, begin, "there is no digit after the minus sign", "write a number such as -1")
	}
	if j.next('.') && j.digits() == 0 {
		j.fail(CodeJSONSyntax, begin, "there is no digit after the decimal point", "write a number such as 1.0")
	}
	if j.next('e') || j.next('E') {
		if !j.next('+') {
			j.next('-')
		}
		if j.digits() == 0 {
			j.fail(CodeJSONSyntax, begin, "there is no digit in the exponent", "write a number such as 1e9")
		}
	}
	if rest := wordLength(j.text[j.pos:]); rest > 0 {
		j.fail(CodeJSONSyntax, begin, fmt.Sprintf("%s is not a number", excerpt(j.text[begin:j.pos+rest])), "write a decimal number, or put the text in double quotes")
	}
	n.Text = j.text[begin:j.pos]
	value, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		j.report(Diagnostic{
			Code: CodeNumberRange, Line: n.Line, Column: n.Column, Pointer: j.path.pointer(),
			Message: fmt.Sprintf("the number %s is too large", excerpt(n.Text)),
			Fix:     "write a number below 1.8e308",
		})
	}
	n.Num = value
	return n
}

// digits skips digits and says how many.
func (j *jsonReader) digits() int {
	begin := j.pos
	for j.pos < len(j.text) && j.text[j.pos] >= '0' && j.text[j.pos] <= '9' {
		j.pos++
	}
	return j.pos - begin
}

// wordLength is the length of the letters, digits and underscores that text
// begins with.
func wordLength(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '_' && c != '$' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return len(text)
}

// excerpt quotes a text, cut short.
func excerpt(text string) string {
	const limit = 24
	if utf8.RuneCountInString(text) > limit {
		return strconv.Quote(string([]rune(text)[:limit]) + "...")
	}
	return strconv.Quote(text)
}
