// Package jsonrpc reads and writes JSON-RPC messages without decoding their payload: it finds
// the members of the message and of its params in the bytes, and passes arguments and
// results unchanged.
//
// Its input comes from servers and clients that may be hostile. A message must be UTF-8 and
// JSON, and no parsed object may have a member twice or in another case: two readers of
// such an object could see two different messages.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
)

// The JSON-RPC error codes in use.
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

// Message is one JSON-RPC message. ID, Params and Result are slices of the input.
type Message struct {
	// ID is the encoded id; nil in a notification.
	ID json.RawMessage
	// Method is empty for a response.
	Method string
	// Params are an object, or nil.
	Params json.RawMessage
	// Result is nil in a request and in an error response.
	Result json.RawMessage
	Err    *Error
}

// IsResponse reports whether the message is a response.
func (m *Message) IsResponse() bool { return m.Method == "" }

// messageDepth is the maximum nesting of a message: clients do not read deeper ones, and
// some of them disconnect.
const messageDepth = 1000

// Errors of invalid messages.
var (
	errNotUTF8   = errors.New("the message is not UTF-8")
	errNotJSON   = errors.New("the message is not JSON")
	errNotObject = errors.New("the JSON is not an object")
	errTooDeep   = fmt.Errorf("the message is nested deeper than %d levels", messageDepth)
	errTooWide   = fmt.Errorf("an object in the message has more than %d members", maxMembers)
)

// Parse parses one message.
func Parse(text []byte) (*Message, error) {
	if !utf8.Valid(text) {
		return nil, errNotUTF8
	}
	if !jsontext.Within(text, messageDepth) {
		return nil, errTooDeep
	}
	if !jsontext.Valid(text) {
		return nil, errNotJSON
	}
	m := &Message{}
	var version, method, failure json.RawMessage
	err := Extract(text, Field{"jsonrpc", &version}, Field{"id", &m.ID}, Field{"method", &method},
		Field{"params", &m.Params}, Field{"result", &m.Result}, Field{"error", &failure})
	if err != nil {
		return nil, err
	}
	if string(version) != `"2.0"` {
		return nil, errors.New("the message is not JSON-RPC 2.0")
	}
	if method != nil {
		if m.Method = TextOf(method); m.Method == "" {
			return nil, errors.New("the method is empty or not a string")
		}
		if m.Params != nil && m.Params[0] != '{' {
			return nil, errors.New("the params are not an object")
		}
		if m.ID != nil && !isValidID(m.ID) {
			return nil, errors.New("the id is neither a string nor a number")
		}
		return m, nil
	}
	return m, m.readResponse(failure)
}

// TextOf returns the text of a JSON string; "" for any other value.
func TextOf(text json.RawMessage) string {
	if inner := unescaped(text); inner != nil {
		return string(inner)
	}
	var s string
	if json.Unmarshal(text, &s) != nil {
		return ""
	}
	return s
}

func (m *Message) readResponse(failure json.RawMessage) error {
	switch {
	case m.ID == nil:
		return errors.New("the message has neither a method nor an id")
	case (m.Result == nil) == (failure == nil):
		return errors.New("the response must have either a result or an error")
	case failure == nil && m.Result[0] != '{':
		return errors.New("the result is not an object")
	case failure != nil:
		m.Err = &Error{}
		if err := json.Unmarshal(failure, m.Err); err != nil {
			return errors.New("the error is not an object with an integer code and a string message")
		}
	}
	return nil
}

// isValidID reports whether an id is valid in MCP.
func isValidID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

// maxMembers is the maximum number of members of a parsed object: their names take many
// times more memory than the text.
const maxMembers = 10000

// Field is a member to extract, and the destination of its value.
type Field struct {
	Key   string
	Value *json.RawMessage
}

// Extract sets the values of the wanted members of an object in valid JSON, as slices of
// text. All values must be nil before the call; the value of a missing member stays nil. A
// duplicate member is an error, and so is a member whose name differs only in case from a
// wanted one.
func Extract(text []byte, wanted ...Field) error {
	var others keySet
	count := 0
	return Each(text, func(key string, value json.RawMessage) error {
		if count++; count > maxMembers {
			return errTooWide
		}
		for _, w := range wanted {
			if w.Key == key {
				if *w.Value != nil {
					return duplicateError(key)
				}
				*w.Value = value
				return nil
			}
		}
		for _, w := range wanted {
			if strings.EqualFold(w.Key, key) {
				return otherCase(key, w.Key)
			}
		}
		if others.addKey([]byte(key)) {
			return duplicateError(key)
		}
		return nil
	})
}

func duplicateError(key string) error { return fmt.Errorf("duplicate member %q", key) }

