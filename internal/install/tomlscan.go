package install

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// tomlItem is one expression of a TOML document: a table header or a key with
// its value.
type tomlItem struct {
	header bool
	// path is the whole path from the root.
	path []string
	// start is the start of the line, end the end of the expression without
	// its line's comment and end.
	start, end int
	// value is where the value starts; for a key only.
	value int
}

// under says whether the item is at the path or below it.
func (i tomlItem) under(path []string) bool {
	return len(i.path) >= len(path) && slices.Equal(i.path[:len(path)], path)
}

// parseTOML reads a document; its error is a *syntaxError.
func parseTOML(src []byte) (map[string]any, error) {
	tree := map[string]any{}
	err := toml.Unmarshal(bytes.TrimPrefix(src, bom), &tree)
	if err == nil {
		return tree, nil
	}
	s := &syntaxError{message: strings.TrimPrefix(err.Error(), "toml: ")}
	var de *toml.DecodeError
	if errors.As(err, &de) {
		s.line, s.column = de.Position()
	}
	return nil, s
}

// errTOMLForm says that the scanner does not follow.
var errTOMLForm = errors.New("it is written in a form that cannot be edited safely")

// scanTOML splits a document that parseTOML accepts into its expressions.
func scanTOML(src []byte) ([]tomlItem, error) {
	s := &tomlScanner{src: src}
	if bytes.HasPrefix(src, bom) {
		s.pos = len(bom)
	}
	var items []tomlItem
	var table []string
	for {
		s.skip(true)
		if s.pos >= len(src) {
			return items, nil
		}
		item := tomlItem{start: bytes.LastIndexByte(src[:s.pos], '\n') + 1}
		if item.start == 0 && bytes.HasPrefix(src, bom) {
			item.start = len(bom)
		}
		from := s.pos
		if s.peek() == '[' {
			item.header = true
			for s.peek() == '[' {
				s.pos++
			}
			table = s.key()
			for s.peek() == ']' {
				s.pos++
			}
			item.path = table
		} else {
			item.path = slices.Concat(table, s.key())
			if s.peek() != '=' {
				return nil, errTOMLForm
			}
			s.pos++
			s.skip(false)
			item.value = s.pos
			s.skipValue(0)
		}
		if item.end = s.pos; s.bad || s.pos == from {
			return nil, errTOMLForm
		}
		items = append(items, item)
	}
}

type tomlScanner struct {
	src []byte
	pos int
	bad bool
}

func (s *tomlScanner) peek() byte {
	if s.pos >= len(s.src) {
		return 0
	}
	return s.src[s.pos]
}

// skip steps over white space and, if lines are to be crossed, over ends of
// lines and comments.
func (s *tomlScanner) skip(lines bool) {
	for s.pos < len(s.src) {
		switch c := s.src[s.pos]; {
		case c == ' ' || c == '\t', lines && (c == '\n' || c == '\r'):
			s.pos++
		case lines && c == '#':
			for s.pos < len(s.src) && s.src[s.pos] != '\n' {
				s.pos++
			}
		default:
			return
		}
	}
}

// key reads a dotted key.
func (s *tomlScanner) key() []string {
	var parts []string
	for {
		s.skip(false)
		start := s.pos
		if c := s.peek(); c == '"' || c == '\'' {
			s.quoted()
			parts = append(parts, unquoteTOML(s.src[start:s.pos]))
		} else {
			for s.pos < len(s.src) && !bytes.ContainsRune([]byte(" \t\r\n.=]#\"'"), rune(s.src[s.pos])) {
				s.pos++
			}
			parts = append(parts, string(s.src[start:s.pos]))
			s.bad = s.bad || s.pos == start
		}
		s.skip(false)
		if s.peek() != '.' {
			return parts
		}
		s.pos++
	}
}

// unquoteTOML decodes a quoted key by the library's own rules.
func unquoteTOML(raw []byte) string {
	var v struct{ K string }
	if toml.Unmarshal(append([]byte("K = "), raw...), &v) != nil {
		return string(raw)
	}
	return v.K
}

// quoted steps over a string of any of the four kinds.
func (s *tomlScanner) quoted() {
	q := s.src[s.pos]
	mark := []byte{q}
	if triple := bytes.Repeat(mark, 3); bytes.HasPrefix(s.src[s.pos:], triple) {
		mark = triple
	}
	s.pos += len(mark)
	for s.pos < len(s.src) {
		switch {
		case q == '"' && s.src[s.pos] == '\\':
			s.pos += 2
		case bytes.HasPrefix(s.src[s.pos:], mark):
			s.pos += len(mark)
			for n := 0; len(mark) == 3 && n < 2 && s.peek() == q; n++ {
				s.pos++ // up to two quotes may stand before the closing three
			}
			return
		default:
			s.pos++
		}
	}
	s.pos, s.bad = min(s.pos, len(s.src)), true
}

func (s *tomlScanner) skipValue(depth int) {
	if depth > maxDepth {
		s.bad = true
	}
	switch c := s.peek(); {
	case s.bad:
	case c == '"' || c == '\'':
		s.quoted()
	case c == '[' || c == '{':
		s.pos++
		for {
			s.skip(true)
			switch d := s.peek(); {
			case s.bad || s.pos >= len(s.src):
				s.bad = true
				return
			case d == c+2: // ']' follows '[' at two, and '}' follows '{'
				s.pos++
				return
			case d == ',':
				s.pos++
			case c == '{':
				s.key()
				if s.bad = s.bad || s.peek() != '='; !s.bad {
					s.pos++
					s.skip(true)
					s.skipValue(depth + 1)
				}
			default:
				s.skipValue(depth + 1)
			}
		}
	default:
		start := s.pos
		for s.pos < len(s.src) && !bytes.ContainsRune([]byte("\r\n#,]}"), rune(s.src[s.pos])) {
			s.pos++
		}
		s.pos = start + len(bytes.TrimRight(s.src[start:s.pos], " \t"))
		s.bad = s.pos == start
	}
}
