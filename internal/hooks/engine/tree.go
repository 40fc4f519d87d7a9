package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// maxDepth is the maximum nesting of a value that a hook reads.
const maxDepth = 200

// tree is a decoded JSON value with its encoded bytes.
type tree struct {
	// kind is '{', '[', '"', '0', 't' or 'n', for object, list, string, number, boolean and
	// null.
	kind byte
	raw  []byte
	// keys are the keys of an object, and kids its values or the elements of a list.
	keys []string
	kids []*tree
	at   map[string]int // index of each key, for objects with many keys
	text string
	num  float64
	flag bool
}

// valueOf returns the value of an object's key, with exact spelling, or nil.
func (t *tree) valueOf(key string) *tree {
	if t == nil {
		return nil
	}
	if i := t.indexOf(key); i >= 0 {
		return t.kids[i]
	}
	return nil
}

// fewKeys is the number of keys up to which a search is faster than a map.
const fewKeys = 12

// indexOf returns the index of a key in an object, or -1.
func (t *tree) indexOf(key string) int {
	if t.at == nil {
		return slices.Index(t.keys, key)
	}
	if i, ok := t.at[key]; ok {
		return i
	}
	return -1
}

// indexLastKey adds the last key to the index, if there are many.
func (t *tree) indexLastKey(key string) {
	switch {
	case t.at != nil:
		t.at[key] = len(t.keys) - 1
	case len(t.keys) > fewKeys:
		t.at = make(map[string]int, 2*fewKeys)
		for i, key := range t.keys {
			t.at[key] = i
		}
	}
}

// isNull reports whether the value is missing or null.
func (t *tree) isNull() bool { return t == nil || t.kind == 'n' }

// toAny returns the value as encoding/json would decode it into an any.
func (t *tree) toAny() any {
	switch {
	case t == nil:
		return nil
	case t.kind == '{':
		out := make(map[string]any, len(t.keys))
		for i, key := range t.keys {
			out[key] = t.kids[i].toAny()
		}
		return out
	case t.kind == '[':
		return lists.Map(t.kids, func(kid *tree) any { return kid.toAny() })
	case t.kind == '"':
		return t.text
	case t.kind == '0':
		return t.num
	case t.kind == 't':
		return t.flag
	default:
		return nil
	}
}

// parseTree parses one JSON value. A duplicate key is an error: a script and a server would
// read different values.
func parseTree(data []byte) (*tree, error) {
	if isDeeper(data, maxDepth) {
		return nil, fmt.Errorf("the value is nested more than %d levels deep", maxDepth)
	}
	if !json.Valid(data) {
		return nil, whyInvalid(data)
	}
	p := treeParser{data: data}
	return p.parseValue()
}

// isDeeper reports whether objects and lists nest deeper than a number of levels.
func isDeeper(data []byte, most int) bool {
	depth, quoted := 0, false
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > most {
				return true
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return false
}

// whyInvalid returns the reason why a text is not exactly one JSON value.
func whyInvalid(data []byte) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	var first json.RawMessage
	err := dec.Decode(&first)
	switch {
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	case err != nil:
		return err
	}
	return fmt.Errorf("the text contains more than one value")
}

// treeParser parses valid JSON.
type treeParser struct {
	data []byte
	pos  int
}

// skipSpace skips white space, commas and colons.
func (p *treeParser) skipSpace() {
	for {
		switch p.data[p.pos] {
		case ' ', '\t', '\r', '\n', ',', ':':
			p.pos++
		default:
			return
		}
	}
}

func (p *treeParser) parseValue() (*tree, error) {
	p.skipSpace()
	from := p.pos
	t := &tree{kind: p.data[from]}
	var err error
	switch t.kind {
	case '{', '[':
		err = p.parseMembers(t)
	case '"':
		t.text, err = p.parseString()
	case 't', 'f':
		t.flag = t.kind == 't'
		p.pos += len("true")
		if !t.flag {
			p.pos++
		}
		t.kind = 't'
	case 'n':
		p.pos += len("null")
	default:
		t.kind = '0'
		t.num = p.parseNumber()
	}
	if err != nil {
		return nil, err
	}
	t.raw = p.data[from:p.pos]
	return t, nil
}

// parseString parses a string at the position.
func (p *treeParser) parseString() (string, error) {
	from, plain := p.pos, true
	for p.pos++; p.data[p.pos] != '"'; p.pos++ {
		if p.data[p.pos] == '\\' {
			plain = false
			p.pos++
		}
	}
	p.pos++
	raw := p.data[from:p.pos]
	if plain && utf8.Valid(raw) {
		return string(raw[1 : len(raw)-1]), nil
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err
}

// parseNumber parses a number. A number that is too large becomes infinite, as in a script.
func (p *treeParser) parseNumber() float64 {
	from := p.pos
	for p.pos < len(p.data) && strings.IndexByte("+-.0123456789eE", p.data[p.pos]) >= 0 {
		p.pos++
	}
	n, _ := strconv.ParseFloat(string(p.data[from:p.pos]), 64) // the number is valid, so the only error is ErrRange
	return n
}

// parseMembers parses the members of an object or the elements of a list, including the
// closing bracket.
func (p *treeParser) parseMembers(t *tree) error {
	p.pos++
	for {
		p.skipSpace()
		if c := p.data[p.pos]; c == '}' || c == ']' {
			p.pos++
			return nil
		}
		if t.kind == '{' {
			key, err := p.parseString()
			if err != nil {
				return err
			}
			if t.indexOf(key) >= 0 {
				return fmt.Errorf("duplicate key %q in an object", key)
			}
			t.keys = append(t.keys, key)
			t.indexLastKey(key)
		}
		kid, err := p.parseValue()
		if err != nil {
			return err
		}
		t.kids = append(t.kids, kid)
	}
}