func otherCase(key, name string) error {
	return fmt.Errorf("the member %q differs from %q only in letter case", key, name)
}

// Members returns all members of an object in valid JSON, as slices of text. A member whose
// name differs only in case from one of names is an error.
func Members(text []byte, names ...string) (map[string]json.RawMessage, error) {
	found := make(map[string]json.RawMessage, 8)
	err := Each(text, func(key string, value json.RawMessage) error {
		for _, name := range names {
			if name != key && strings.EqualFold(name, key) {
				return otherCase(key, name)
			}
		}
		if _, again := found[key]; again {
			return duplicateError(key)
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
	if !s.accept('{') {
		return errNotObject
	}
	if s.accept('}') {
		return nil
	}
	for {
		key, err := s.readKey()
		if err != nil {
			return err
		}
		s.accept(':')
		value := s.skipValue()
		if len(value) == 0 {
			return errNotJSON
		}
		if err := visit(key, value); err != nil {
			return err
		}
		if !s.accept(',') {
			return nil
		}
	}
}

// scanner finds the values in JSON. It does not validate them.
type scanner struct {
	text []byte
	pos  int
}

func (s *scanner) skipSpace() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return
		}
	}
}

// accept skips the next byte if it is c.
func (s *scanner) accept(c byte) bool {
	s.skipSpace()
	if s.pos < len(s.text) && s.text[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

func (s *scanner) readKey() (string, error) {
	key, err := s.readRawKey()
	return keyOf(key), err
}

// unescaped returns the text between the quotes of a string without escapes; nil for any
// other value.
func unescaped(text json.RawMessage) []byte {
	if len(text) < 2 || text[0] != '"' || bytes.IndexByte(text, '\\') >= 0 {
		return nil
	}
	return text[1 : len(text)-1]
}

// keyOf returns a key as a string, without allocation for the common keys of messages.
func keyOf(text []byte) string {
	for _, key := range [...]string{
		"jsonrpc", "id", "method", "params", "result", "name", "arguments", "_meta", "progressToken", "content", "structuredContent", "isError", "resultType",
	} {
		if string(text) == key {
			return key
		}
	}
	return string(text)
}

// skipValue skips a value and returns it.
func (s *scanner) skipValue() json.RawMessage {
	s.skipSpace()
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
		default: // a number or a literal ends before a byte that cannot be in it
			s.pos++
			continue
		}
		if depth == 0 {
			return s.text[begin:s.pos]
		}
	}
	return s.text[begin:s.pos]
}

// skipString skips the rest of a string after its first quote.
func (s *scanner) skipString() { s.pos = jsontext.SkipString(s.text, s.pos) }

// Member is one member of an object to write.
type Member struct {
	Key   string
	Value json.RawMessage
}

// Object encodes an object.
func Object(members ...Member) json.RawMessage {
	size := 3 // one byte more, for a line break
	for _, m := range members {
		size += len(m.Key) + len(m.Value) + 4
	}
	out := append(make([]byte, 0, size), '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(appendText(out, m.Key), ':'), m.Value...)
	}
	return append(out, '}')
}

// Text encodes a string.
func Text(s string) json.RawMessage { return appendText(make([]byte, 0, len(s)+2), s) }

func appendText(out []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			text, err := json.Marshal(s)
			if err != nil { // strings always marshal
				return append(out, `""`...)
			}
			return append(out, text...)
		}
	}
	return append(append(append(out, '"'), s...), '"')
}

// Number encodes an integer.
func Number(n int64) json.RawMessage { return strconv.AppendInt(nil, n, 10) }

// Request encodes a request or, with a nil id, a notification.
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

// Response encodes a response.
func Response(id, result json.RawMessage, failure *Error) []byte {
	return bytes.Join(ResponseParts(id, result, failure), nil)
}

// ResponseParts encodes a response in parts, so that a result is not copied.
func ResponseParts(id, result json.RawMessage, failure *Error) [][]byte {
	const begin = `{"jsonrpc":"2.0","id":`
	head := append(append(make([]byte, 0, len(begin)+len(id)+16), begin...), id...)
	if failure == nil {
		return [][]byte{append(head, `,"result":`...), result, []byte(`}`)}
	}
	text, err := json.Marshal(failure)
	if err != nil { // the data of the error is not JSON
		text = Object(Member{"code", Number(failure.Code)}, Member{"message", Text(failure.Message)})
	}
	return [][]byte{append(head, `,"error":`...), text, []byte(`}`)}
}

// OneLine joins valid JSON into one line: a line break in valid JSON can only be white
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

// With returns an object with members set. They come first and replace existing ones. A nil
// value removes a member. The object must be valid JSON.
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
