package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrDuplicate is the error of CheckUnique for a duplicate member.
var ErrDuplicate = errors.New("an object has a member twice")

// CheckUnique returns an error if an object in a JSON value has a member twice, at any
// level: readers of such an object differ in the value of the member. The value must be valid
// JSON.
func CheckUnique(text []byte) error {
	s := scanner{text: text}
	open := make([]object, 0, 8)
	for s.skipSpace(); s.pos < len(text); s.skipSpace() {
		top := len(open) - 1
		c := text[s.pos]
		switch {
		case c == '{' || c == '[':
			open = append(open, object{isList: c == '[', atKey: c == '{'})
			s.pos++
		case c == '}' || c == ']':
			if top < 0 || open[top].isList != (c == ']') {
				return errNotJSON
			}
			open = open[:top]
			s.pos++
		case c == ',' && top >= 0:
			open[top].atKey = !open[top].isList
			s.pos++
		case c == ':' && top >= 0:
			s.pos++
		case top >= 0 && open[top].atKey:
			key, err := s.readRawKey()
			if err != nil {
				return err
			}
			if open[top].addKey(key) {
				return fmt.Errorf("%w: %.40q", ErrDuplicate, key)
			}
			open[top].atKey = false
		case len(s.skipValue()) == 0:
			return errNotJSON
		}
	}
	if len(open) > 0 || len(text) == 0 {
		return errNotJSON
	}
	return nil
}

// object is an object, or a list, that CheckUnique has not read to its end.
type object struct {
	isList bool
	// atKey reports whether a key comes next.
	atKey bool
	keySet
}

// keySet is a set of the keys of one object. There are rarely more than a few.
type keySet struct {
	few  [8][]byte
	n    int
	many map[string]bool
}

// addKey adds a key, and reports whether it was added before.
func (o *keySet) addKey(key []byte) bool {
	for _, other := range o.few[:o.n] {
		if bytes.Equal(other, key) {
			return true
		}
	}
	if o.n < len(o.few) {
		o.few[o.n] = key
		o.n++
		return false
	}
	if o.many == nil {
		o.many = map[string]bool{}
	}
	again := o.many[string(key)]
	if !again {
		o.many[string(key)] = true
	}
	return again
}

// readRawKey reads a key. A key without escapes is a slice of the text.
func (s *scanner) readRawKey() ([]byte, error) {
	text := s.skipValue()
	if len(text) < 2 || text[0] != '"' {
		return nil, errNotJSON
	}
	if inner := unescaped(text); inner != nil {
		return inner, nil
	}
	var key string
	if err := json.Unmarshal(text, &key); err != nil {
		return nil, errNotJSON
	}
	return []byte(key), nil
}
