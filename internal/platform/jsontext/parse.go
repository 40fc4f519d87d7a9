package jsontext

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"

	fastjson "github.com/segmentio/encoding/json"
)

// maxDepth is the maximum nesting of JSON, as in encoding/json.
const maxDepth = 10000

// Valid reports whether text is valid JSON. It agrees with json.Valid of the standard
// library, and is several times faster.
func Valid(text []byte) bool {
	return Within(text, maxDepth) && fastjson.Valid(text) // it recurses at each level
}

// Parse decodes JSON in half the time of encoding/json. Numbers are json.Number.
func Parse(text []byte) (value any, err error) {
	if !Valid(text) {
		return nil, cmp.Or(json.Unmarshal(text, new(any)), errors.New("the text is not JSON"))
	}
	_, err = fastjson.Parse(text, &value, fastjson.UseNumber)
	return value, err
}

// Within reports whether JSON is nested at most depth levels deep.
func Within(text []byte, depth int) bool {
	open := 0
	for pos := 0; pos < len(text); {
		c := text[pos]
		pos++
		switch c {
		case '"':
			pos = SkipString(text, pos)
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

// SkipString returns the position after the string whose first quote is before pos.
func SkipString(text []byte, pos int) int {
	for {
		n := bytes.IndexByte(text[pos:], '"')
		if n < 0 {
			return len(text)
		}
		pos += n + 1
		slashes := 0
		for i := pos - 2; i >= 0 && text[i] == '\\'; i-- {
			slashes++
		}
		if slashes%2 == 0 {
			return pos
		}
	}
}
