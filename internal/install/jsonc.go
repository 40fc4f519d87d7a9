package install

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a configuration.
const maxDepth = 500

var bom = []byte("\xef\xbb\xbf")

// jsonNode is a value of a JSON document with comments and trailing commas, by
// its place in the bytes.
type jsonNode struct {
	kind       byte // '{', '[', '"' or 'a' for any other
	start, end int
	members    []jsonMember // of an object
	elems      []*jsonNode  // of an array
}

// jsonMember is one member of an object.
type jsonMember struct {
	key      string
	keyStart int
	val      *jsonNode
	comma    int // offset of the comma after it; -1 if none
}

// member gives the value of a key, nil if there is none.
func (n *jsonNode) member(key string) *jsonNode {
	for _, m := range n.members {
		if m.key == key {
			return m.val
		}
	}
	return nil
}

// twice says whether a key occurs more than once.
func (n *jsonNode) twice(key string) bool {
	count := 0
	for _, m := range n.members {
		if m.key == key {
			count++
		}
	}
	return count > 1
}

type jsonParser struct {
	src     []byte
	pos     int
	depth   int
	lenient int // offset of the first thing that strict JSON forbids; -1
}

// parseJSONC parses a document. The root is nil if there is no value in it. The
// offset is that of the first thing that strict JSON forbids, or -1.
func parseJSONC(src []byte) (root *jsonNode, lenient int, err error) {
	p := &jsonParser{src: src, lenient: -1}
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return nil, -1, p.fail("it is UTF-16, not UTF-8")
	}
	if bytes.HasPrefix(src, bom) {
		p.pos = len(bom)
	}
	if err := p.space(); err != nil {
		return nil, -1, err
	}
	if p.pos == len(src) {
		return nil, p.lenient, nil
	}
	if root, err = p.value(); err != nil {
		return nil, -1, err
	}
	if err := p.space(); err != nil {
		return nil, -1, err
	}
	if p.pos < len(src) {
		return nil, -1, p.fail("unexpected %s after the end", p.here())
	}
	return root, p.lenient, nil
}

func (p *jsonParser) fail(format string, args ...any) error {
	line, column := position(p.src, p.pos)
	return &syntaxError{line: line, column: column, message: fmt.Sprintf(format, args...)}
}

// position gives the line and the column, in characters, of an offset.
func position(src []byte, offset int) (line, column int) {
	before := bytes.TrimPrefix(src[:offset], bom)
	line = bytes.Count(before, []byte("\n")) + 1
	column = utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return line, column
}

func (p *jsonParser) here() string {
	if p.pos >= len(p.src) {
		return "end of file"
	}
	r, _ := utf8.DecodeRune(p.src[p.pos:])
	return fmt.Sprintf("%q", r)
}

func (p *jsonParser) mark() {
	if p.lenient < 0 {
		p.lenient = p.pos
	}
}

func (p *jsonParser) space() error {
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\r', '\n':
			p.pos++
		case '/':
			end := commentEnd(p.src, p.pos)
			if end < 0 {
				return p.fail("unexpected '/'")
			}
			p.mark()
			p.pos = end
		default:
			return nil
		}
	}
	return nil
}

// commentEnd gives the end of the comment at pos, without the end of its line,
// or -1 if there is no whole comment.
func commentEnd(src []byte, pos int) int {
	rest := src[pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		if i := bytes.IndexAny(rest, "\r\n"); i >= 0 {
			return pos + i
		}
		return len(src)
	case bytes.HasPrefix(rest, []byte("/*")):
		if i := bytes.Index(rest[2:], []byte("*/")); i >= 0 {
			return pos + i + 4
		}
	}
	return -1
}

func (p *jsonParser) value() (*jsonNode, error) {
	if p.pos >= len(p.src) {
		return nil, p.fail("unexpected end of file, wanted a value")
	}
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("nested more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	switch p.src[p.pos] {
	case '{':
		return p.object()
	case '[':
		return p.array()
	case '"':
		return p.str()
	default:
		return p.literal()
	}
}

