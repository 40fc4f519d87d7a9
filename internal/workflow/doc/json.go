package doc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// jsonReader parses RFC 8259 JSON in one pass. The text must be valid UTF-8.
type jsonReader struct {
	*reporter
	text   string
	limits Limits
	// pos is the offset of the next byte; line is its line and start the offset of that
	// line.
	pos, line, start int
	depth, nodes     int
	path             pathSteps
	// slab holds preallocated nodes.
	slab []Node
	// scratch is a buffer for strings with escapes; members and items are buffers for the
	// objects and arrays being read.
	scratch []byte
	members []Member
	items   []*Node
}

// stopReading is the panic value that ends parsing after a fatal diagnostic.
type stopReading struct{}

// parseJSON parses a JSON text.
func parseJSON(r *reporter, data []byte, limits Limits) (root *Node) {
	j := &jsonReader{reporter: r, text: string(data), limits: limits, line: 1}
	defer func() {
		switch reason := recover().(type) {
		case nil:
		case stopReading:
			root = nil
		default:
			panic(reason)
		}
	}()
	root = j.readValue()
	j.skipSpace()
	if j.pos < len(j.text) {
		j.failTrailing()
	}
	return root
}

// newNode returns a node at the current position.
func (j *jsonReader) newNode(kind Kind) *Node {
	j.nodes++
	if j.nodes > j.limits.MaxNodes {
		j.failAt(CodeNodes, j.pos, fmt.Sprintf("the document has more than %d values", j.limits.MaxNodes), "split the definition")
	}
	if len(j.slab) == 0 {
		j.slab = make([]Node, 64)
	}
	n := &j.slab[0]
	j.slab = j.slab[1:]
	n.Kind, n.Line, n.Column = kind, j.line, j.pos-j.start+1
	return n
}

