// Package shape contains the common parts of the parsers and linters of all dialects:
// places in a document, a report of diagnostics, and checks of a value's shape. It depends
// on no dialect.
package shape

import (
	"strconv"

	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Kind is the kind of a document; each dialect has its own.
type Kind string

// Place is a value in a document, with its position and a description of its location for
// messages.
type Place struct {
	// Node is the value; nil if it is missing.
	Node *doc.Node
	// Line and Column are the position of the value, or of the object if the value is
	// missing.
	Line, Column int
	// Name is the member's key or the indexed list, such as "prompt".
	Name string
	// Where is the location in words, for use in a sentence: "at root level", "in step 2
	// ('plan')".
	Where string

	// ptr is the pointer to the place; if keyed is set, last is the key that must still be
	// appended to it. Most places never need the whole pointer.
	ptr   doc.Pointer
	last  string
	keyed bool
}

// Root returns the place of a whole document, which may be missing. name describes the
// document.
func Root(node *doc.Node, name string) Place {
	at := Place{Name: name, Where: "at root level"}
	at.setNode(node)
	return at
}

// Key returns the place of a member of the object at p; its node is nil if it is missing.
func (p Place) Key(key string) Place {
	to := Place{Line: p.Line, Column: p.Column, ptr: p.Pointer(), last: key, keyed: true, Name: key, Where: p.Where}
	to.setNode(p.Node.Get(key))
	return to
}

// Index returns the place of an element of the array at p; its node is nil if it is
// missing.
func (p Place) Index(i int) Place {
	to := Place{Line: p.Line, Column: p.Column, ptr: p.Pointer().Index(i), Name: p.Name + "[" + strconv.Itoa(i) + "]", Where: p.Where}
	if p.Node != nil && i < len(p.Node.Items) {
		to.setNode(p.Node.Items[i])
	}
	return to
}

// Member returns the place of a member's key instead of its value, for diagnostics about
// the key.
func (p Place) Member(i int) Place {
	m := &p.Node.Members[i]
	return Place{Node: m.Value, Line: m.Line, Column: m.Column, ptr: p.Pointer(), last: m.Key, keyed: true, Name: m.Key, Where: p.Where}
}

// Below returns the place at a JSON pointer relative to this place. A missing value has the
// position of its parent.
func (p Place) Below(pointer string) Place {
	p.setNode(p.Node.Find(pointer))
	p.ptr, p.keyed = p.Pointer()+doc.Pointer(pointer), false
	return p
}

// In returns the same place with a different text for its location.
func (p Place) In(where string) Place {
	p.Where = where
	return p
}

// Pointer returns the JSON pointer to the place.
func (p Place) Pointer() doc.Pointer {
	if p.keyed {
		return p.ptr.Key(p.last)
	}
	return p.ptr
}

// setNode sets the node and its position.
func (p *Place) setNode(node *doc.Node) {
	if node != nil {
		p.Node, p.Line, p.Column = node, node.Line, node.Column
	}
}