func (p *jsonParser) object() (*jsonNode, error) {
	n := &jsonNode{kind: '{', start: p.pos}
	p.pos++
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.closes('}', len(n.members) > 0) {
			n.end = p.pos
			return n, nil
		}
		m, err := p.member()
		if err != nil {
			return nil, err
		}
		done, err := p.separator('}')
		if err != nil {
			return nil, err
		}
		if m.comma = -1; !done {
			m.comma = p.pos - 1
		}
		n.members = append(n.members, m)
		if done {
			n.end = p.pos
			return n, nil
		}
	}
}

func (p *jsonParser) member() (jsonMember, error) {
	if p.pos >= len(p.src) || p.src[p.pos] != '"' {
		return jsonMember{}, p.fail("unexpected %s, wanted a name in double quotes or '}'", p.here())
	}
	k, err := p.str()
	if err != nil {
		return jsonMember{}, err
	}
	m := jsonMember{keyStart: k.start, key: text(p.src, k)}
	if err := p.space(); err != nil {
		return m, err
	}
	if p.pos >= len(p.src) || p.src[p.pos] != ':' {
		return m, p.fail("unexpected %s, wanted ':'", p.here())
	}
	p.pos++
	if err := p.space(); err != nil {
		return m, err
	}
	m.val, err = p.value()
	return m, err
}

func (p *jsonParser) array() (*jsonNode, error) {
	n := &jsonNode{kind: '[', start: p.pos}
	p.pos++
	for {
		if err := p.space(); err != nil {
			return nil, err
		}
		if p.closes(']', len(n.elems) > 0) {
			n.end = p.pos
			return n, nil
		}
		v, err := p.value()
		if err != nil {
			return nil, err
		}
		n.elems = append(n.elems, v)
		done, err := p.separator(']')
		if err != nil {
			return nil, err
		}
		if done {
			n.end = p.pos
			return n, nil
		}
	}
}

// closes steps over the closing bracket if it is next. After a comma it is an
// extension.
func (p *jsonParser) closes(closing byte, afterComma bool) bool {
	if p.pos >= len(p.src) || p.src[p.pos] != closing {
		return false
	}
	if afterComma {
		p.mark()
	}
	p.pos++
	return true
}

// separator steps over a comma, or the closing bracket, which it reports.
func (p *jsonParser) separator(closing byte) (bool, error) {
	if err := p.space(); err != nil {
		return false, err
	}
	if p.pos < len(p.src) && (p.src[p.pos] == ',' || p.src[p.pos] == closing) {
		p.pos++
		return p.src[p.pos-1] == closing, nil
	}
	return false, p.fail("unexpected %s, wanted ',' or '%c'", p.here(), closing)
}

func (p *jsonParser) str() (*jsonNode, error) {
	start := p.pos
	for i := start + 1; i < len(p.src); i++ {
		switch c := p.src[i]; {
		case c == '\\':
			i++
		case c < ' ':
			p.pos = i
			return nil, p.fail("unexpected control character in a string")
		case c == '"':
			if !json.Valid(p.src[start : i+1]) {
				return nil, p.fail("invalid escape in a string")
			}
			p.pos = i + 1
			return &jsonNode{kind: '"', start: start, end: p.pos}, nil
		}
	}
	return nil, p.fail("unterminated string")
}

func (p *jsonParser) literal() (*jsonNode, error) {
	end := p.pos
	for end < len(p.src) && (bytes.IndexByte([]byte("+-."), p.src[end]) >= 0 ||
		p.src[end] >= '0' && p.src[end] <= '9' || p.src[end]|0x20 >= 'a' && p.src[end]|0x20 <= 'z') {
		end++
	}
	if !json.Valid(p.src[p.pos:end]) {
		return nil, p.fail("unexpected %s, wanted a value", p.here())
	}
	n := &jsonNode{kind: 'a', start: p.pos, end: end}
	p.pos = end
	return n, nil
}

// text is the decoded value of a string node.
func text(src []byte, n *jsonNode) string {
	var s string
	if n == nil || n.kind != '"' || json.Unmarshal(src[n.start:n.end], &s) != nil {
		return ""
	}
	return s
}