// skipSpace skips white space and counts lines.
func (j *jsonReader) skipSpace() {
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

// readValue reads one value of any kind.
func (j *jsonReader) readValue() *Node {
	j.skipSpace()
	if j.pos >= len(j.text) {
		j.failUnexpected("a value")
	}
	switch c := j.text[j.pos]; {
	case c == '"':
		n := j.newNode(String)
		n.Text = j.readString()
		return n
	case c == '{':
		return j.readObject()
	case c == '[':
		return j.readArray()
	case c == '-' || c >= '0' && c <= '9':
		return j.readNumber()
	default:
		return j.readLiteral()
	}
}

// readLiteral reads true, false and null.
func (j *jsonReader) readLiteral() *Node {
	rest := j.text[j.pos:]
	for _, known := range [...]struct {
		text string
		kind Kind
		flag bool
	}{{"true", Bool, true}, {"false", Bool, false}, {"null", Null, false}} {
		if strings.HasPrefix(rest, known.text) && wordLength(rest) == len(known.text) {
			n := j.newNode(known.kind)
			n.Flag = known.flag
			j.pos += len(known.text)
			return n
		}
	}
	j.failUnexpected("a value")
	return nil
}

// enterLevel increments the depth and checks the limit.
func (j *jsonReader) enterLevel() {
	j.depth++
	if j.depth > j.limits.MaxDepth {
		j.failAt(CodeDepth, j.pos, fmt.Sprintf("arrays and objects are nested deeper than %d levels", j.limits.MaxDepth), "flatten the structure")
	}
	j.path = append(j.path, pathStep{unread: true})
}

// leaveLevel decrements the depth.
func (j *jsonReader) leaveLevel() {
	j.depth--
	j.path = j.path[:len(j.path)-1]
}

// readArray reads an array at the next byte.
func (j *jsonReader) readArray() *Node {
	n, base := j.newNode(Array), len(j.items)
	j.enterLevel()
	j.pos++
	for {
		j.skipSpace()
		if j.skipByte(']') {
			break
		}
		j.path[len(j.path)-1] = pathStep{index: len(j.items) - base, array: true}
		item := j.readValue()
		j.items = append(j.items, item)
		if j.readSeparator(n, ']') {
			break
		}
	}
	j.leaveLevel()
	n.Items = slices.Clone(j.items[base:])
	j.items = j.items[:base]
	return n
}

// readObject reads an object at the next byte.
func (j *jsonReader) readObject() *Node {
	n, base := j.newNode(Object), len(j.members)
	j.enterLevel()
	j.pos++
	var seen keySet
	for {
		j.skipSpace()
		if j.skipByte('}') {
			break
		}
		j.readMember(n, base, &seen)
		if j.readSeparator(n, '}') {
			break
		}
	}
	j.leaveLevel()
	n.Members = slices.Clone(j.members[base:])
	j.members = j.members[:base]
	return n
}

// readMember reads a key, a colon and a value. base is the index of the object's first
// member in j.members.
func (j *jsonReader) readMember(n *Node, base int, seen *keySet) {
	j.path[len(j.path)-1] = pathStep{unread: true}
	if j.pos >= len(j.text) || j.text[j.pos] != '"' {
		j.failKey(n)
	}
	m := Member{Line: j.line, Column: j.pos - j.start + 1}
	m.Key = j.readString()
	j.path[len(j.path)-1] = pathStep{key: m.Key}
	first := seen.findKey(j.members[base:], m.Key)
	if first >= 0 {
		j.addDuplicateKey(j.path.toPointer(), m.Key, m.Line, m.Column, j.members[base+first].Line)
	}
	j.skipSpace()
	if !j.skipByte(':') {
		j.failColon(m.Key)
	}
	m.Value = j.readValue()
	if first < 0 {
		j.members = append(j.members, m)
		n.Members = j.members[base:] // used by diagnostics for the pointer until the object ends
	}
}

// skipByte skips the next byte if it is c.
func (j *jsonReader) skipByte(c byte) bool {
	if j.pos < len(j.text) && j.text[j.pos] == c {
		j.pos++
		return true
	}
	return false
}

// readSeparator reads a comma or the closing bracket; it returns true for the bracket.
func (j *jsonReader) readSeparator(n *Node, closing byte) bool {
	j.skipSpace()
	if j.skipByte(closing) {
		return true
	}
	comma := j.pos
	if !j.skipByte(',') {
		j.failSeparator(n, closing)
	}
	line, start := j.line, j.start
	j.skipSpace()
	if j.pos < len(j.text) && j.text[j.pos] == closing {
		j.addDiagnostic(Diagnostic{
			Code: CodeJSONSyntax, Line: line, Column: comma - start + 1, Pointer: j.parentPointer(),
			Message: fmt.Sprintf("there is a comma before the closing '%c'", closing),
			Fix:     "remove the comma",
		})
	}
	return false
}

// readNumber reads a number at the next byte.
func (j *jsonReader) readNumber() *Node {
	n := j.newNode(Number)
	begin := j.pos
	j.skipByte('-')
	switch {
	case j.skipByte('0'):
		if j.skipDigits() > 0 {
			j.failAt(CodeJSONSyntax, begin, "a number cannot start with a zero", "remove the leading zero, or put the value in double quotes")
		}
	case j.skipDigits() == 0:
		j.failAt(CodeJSONSyntax, begin, "there is no digit after the minus sign", "write a number such as -1")
	}
	if j.skipByte('.') && j.skipDigits() == 0 {
		j.failAt(CodeJSONSyntax, begin, "there is no digit after the decimal point", "write a number such as 1.0")
	}
	if j.skipByte('e') || j.skipByte('E') {
		if !j.skipByte('+') {
			j.skipByte('-')
		}
		if j.skipDigits() == 0 {
			j.failAt(CodeJSONSyntax, begin, "there is no digit in the exponent", "write a number such as 1e9")
		}
	}
	if rest := wordLength(j.text[j.pos:]); rest > 0 {
		j.failAt(CodeJSONSyntax, begin, fmt.Sprintf("%s is not a number", excerpt(j.text[begin:j.pos+rest])), "write a decimal number, or put the value in double quotes")
	}
	n.Text = j.text[begin:j.pos]
	value, err := strconv.ParseFloat(n.Text, 64)
	if err != nil {
		j.addDiagnostic(Diagnostic{
			Code: CodeNumberRange, Line: n.Line, Column: n.Column, Pointer: j.path.toPointer(),
			Message: fmt.Sprintf("the number %s is out of range", excerpt(n.Text)),
			Fix:     "write a number from -1.7e308 to 1.7e308",
		})
	}
	n.Num = value
	return n
}

// skipDigits skips digits and returns their number.
func (j *jsonReader) skipDigits() int {
	begin := j.pos
	for j.pos < len(j.text) && j.text[j.pos] >= '0' && j.text[j.pos] <= '9' {
		j.pos++
	}
	return j.pos - begin
}

// wordLength returns the length of the word of letters, digits, underscores and dollar
// signs at the start of a text.
func wordLength(text string) int {
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c != '_' && c != '$' && (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') {
			return i
		}
	}
	return len(text)
}

