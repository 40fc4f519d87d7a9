// Package shape is what the parsers and linters of all dialects share: places in
// a document, a report of what is wrong at them, and the checks of a value's
// shape. It knows no dialect; what it says of one it is told.
package shape

import (
	"strconv"

	"github.com/guideway-dev/guideway/internal/definition/doc"
)

// Place is a value and how to speak of where it stands.
type Place struct {
	// Node is the value; nil where it is missing.
	Node *doc.Node
	// Line and Column are the value's, or the object's where the value is
	// missing.
	Line, Column int
	// Name is the member's key or the list it is in, such as "prompt".
	Name string
	// Where ends a sentence: "at root level", "in step 2 ('plan')".
	Where string

	// ptr leads here, by last in the end if it is keyed: most places are passed
	// without a need for the whole pointer.
	ptr   doc.Pointer
	last  string
	keyed bool
}

// Root is the place of a whole document, which may be missing. The name is what
// the document is.
func Root(node *doc.Node, name string) Place {
	at := Place{Name: name, Where: "at root level"}
	at.to(node)
	return at
}

// Key goes to a member of the object at p; its node is nil if it is missing.
func (p Place) Key(key string) Place {
	to := Place{Line: p.Line, Column: p.Column, ptr: p.Pointer(), last: key, keyed: true, Name: key, Where: p.Where}
	to.to(p.Node.Get(key))
	return to
}

// Index goes to an element of the array at p; its node is nil if it is missing.
func (p Place) Index(i int) Place {
	to := Place{Line: p.Line, Column: p.Column, ptr: p.Pointer().Index(i), Name: p.Name + "[" + strconv.Itoa(i) + "]", Where: p.Where}
	if p.Node != nil && i < len(p.Node.Items) {
		to.to(p.Node.Items[i])
	}
	return to
}

// Member is the place of the key of a member, and not of its value: what is
// wrong with a name stands there.
func (p Place) Member(i int) Place {
	m := &p.Node.Members[i]
	return Place{Node: m.Value, Line: m.Line, Column: m.Column, ptr: p.Pointer(), last: m.Key, keyed: true, Name: m.Key, Where: p.Where}
}

// Below goes to a value by a JSON pointer relative to this place; what is missing
// stands where its parent does.
func (p Place) Below(pointer string) Place {
	p.to(p.Node.Find(pointer))
	p.ptr, p.keyed = p.Pointer()+doc.Pointer(pointer), false
	return p
}

// In is the same place with other words for where it stands.
func (p Place) In(where string) Place {
	p.Where = where
	return p
}

// Pointer is the JSON pointer to the place.
func (p Place) Pointer() doc.Pointer {
	if p.keyed {
		return p.ptr.Key(p.last)
	}
	return p.ptr
}

// to points p at a node.
func (p *Place) to(node *doc.Node) {
	if node != nil {
		p.Node, p.Line, p.Column = node, node.Line, node.Column
	}
}
