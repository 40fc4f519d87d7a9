package transport

import (
	"bytes"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// The bounds of what plainRequest reads by itself.
const (
	// plainDepth is how deep the SDK lets a message nest.
	plainDepth = 1000
	// plainDigits are so few that a float64 holds the number exactly.
	plainDigits = 15
)

// plainRequest reads a request that is written as nearly all are: jsonrpc, id,
// method and params in any order, each at most once and without escapes but in
// the params. Of anything else it gives nil, and the SDK's decoder has the say.
// That one gives the same for what is read here, and takes two buffers of 32 kB
// for it, which are most of the memory that a call costs.
//
// The text is valid JSON and UTF-8. The params are a part of it.
func plainRequest(text []byte) *jsonrpc.Request {
	s := &scanner{text: text}
	if !s.next('{') {
		return nil
	}
	req := &jsonrpc.Request{}
	version := false
	for range 4 {
		key := s.plainString()
		if !s.next(':') {
			return nil
		}
		ok := false
		switch string(key) {
		case "jsonrpc":
			ok = !version && string(s.plainString()) == "2.0"
			version = true
		case "id":
			ok = !req.ID.IsValid() && s.id(req)
		case "method":
			method := s.plainString()
			ok = req.Method == "" && len(method) > 0
			req.Method = string(method)
		case "params":
			ok = req.Params == nil && s.object()
			req.Params = text[s.begin:s.pos]
		}
		if !ok {
			return nil
		}
		if s.next('}') {
			break
		}
		if !s.next(',') {
			return nil
		}
	}
	s.space()
	if !version || req.Method == "" || s.pos != len(text) {
		return nil
	}
	return req
}

// plainResponse writes a response as the SDK's encoder does, which checks and
// compacts the result for a second time. It gives nil for an error, for no
// response, and for a result or an id that is not plain.
func plainResponse(resp *jsonrpc.Response) []byte {
	if resp == nil || resp.Error != nil || len(resp.Result) == 0 || bytes.IndexByte(resp.Result, '\n') >= 0 {
		return nil
	}
	const frame = `{"jsonrpc":"2.0","id":`
	out := append(make([]byte, 0, len(frame)+len(resp.Result)+64), frame...)
	switch id := resp.ID.Raw().(type) {
	case int64:
		out = strconv.AppendInt(out, id, 10)
	case string:
		for i := range len(id) {
			if c := id[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
				return nil
			}
		}
		out = append(append(append(out, '"'), id...), '"')
	default:
		return nil
	}
	out = append(append(out, `,"result":`...), resp.Result...)
	return append(out, '}')
}

// scanner goes through valid JSON.
type scanner struct {
	text []byte
	// begin and pos are the beginning and the end of the last value.
	begin, pos int
}

// space goes to the next byte that is no white space.
func (s *scanner) space() {
	for s.pos < len(s.text) && bytes.IndexByte([]byte(" \t\r\n"), s.text[s.pos]) >= 0 {
		s.pos++
	}
	s.begin = s.pos
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

// plainString reads a string without escapes; nil is none.
func (s *scanner) plainString() []byte {
	if !s.next('"') {
		return nil
	}
	length := bytes.IndexByte(s.text[s.pos:], '"')
	if length < 0 {
		return nil
	}
	content := s.text[s.pos : s.pos+length]
	s.pos += length + 1
	if bytes.IndexByte(content, '\\') >= 0 {
		return nil
	}
	return content
}

// id reads a string or a whole number.
func (s *scanner) id(req *jsonrpc.Request) bool {
	s.space()
	var value any
	if s.pos < len(s.text) && s.text[s.pos] == '"' {
		text := s.plainString()
		if text == nil {
			return false
		}
		value = string(text)
	} else {
		for s.pos < len(s.text) && (s.text[s.pos] == '-' || s.text[s.pos] >= '0' && s.text[s.pos] <= '9') {
			s.pos++
		}
		number, err := strconv.ParseInt(string(s.text[s.begin:s.pos]), 10, 64)
		if err != nil || s.pos-s.begin > plainDigits {
			return false
		}
		value = float64(number)
	}
	id, err := jsonrpc.MakeID(value)
	req.ID = id
	return err == nil
}

// object passes over an object.
func (s *scanner) object() bool {
	s.space()
	if s.pos == len(s.text) || s.text[s.pos] != '{' {
		return false
	}
	depth := 0
	for s.pos < len(s.text) {
		c := s.text[s.pos]
		s.pos++
		switch c {
		case '"':
			s.skipString()
		case '{', '[':
			if depth++; depth >= plainDepth {
				return false
			}
		case '}', ']':
			if depth--; depth == 0 {
				return true
			}
		}
	}
	return false
}

// skipString goes behind the end of a string whose quote was read.
func (s *scanner) skipString() {
	for s.pos < len(s.text) {
		switch s.text[s.pos] {
		case '"':
			s.pos++
			return
		case '\\':
			s.pos++
		}
		s.pos++
	}
}
