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
)

// maxDepth bounds how deep a value may nest that a hook looks at.
const maxDepth = 200

// tree is a JSON value with its own bytes.
type tree struct {
	// kind is '{', '[', '"', '0', 't' or 'n', for object, list, text, number,
	// boolean and null.
	kind byte
	raw  []byte
	// keys are an object's, and kids its values or a list's elements.
	keys []string
	kids []*tree
	at   map[string]int // where keys are, if there are many
	text string
	num  float64
	flag bool
}

// get gives the value of an object's key, spelt exactly so; nil where there is
// none.
func (t *tree) get(key string) *tree {
	if t == nil {
		return nil
	}
	if i := t.index(key); i >= 0 {
		return t.kids[i]
	}
	return nil
}

// fewKeys are sooner looked through than hashed.
const fewKeys = 12

// index is where an object has a key, or -1.
func (t *tree) index(key string) int {
	if t.at == nil {
		return slices.Index(t.keys, key)
	}
	if i, ok := t.at[key]; ok {
		return i
	}
	return -1
}

// note has the last key found by its hash, where there are many.
func (t *tree) note(key string) {
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

// null says whether there is no value, or null.
func (t *tree) null() bool { return t == nil || t.kind == 'n' }

// any gives the value as encoding/json would decode it into an any.
func (t *tree) any() any {
	switch {
	case t == nil:
		return nil
	case t.kind == '{':
		out := make(map[string]any, len(t.keys))
		for i, key := range t.keys {
			out[key] = t.kids[i].any()
		}
		return out
	case t.kind == '[':
		out := make([]any, len(t.kids))
		for i, kid := range t.kids {
			out[i] = kid.any()
		}
		return out
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

// parseTree reads one JSON value. An object with a key twice is an error: a script
// would see the one and a server the other.
func parseTree(data []byte) (*tree, error) {
	if deeper(data, maxDepth) {
		return nil, fmt.Errorf("the value nests more than %d levels deep", maxDepth)
	}
	if !json.Valid(data) {
		return nil, whyInvalid(data)
	}
	p := treeParser{data: data}
	return p.value()
}

// deeper tells whether objects and lists nest deeper than most levels.
func deeper(data []byte, most int) bool {
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

// whyInvalid is what is wrong with a text that is not one JSON value.
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
	return fmt.Errorf("there is more than one value")
}

// treeParser reads a text that is valid JSON.
type treeParser struct {
	data []byte
	pos  int
}

// space skips what stands between values.
func (p *treeParser) space() {
	for {
		switch p.data[p.pos] {
		case ' ', '\t', '\r', '\n', ',', ':':
			p.pos++
		default:
			return
		}
	}
}

func (p *treeParser) value() (*tree, error) {
	p.space()
	from := p.pos
	t := &tree{kind: p.data[from]}
	var err error
	switch t.kind {
	case '{', '[':
		err = p.inside(t)
	case '"':
		t.text, err = p.string()
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
		t.num = p.number()
	}
	if err != nil {
		return nil, err
	}
	t.raw = p.data[from:p.pos]
	return t, nil
}

// string reads a string, which the position is at.
func (p *treeParser) string() (string, error) {
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

// number reads a number. One that is too large is infinite, as it is to a script.
func (p *treeParser) number() float64 {
	from := p.pos
	for p.pos < len(p.data) && strings.IndexByte("+-.0123456789eE", p.data[p.pos]) >= 0 {
		p.pos++
	}
	n, _ := strconv.ParseFloat(string(p.data[from:p.pos]), 64) // valid; the error is the range's
	return n
}

// inside reads what an object or list holds, and its end.
func (p *treeParser) inside(t *tree) error {
	p.pos++
	for {
		p.space()
		if c := p.data[p.pos]; c == '}' || c == ']' {
			p.pos++
			return nil
		}
		if t.kind == '{' {
			key, err := p.string()
			if err != nil {
				return err
			}
			if t.index(key) >= 0 {
				return fmt.Errorf("the key %q stands twice in one object", key)
			}
			t.keys = append(t.keys, key)
			t.note(key)
		}
		kid, err := p.value()
		if err != nil {
			return err
		}
		t.kids = append(t.kids, kid)
	}
}
