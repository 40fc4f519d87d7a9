package jsonrpc

import "github.com/segmentio/encoding/json"

// maxDepth is the maximum nesting of JSON, as in encoding/json.
const maxDepth = 10000

// messageDepth is the maximum nesting of a message: clients do not read deeper ones, and
// some of them disconnect.
const messageDepth = 1000

// Valid reports whether text is valid JSON. It agrees with json.Valid of the standard
// library, and is several times faster.
func Valid(text []byte) bool {
	return Within(text, maxDepth) && isJSON(text)
}

// isJSON is Valid for a text of limited nesting: json.Valid recurses at each level.
func isJSON(text []byte) bool { return json.Valid(text) }

// Within reports whether JSON is nested at most depth levels deep.
func Within(text []byte, depth int) bool {
	s := scanner{text: text}
	open := 0
	for s.pos < len(text) {
		c := text[s.pos]
		s.pos++
		switch c {
		case '"':
			s.skipString()
		case '{', '[':
			if open++; open > depth {
				return false
			}
		case '}', ']':
			open--
		}
	}
	return true
}
