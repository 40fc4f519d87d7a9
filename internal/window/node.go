package window

import (
	"slices"
	"strings"
)

// nodeKind is how a value is reduced.
type nodeKind int

const (
	leafNode nodeKind = iota
	textNode
	arrayNode
	objectNode
	tableNode // an array of objects that have the same keys
)

// node is a value that can be given in part. Its pieces are kept or left out.
type node struct {
	kind     nodeKind
	key      string // of an object's field
	raw      string
	children []*node

	// text and spans are those of a textNode; its pieces follow each other.
	text  string
	spans []span
	form  textKind
	// first is the first of its pieces, count how many it has.
	first, count int

	// columns are the keys of a tableNode, in the order of the first row.
	columns []string
}

// piece is what selection keeps or leaves out.
type piece struct {
	item int
	// key is that of the field that it is the value of.
	key    string
	text   string
	tokens float64 // an estimate
	terms  []term
	// leader is the first piece with the same message, in a log; itself if it
	// is the first.
	leader int
	level  string
}

// What is taken apart, and how deep.
const (
	longString = 160 // bytes; a shorter text is one piece
	longArray  = 120 // bytes; a shorter list or object is one piece
	maxDepth   = 8
	tableRows  = 4
)

// builder takes values apart.
type builder struct {
	pieces []piece
	item   int
}

// build makes the tree of an item.
func (b *builder) build(item int, value []byte) *node {
	b.item = item
	return b.value("", strings.TrimSpace(string(value)), 0)
}

func (b *builder) value(key, raw string, depth int) *node {
	first := len(b.pieces)
	n := b.whole(key, raw, depth)
	n.first, n.count = first, len(b.pieces)-first
	return n
}

// whole takes a value apart if it can be; else it is one piece.
func (b *builder) whole(key, raw string, depth int) *node {
	if len(raw) > 0 && depth < maxDepth {
		switch {
		case raw[0] == '"' && len(raw) > longString:
			if n := b.long(key, raw); n != nil {
				return n
			}
		case raw[0] == '[' && len(raw) > longArray:
			if n := b.array(key, raw, depth); n != nil {
				return n
			}
		case raw[0] == '{' && len(raw) > longArray:
			if n := b.object(key, raw, depth); n != nil {
				return n
			}
		}
	}
	return b.leaf(key, raw)
}

func (b *builder) leaf(key, raw string) *node {
	b.add(key, raw)
	return &node{kind: leafNode, key: key, raw: raw}
}

// add makes a piece of a text, with the key of its field where it has one.
func (b *builder) add(key, text string) int {
	cost := estimated(text)
	if key != "" {
		cost += estimated(key) + punctCost // and the colon
	}
	b.pieces = append(b.pieces, piece{item: b.item, key: key, text: text, tokens: float64((cost+99)/100) + 1, leader: len(b.pieces)})
	return len(b.pieces) - 1
}

// long takes a text apart; nil if it is one part only.
func (b *builder) long(key, raw string) *node {
	text, ok := unquote(raw)
	if !ok {
		return nil
	}
	form := kindOfText(text)
	spans := cut(text, form)
	if len(spans) < 2 {
		return nil
	}
	n := &node{kind: textNode, key: key, raw: raw, text: text, spans: spans, form: form}
	leaders := make(map[string]int)
	for _, s := range spans {
		part := text[s.from:s.to]
		at := b.add("", part)
		if form != logText {
			continue
		}
		line, ok := readLogLine(part)
		if !ok {
			line.shape = shapeOf(part)
		}
		b.pieces[at].level = line.level
		if leader, seen := leaders[line.shape]; seen {
			b.pieces[at].leader = leader
		} else {
			leaders[line.shape] = at
		}
	}
	return n
}

func (b *builder) array(key, raw string, depth int) *node {
	elements, ok := readArray(raw)
	if !ok || len(elements) < 2 {
		return nil
	}
	if n := b.table(key, raw, elements); n != nil {
		return n
	}
	n := &node{kind: arrayNode, key: key, raw: raw, children: make([]*node, 0, len(elements))}
	for _, element := range elements {
		n.children = append(n.children, b.value("", element, depth+1))
	}
	return n
}

// table takes a list of like objects apart by rows.
func (b *builder) table(key, raw string, elements []string) *node {
	if len(elements) < tableRows {
		return nil
	}
	n := &node{kind: tableNode, key: key, raw: raw}
	rows := make([][]field, len(elements))
	for i, element := range elements {
		if element[0] != '{' || len(element) > longString*3 {
			return nil
		}
		fields, ok := readObject(element)
		if !ok || len(fields) == 0 {
			return nil
		}
		if i == 0 {
			for _, f := range fields {
				n.columns = append(n.columns, f.key)
			}
		}
		if len(fields) != len(n.columns) {
			return nil
		}
		for j, f := range fields {
			if f.key != n.columns[j] {
				return nil
			}
		}
		rows[i] = fields
	}
	if hasDuplicates(n.columns) {
		return nil
	}
	for i, fields := range rows {
		child := &node{kind: leafNode, raw: elements[i], first: len(b.pieces), count: 1}
		var text strings.Builder
		for _, f := range fields {
			text.WriteString(f.value)
			text.WriteString(", ")
			child.children = append(child.children, &node{kind: leafNode, key: f.key, raw: f.value})
		}
		b.add("", text.String())
		n.children = append(n.children, child)
	}
	return n
}

func (b *builder) object(key, raw string, depth int) *node {
	fields, ok := readObject(raw)
	if !ok || len(fields) < 1 {
		return nil
	}
	n := &node{kind: objectNode, key: key, raw: raw}
	for _, f := range fields {
		n.children = append(n.children, b.value(f.key, f.value, depth+1))
	}
	return n
}

func hasDuplicates(keys []string) bool {
	sorted := slices.Sorted(slices.Values(keys))
	return len(slices.Compact(sorted)) != len(keys)
}

// noun is what the parts of a value are called in a note.
func (n *node) noun() string {
	switch {
	case n.kind == textNode && n.form == logText:
		return "lines"
	case n.kind == textNode && n.form == codeText:
		return "blocks"
	case n.kind == textNode:
		return "sentences"
	case n.kind == tableNode:
		return "rows"
	case n.kind == arrayNode:
		return "entries"
	default:
		return "fields"
	}
}
