// Package wire reads and writes JSON-RPC messages without decoding what they
// carry: the members of the message and of its params are found in the bytes,
// and arguments and results are passed on as they are.
//
// What it reads comes from servers and clients that may be hostile. A message
// must be UTF-8 and JSON, and no object that is looked into may name a member
// twice or in another case: two readers of such an object could see two
// different messages.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The JSON-RPC error codes that are used here.
const (
	CodeParse          = -32700
	CodeInvalidRequest = -32600
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
	CodeInternal       = -32603
)

// Error is a JSON-RPC error.
type Error struct {
	Code    int64           `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Message is one JSON-RPC message. Its parts are slices of what was read.
type Message struct {
	// ID is the id as it was written; nil where there is none.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	// Params are an object, or nil.
	Params json.RawMessage
	// Result is nil for an error.
	Result json.RawMessage
	Err    *Error
}

// IsResponse tells a response from a request or notification.
func (m *Message) IsResponse() bool { return m.Method == "" }

// The reasons why bytes are no message.
var (
	errNotUTF8   = errors.New("it is not UTF-8")
	errNotJSON   = errors.New("it is not JSON")
	errNotObject = errors.New("it is not an object")
	errTooDeep   = fmt.Errorf("it is nested deeper than %d levels", messageDepth)
	errTooWide   = fmt.Errorf("an object in it has more than %d members", maxMembers)
)

// Parse reads one message.
func Parse(text []byte) (*Message, error) {
	if !utf8.Valid(text) {
		return nil, errNotUTF8
	}
	if !Within(text, messageDepth) {
		if Valid(text) {
			return nil, errTooDeep
		}
		return nil, errNotJSON
	}
	members, err := Members(text, "jsonrpc", "id", "method", "params", "result", "error")
	if err != nil {
		return nil, err
	}
	if string(members["jsonrpc"]) != `"2.0"` {
		return nil, errors.New("it does not say that it is JSON-RPC 2.0")
	}
	m := &Message{ID: members["id"], Params: members["params"], Result: members["result"]}
	if method, ok := members["method"]; ok {
		if err := json.Unmarshal(method, &m.Method); err != nil || m.Method == "" {
			return nil, errors.New("its method is not a name")
		}
		if m.Params != nil && m.Params[0] != '{' {
			return nil, errors.New("its params are not an object")
		}
		if m.ID != nil && !validID(m.ID) {
			return nil, errors.New("its id is neither a text nor a number")
		}
		return m, nil
	}
	return m, m.readResponse(members["error"])
}

func (m *Message) readResponse(failure json.RawMessage) error {
	switch {
	case m.ID == nil:
		return errors.New("it has neither a method nor an id")
	case (m.Result == nil) == (failure == nil):
		return errors.New("a response has either a result or an error")
	case failure == nil && m.Result[0] != '{':
		return errors.New("its result is not an object")
	case failure != nil:
		m.Err = &Error{}
		if err := json.Unmarshal(failure, m.Err); err != nil {
			return errors.New("its error has no code and message")
		}
	}
	return nil
}

// validID tells whether JSON-RPC as MCP has it allows an id.
func validID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

// maxMembers bounds the members of an object that is looked into: to remember them
// takes many times the room that they are written in.
const maxMembers = 10000

// Members finds the named members of an object in valid JSON, as slices of it.
// Of others it sees that they differ from the named ones by more than their
// case; with no names it gives all members.
func Members(text []byte, names ...string) (map[string]json.RawMessage, error) {
	found := make(map[string]json.RawMessage, 8)
	err := Each(text, func(key string, value json.RawMessage) error {
		for _, name := range names {
			if name != key && strings.EqualFold(name, key) {
				return fmt.Errorf("it has a member %q, which is not %q", key, name)
			}
		}
		if _, twice := found[key]; twice {
			return fmt.Errorf("it has the member %q twice", key)
		}
		if len(found) == maxMembers {
			return errTooWide
		}
		found[key] = value
		return nil
	})
	return found, err
}

// Each visits the members of an object in valid JSON, in order.
func Each(text []byte, visit func(key string, value json.RawMessage) error) error {
	s := scanner{text: text}
	if !s.next('{') {
		return errNotObject
	}
	if s.next('}') {
		return nil
	}
	for {
		key, err := s.key()
		if err != nil {
			return err
		}
		s.next(':')
		value := s.value()
		if len(value) == 0 {
			return errNotJSON
		}
		if err := visit(key, value); err != nil {
			return err
		}
		if !s.next(',') {
			return nil
		}
	}
}

// scanner goes through valid JSON.
type scanner struct {
	text []byte
	pos  int
}

func (s *scanner) space() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// next skips the byte if it is next.
func (s *scanner) next(c byte) bool {
	s.space()
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) key() (string, error) {
	text := s.value()
	if len(text) < 2 || text[0] != '"' {
		return "", errNotJSON
	}
	if bytes.IndexByte(text, '\\') < 0 {
		return string(text[1 : len(text)-1]), nil
	}
	var key string
	if err := json.Unmarshal(text, &key); err != nil {
		return "", errNotJSON
	}
	return key, nil
}

// value passes over a value.
func (s *scanner) value() json.RawMessage {
	s.space()
	begin := s.pos
	depth := 0
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		switch c {
		case '"':
			s.pos++
			s.skipString()
		case '{', '[':
			depth++
			s.pos++
			continue
		case '}', ']', ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return s.text[begin:s.pos]
			}
			if c == '}' || c == ']' {
				depth--
			}
			s.pos++
		default: // a number or a word ends before what cannot be in it
			s.pos++
			continue
		}
		if depth == 0 {
			return s.text[begin:s.pos]
		}
	}
	return s.text[begin:s.pos]
}

// skipString goes behind the end of a string whose quote was read.
func (s *scanner) skipString() {
	for {
		n := bytes.IndexByte(s.text[s.pos:], '"')
		if n < 0 {
			s.pos = len(s.text)
			return
		}
		s.pos += n + 1
		slashes := 0
		for i := s.pos - 2; i >= 0 && s.text[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 0 {
			return
		}
	}
}

// Member is one member of an object that is written.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Object writes an object.
func Object(members ...Member) json.RawMessage {
	return appendObject(make([]byte, 0, sizeOf(members)), members)
}

// sizeOf is room for an object.
func sizeOf(members []Member) int {
	size := 3 // one more, for the end of a line
	for _, m := range members {
		size += len(m.Key) + len(m.Value) + 4
	}
	return size
}

func appendObject(out []byte, members []Member) []byte {
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, Text(m.Key)...), ':'), m.Value...)
	}
	return append(out, '}')
}

// Text writes a string.
func Text(s string) json.RawMessage {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil { // strings always marshal
				return json.RawMessage(`""`)
			}
			return text
		}
	}
	return append(append(append(make([]byte, 0, len(s)+2), '"'), s...), '"')
}

// Number writes a whole number.
func Number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// Request writes a request or, with a nil id, a notification.
func Request(id json.RawMessage, method string, params json.RawMessage) []byte {
	members := make([]Member, 0, 4)
	members = append(members, Member{"jsonrpc", json.RawMessage(`"2.0"`)})
	if id != nil {
		members = append(members, Member{"id", id})
	}
	members = append(members, Member{"method", Text(method)})
	if params != nil {
		members = append(members, Member{"params", params})
	}
	return Object(members...)
}

// Call writes a request as Request does, with params of these members. What they
// carry is copied once.
func Call(id json.RawMessage, method string, params ...Member) []byte {
	const none = `{}`
	head := Request(id, method, json.RawMessage(none))
	head = head[:len(head)-len(none)-1] // the params come last
	out := append(make([]byte, 0, len(head)+sizeOf(params)+1), head...)
	return append(appendObject(out, params), '}')
}

// Response writes a response.
func Response(id, result json.RawMessage, failure *Error) []byte {
	members := []Member{{"jsonrpc", json.RawMessage(`"2.0"`)}, {"id", id}}
	if failure == nil {
		return Object(append(members, Member{"result", result})...)
	}
	text, err := json.Marshal(failure)
	if err != nil { // its data is not JSON
		text = Object(Member{"code", Number(failure.Code)}, Member{"message", Text(failure.Message)})
	}
	return Object(append(members, Member{"error", text})...)
}

// OneLine makes one line of valid JSON: a line break there can only be white
// space between values.
func OneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, text)
}

// With gives an object with members set: those that are there are replaced, the
// others come first. A nil value takes a member out. The object is valid JSON.
func With(object json.RawMessage, set ...Member) (json.RawMessage, error) {
	var kept []Member
	err := Each(object, func(key string, value json.RawMessage) error {
		for _, m := range set {
			if m.Key == key {
				return nil
			}
		}
		kept = append(kept, Member{key, value})
		return nil
	})
	if err != nil {
		return nil, err
	}
	members := make([]Member, 0, len(set)+len(kept))
	for _, m := range set {
		if m.Value != nil {
			members = append(members, m)
		}
	}
	return Object(append(members, kept...)...), nil
}
