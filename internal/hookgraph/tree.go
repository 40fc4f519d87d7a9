package hookgraph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
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
	at   map[string]int
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
	if i, ok := t.at[key]; ok {
		return t.kids[i]
	}
	return nil
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
	p := treeParser{data: data, dec: json.NewDecoder(bytes.NewReader(data))}
	p.dec.UseNumber()
	t, err := p.value(0)
	if err != nil {
		return nil, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("there is more than one value")
	}
	return t, nil
}

type treeParser struct {
	data []byte
	dec  *json.Decoder
}

// begin is where the next value begins.
func (p *treeParser) begin() int {
	at := int(p.dec.InputOffset())
	for at < len(p.data) && bytes.IndexByte([]byte(" \t\r\n,:"), p.data[at]) >= 0 {
		at++
	}
	return at
}

func (p *treeParser) value(depth int) (*tree, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("the value nests more than %d levels deep", maxDepth)
	}
	from := p.begin()
	token, err := p.dec.Token()
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	t := &tree{}
	switch token := token.(type) {
	case json.Delim:
		t.kind = byte(token)
		err = p.inside(t, depth)
	case string:
		t.kind, t.text = '"', token
	case json.Number:
		t.kind = '0'
		t.num, err = strconv.ParseFloat(token.String(), 64)
		if err != nil && t.num != 0 { // a number too large is infinite to a script
			err = nil
		}
	case bool:
		t.kind, t.flag = 't', token
	default:
		t.kind = 'n'
	}
	if err != nil {
		return nil, err
	}
	t.raw = p.data[from:p.dec.InputOffset()]
	return t, nil
}

// inside reads what an object or list holds, and its end.
func (p *treeParser) inside(t *tree, depth int) error {
	if t.kind == '{' {
		t.at = map[string]int{}
	}
	for p.dec.More() {
		if t.kind == '{' {
			token, err := p.dec.Token()
			if err != nil {
				return err
			}
			key, _ := token.(string)
			if _, twice := t.at[key]; twice {
				return fmt.Errorf("the key %q stands twice in one object", key)
			}
			t.at[key] = len(t.keys)
			t.keys = append(t.keys, key)
		}
		kid, err := p.value(depth + 1)
		if err != nil {
			return err
		}
		t.kids = append(t.kids, kid)
	}
	_, err := p.dec.Token()
	return err
}