// excerpt quotes a text and truncates it.
func excerpt(text string) string {
	const limit = 24
	if utf8.RuneCountInString(text) > limit {
		return strconv.Quote(string([]rune(text)[:limit]) + "...")
	}
	return strconv.Quote(text)
}

// readString reads a string at the next byte. A string without escapes shares the memory of
// the text.
func (j *jsonReader) readString() string {
	open := j.pos
	j.pos++
	run := j.pos
	out, escaped := j.scratch[:0], false
	for j.pos < len(j.text) {
		c := j.text[j.pos]
		if c >= ' ' && c != '"' && c != '\\' {
			j.pos++
			continue
		}
		switch {
		case c == '"':
			text := j.text[run:j.pos]
			j.pos++
			if !escaped {
				return text
			}
			out = append(out, text...)
			j.scratch = out
			return string(out)
		case c == '\\':
			escaped = true
			out = append(out, j.text[run:j.pos]...)
			out = j.readEscape(out)
			run = j.pos
		default:
			j.failControl(open, c)
		}
	}
	j.failAt(CodeJSONSyntax, open, "the string is not closed", "end the string with a double quote")
	return ""
}

// failControl fails at a byte that must be escaped.
func (j *jsonReader) failControl(open int, c byte) {
	switch c {
	case '\n', '\r':
		j.failAt(CodeJSONSyntax, open, "the string is not closed on its line",
			`end the string with a double quote; write a line break inside a string as \n`)
	case '\t':
		j.failAt(CodeJSONSyntax, j.pos, "there is a tab inside a string", `write the tab as \t`)
	default:
		j.failAt(CodeJSONSyntax, j.pos, fmt.Sprintf("there is a control character (0x%02x) inside a string", c),
			fmt.Sprintf(`remove the character, or write it as \u%04x`, c))
	}
}

// readEscape reads an escape at the next byte.
func (j *jsonReader) readEscape(out []byte) []byte {
	begin := j.pos
	j.pos++
	if j.pos >= len(j.text) {
		j.failAt(CodeJSONSyntax, begin, "the text ends inside an escape", `complete the escape, or write \\ for a backslash; then close the string with a double quote`)
	}
	c := j.text[j.pos]
	j.pos++
	switch c {
	case 'n':
		return append(out, '\n')
	case '"', '\\', '/':
		return append(out, c)
	case 't':
		return append(out, '\t')
	case 'r':
		return append(out, '\r')
	case 'b':
		return append(out, '\b')
	case 'f':
		return append(out, '\f')
	case 'u':
		return utf8.AppendRune(out, j.readUnicode(begin))
	}
	j.pos--
	char, _ := utf8.DecodeRuneInString(j.text[j.pos:])
	j.failAt(CodeJSONSyntax, begin, fmt.Sprintf(`JSON does not support the escape \%c`, char),
		`write \\ for a backslash; the escapes are \" \\ \/ \b \f \n \r \t \uXXXX`)
	return nil
}

// readUnicode reads the digits of \uXXXX, and the second half of a surrogate pair.
func (j *jsonReader) readUnicode(begin int) rune {
	first, ok := j.readHex()
	if !ok {
		j.failAt(CodeJSONSyntax, begin, `\u is not followed by four hexadecimal digits`, `write \u and four of 0-9, a-f, such as \u00e9`)
	}
	if first == 0 {
		j.addDiagnostic(Diagnostic{
			Code: CodeNUL, Line: j.line, Column: begin - j.start + 1, Pointer: j.path.toPointer(),
			Message: `\u0000 is not allowed: text must not contain a NUL character`,
			Fix:     "remove the escape",
		})
	}
	if !utf16.IsSurrogate(first) {
		return first
	}
	second := j.pos
	if j.skipByte('\\') && j.skipByte('u') {
		if low, ok := j.readHex(); ok {
			if pair := utf16.DecodeRune(first, low); pair != utf8.RuneError {
				return pair
			}
		}
	}
	j.pos = second
	j.addDiagnostic(Diagnostic{
		Code: CodeSurrogate, Line: j.line, Column: begin - j.start + 1, Pointer: j.path.toPointer(),
		Message: fmt.Sprintf(`\u%04x is half of a surrogate pair: the other half is missing`, first),
		Fix:     "write the character itself, or both halves",
	})
	return utf8.RuneError
}

// readHex reads four hexadecimal digits.
func (j *jsonReader) readHex() (rune, bool) {
	if j.pos+4 > len(j.text) {
		return 0, false
	}
	value, err := strconv.ParseUint(j.text[j.pos:j.pos+4], 16, 16)
	if err != nil {
		return 0, false
	}
	j.pos += 4
	return rune(value), true
}
