package install

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/tailscale/hujson"
)

// maxDepth is the maximum nesting of a configuration.
const maxDepth = 500

var bom = []byte("\xef\xbb\xbf")

// parseJSONC parses JSON with comments and trailing commas. The tree has the offsets of
// src. It is nil if src has no value.
func parseJSONC(src []byte) (*hujson.Value, error) {
	if err := cmp.Or(checkEncoding(src), checkDepth(src)); err != nil {
		return nil, err
	}
	text := padJSON(src)
	if hujson.Extra(text).IsValid() {
		return nil, nil
	}
	root, err := hujson.Parse(text)
	if err != nil {
		return nil, convertError(src, err)
	}
	return &root, nil
}

func checkEncoding(src []byte) error {
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return &syntaxError{1, 1, "the file is UTF-16, not UTF-8"}
	}
	return nil
}

// padJSON returns a copy of a document that hujson can read, with the same offsets: a byte
// order mark becomes spaces, and a newline ends a comment in the last line.
func padJSON(src []byte) []byte {
	text := append(bytes.Clone(src), '\n')
	if bytes.HasPrefix(src, bom) {
		copy(text, "   ")
	}
	return text
}

// convertError returns the position and the message of an error of hujson without the text
// of the file, which may contain a secret.
func convertError(src []byte, err error) error {
	message := err.Error()
	if inner := errors.Unwrap(err); inner != nil {
		message = inner.Error()
	}
	if strings.HasPrefix(message, "invalid literal: ") {
		message = "invalid string, number or name"
	}
	var line, column int
	if _, err := fmt.Sscanf(err.Error(), "hujson: line %d, column %d:", &line, &column); err != nil {
		return &syntaxError{message: message}
	}
	offset := len(src) // An error at the end is after the newline that padJSON adds.
	if lines := bytes.SplitAfterN(src, []byte("\n"), line); len(lines) == line {
		offset = min(offset, offset-len(lines[line-1])+column-1)
	}
	return syntaxAt(src, offset, "%s", message)
}

// checkDepth returns an error if values are nested too deep for the recursive parser.
func checkDepth(src []byte) error {
	depth := 0
	for i := 0; i < len(src); i++ {
		switch src[i] {
		case '"':
			for i++; i < len(src) && src[i] != '"'; i++ {
				if src[i] == '\\' {
					i++
				}
			}
		case '/':
			i = max(i, commentEnd(src, i)-1)
		case '{', '[':
			if depth++; depth > maxDepth {
				return syntaxAt(src, i, "values are nested more than %d levels deep", maxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// lineAndColumn returns the line and the column, in characters, of an offset.
func lineAndColumn(src []byte, offset int) (line, column int) {
	before := bytes.TrimPrefix(src[:offset], bom)
	line = bytes.Count(before, []byte("\n")) + 1
	column = utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]) + 1
	return line, column
}

// commentEnd returns the end of the comment at pos, without the end of its line, or -1 if
// there is no complete comment.
func commentEnd(src []byte, pos int) int {
	rest := src[pos:]
	switch {
	case bytes.HasPrefix(rest, []byte("//")):
		return lineEnd(src, pos)
	case bytes.HasPrefix(rest, []byte("/*")):
		if i := bytes.Index(rest[2:], []byte("*/")); i >= 0 {
			return pos + i + 4
		}
	}
	return -1
}

// membersOf returns the members of an object, or nil for another value.
func membersOf(v *hujson.Value) []hujson.ObjectMember {
	if object, ok := v.Value.(*hujson.Object); ok {
		return object.Members
	}
	return nil
}

// findMember returns the value of a key, or nil, and whether the key occurs again.
func findMember(v *hujson.Value, key string) (found *hujson.Value, twice bool) {
	members := membersOf(v)
	for i := range members {
		switch {
		case textOf(&members[i].Name) != key:
		case found != nil:
			return found, true
		default:
			found = &members[i].Value
		}
	}
	return found, false
}

// getMember returns the first value of a key, or nil.
func getMember(v *hujson.Value, key string) *hujson.Value {
	found, _ := findMember(v, key)
	return found
}

// child is a member of an object or an element of an array. It starts at start, with the
// name of the member.
type child struct {
	start int
	value *hujson.Value
}

// childrenOf returns the members of an object or the elements of an array, or nil for
// another value.
func childrenOf(v *hujson.Value) []child {
	var list []child
	members := membersOf(v)
	for i := range members {
		list = append(list, child{members[i].Name.StartOffset, &members[i].Value})
	}
	if array, ok := v.Value.(*hujson.Array); ok {
		for i := range array.Elements {
			list = append(list, child{array.Elements[i].StartOffset, &array.Elements[i]})
		}
	}
	return list
}

// commaAfter returns the offset of the comma after a child, or -1.
func commaAfter(list []child, i int) int {
	v := list[i].value
	if i == len(list)-1 && v.AfterExtra == nil { // hujson sets AfterExtra to nil if there is no trailing comma.
		return -1
	}
	return v.EndOffset + len(v.AfterExtra)
}

// textOf returns the text of a string, or "" for another value.
func textOf(v *hujson.Value) string {
	if v == nil || v.Value.Kind() != '"' {
		return ""
	}
	literal, _ := v.Value.(hujson.Literal)
	return literal.String()
}

// standardizeJSON returns a document that parseJSONC accepts, with comments and trailing
// commas replaced by spaces.
func standardizeJSON(src []byte) []byte {
	text, _ := hujson.Standardize(padJSON(src)) // the document has been parsed
	return text
}

// decodeJSONC returns the object of a document. It is nil if the document has no value.
func decodeJSONC(src []byte) (map[string]any, error) {
	d, err := readJSON(src)
	if err != nil {
		return nil, err
	}
	return d.values(), nil
}
