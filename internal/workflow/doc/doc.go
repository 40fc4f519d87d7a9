// Package doc parses JSON and YAML into one tree with the position of each value, so that a
// diagnostic can name file, line, column and JSON pointer.
package doc

import (
	"strconv"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/lists"
)

// Kind is the JSON type of a node.
type Kind uint8

// The JSON types.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

// String returns the name in JSON of the kind.
func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// Node is one value with its position.
type Node struct {
	Kind Kind
	// Flag is a boolean's value.
	Flag bool
	// Line and Column are 1-based; Column counts bytes.
	Line, Column int
	// Text is a string's value or a number's literal.
	Text string
	// Num is a number's value.
	Num float64
	// Items are the elements of an array.
	Items []*Node
	// Members are an object's members in the order of the document.
	Members []Member

	// from and to are the range of the value in the canonical text; see Mark.
	from, to int32
}

// Member is one member of an object.
type Member struct {
	Key string
	// Line and Column are the position of the key.
	Line, Column int
	Value        *Node

	// from is the offset of the key in the canonical text; see Mark.
	from int32
}

// Get returns the member's value, or nil if n is not an object or has no such member.
func (n *Node) Get(key string) *Node {
	if n == nil {
		return nil
	}
	for i := range n.Members {
		if n.Members[i].Key == key {
			return n.Members[i].Value
		}
	}
	return nil
}

// Any returns the value as encoding/json would decode it into an any.
func (n *Node) Any() any {
	if n == nil {
		return nil
	}
	switch n.Kind {
	case Bool:
		return n.Flag
	case Number:
		return n.Num
	case String:
		return n.Text
	case Array:
		return lists.Map(n.Items, func(item *Node) any { return item.Any() })
	case Object:
		members := make(map[string]any, len(n.Members))
		for _, m := range n.Members {
			members[m.Key] = m.Value.Any()
		}
		return members
	default:
		return nil
	}
}

// Pointer is an RFC 6901 JSON pointer under construction.
type Pointer string

// Key returns the pointer to a member.
func (p Pointer) Key(key string) Pointer {
	key = strings.ReplaceAll(key, "~", "~0")
	return p + "/" + Pointer(strings.ReplaceAll(key, "/", "~1"))
}

// Index returns the pointer to an element.
func (p Pointer) Index(i int) Pointer { return p + "/" + Pointer(strconv.Itoa(i)) }

// Find returns the value at an RFC 6901 JSON pointer below n, or its nearest existing
// ancestor.
func (n *Node) Find(pointer string) *Node {
	for n != nil && pointer != "" {
		var part string
		part, pointer, _ = strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		if pointer != "" {
			pointer = "/" + pointer
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		next := n.Get(part)
		if i, err := strconv.Atoi(part); err == nil && n.Kind == Array && i >= 0 && i < len(n.Items) {
			next = n.Items[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}
