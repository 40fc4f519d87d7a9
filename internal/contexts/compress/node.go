package compress

import (
	"fmt"
	"slices"
	"strings"
)

// nodeKind determines how a value is reduced.
type nodeKind int

const (
	leafNode nodeKind = iota
	textNode
	arrayNode
	objectNode
	tableNode // an array of objects that have the same keys
)

// node is a value that can be rendered in part. Each of its pieces is kept or omitted.
type node struct {
	kind     nodeKind
	key      string // the key of the object member
	raw      string
	children []*node

	// text and spans belong to a textNode; its pieces are consecutive.
	text  string
	spans []span
	form  textKind
	// first is the index of the node's first piece, count the number of its pieces.
	first, count int

	// columns are the keys of a tableNode, in the order of the first row.
	columns []string
}

// piece is the unit that is kept or omitted.
type piece struct {
	item int
	// key is the key of the object member whose value the piece is.
	key    string
	text   string
	tokens float64 // estimated number of tokens
	terms  []term
	// leader is the first piece with the same message in a log, or the piece itself.
	leader int
	level  string
}

// Limits of splitting.
const (
	longString = 160 // in bytes; a shorter text is one piece
	longArray  = 120 // in bytes; a shorter list or object is one piece
	maxDepth   = 8
	tableRows  = 4
)

// treeBuilder splits values into pieces.
type treeBuilder struct {
	pieces []piece
	item   int
}

// buildTree returns the tree of an item.
func (b *treeBuilder) buildTree(item int, value []byte) *node {
	b.item = item
	return b.addValue("", strings.TrimSpace(string(value)), 0)
}

func (b *treeBuilder) addValue(key, raw string, depth int) *node {
	first := len(b.pieces)
	n := b.splitValue(key, raw, depth)
	n.first, n.count = first, len(b.pieces)-first
	return n
}

// splitValue splits a value if possible; otherwise the value is one piece.
func (b *treeBuilder) splitValue(key, raw string, depth int) *node {
	if len(raw) > 0 && depth < maxDepth {
		switch {
		case raw[0] == '"' && len(raw) > longString:
			if n := b.addText(key, raw); n != nil {
				return n
			}
		case raw[0] == '[' && len(raw) > longArray:
			if n := b.addArray(key, raw, depth); n != nil {
				return n
			}
		case raw[0] == '{' && len(raw) > longArray:
			if n := b.addObject(key, raw, depth); n != nil {
				return n
			}
		}
	}
	return b.addLeaf(key, raw)
}

func (b *treeBuilder) addLeaf(key, raw string) *node {
	b.addPiece(key, raw)
	return &node{kind: leafNode, key: key, raw: raw}
}

// addPiece adds a piece, with the key of its object member if it has one.
func (b *treeBuilder) addPiece(key, text string) int {
	cost := estimateHundredths(text)
	if key != "" {
		cost += estimateHundredths(key) + punctCost // include the key and the colon
	}
	b.pieces = append(b.pieces, piece{item: b.item, key: key, text: text, tokens: float64((cost+99)/100) + 1, leader: len(b.pieces)})
	return len(b.pieces) - 1
}

// addText splits a text. It returns nil if the text has only one part.
func (b *treeBuilder) addText(key, raw string) *node {
	text, ok := unquoteText(raw)
	if !ok {
		return nil
	}
	form := kindOfText(text)
	spans := splitSpans(text, form)
	if len(spans) < 2 {
		return nil
	}
	n := &node{kind: textNode, key: key, raw: raw, text: text, spans: spans, form: form}
	leaders := make(map[string]int)
	for _, s := range spans {
		part := text[s.from:s.to]
		at := b.addPiece("", part)
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

func (b *treeBuilder) addArray(key, raw string, depth int) *node {
	elements, ok := readArray(raw)
	if !ok || len(elements) < 2 {
		return nil
	}
	if n := b.addTable(key, raw, elements); n != nil {
		return n
	}
	n := &node{kind: arrayNode, key: key, raw: raw, children: make([]*node, 0, len(elements))}
	for _, element := range elements {
		n.children = append(n.children, b.addValue("", element, depth+1))
	}
	return n
}

// addTable splits an array of objects with the same keys into rows. It returns nil if the
// array has fewer than tableRows elements, long elements, or elements with different keys.
func (b *treeBuilder) addTable(key, raw string, elements []string) *node {
	if len(elements) < tableRows {
		return nil
	}
	n := &node{kind: tableNode, key: key, raw: raw}
	rows := make([][]objectField, len(elements))
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
		b.addPiece("", text.String())
		n.children = append(n.children, child)
	}
	return n
}

func (b *treeBuilder) addObject(key, raw string, depth int) *node {
	fields, ok := readObject(raw)
	if !ok || len(fields) < 1 {
		return nil
	}
	n := &node{kind: objectNode, key: key, raw: raw}
	long := slices.ContainsFunc(fields, func(f objectField) bool { return len(f.value) > maxLabel })
	first, labels := len(b.pieces), 0
	for _, f := range fields {
		if long && isLabel(f) {
			n.children = append(n.children, &node{kind: leafNode, key: f.key, raw: f.value})
			labels += estimateHundredths(f.key) + estimateHundredths(f.value) + 2*punctCost
			continue
		}
		n.children = append(n.children, b.addValue(f.key, f.value, depth+1))
	}
	if first < len(b.pieces) {
		b.pieces[first].tokens += float64(labels) / 100
	}
	return n
}

// maxLabel bounds a label in bytes.
const maxLabel = 64

// isLabel reports whether a member states what an object is, such as the role of a message.
// It has no piece: it stays if any piece of its object does, and never stays alone.
func isLabel(f objectField) bool {
	switch strings.ToLower(f.key) {
	case "role", "type", "kind", "name", "id", "author", "sender", "from", "tool":
		return len(f.value) <= maxLabel && f.value[0] != '[' && f.value[0] != '{'
	}
	return false
}

func hasDuplicates(keys []string) bool {
	sorted := slices.Sorted(slices.Values(keys))
	return len(slices.Compact(sorted)) != len(keys)
}

// pieceNoun returns the word that a note uses for the parts of a value, in the singular if
// the value has one part.
func (n *node) pieceNoun() string {
	one, many := "field", "fields"
	switch {
	case n.kind == textNode && n.form == logText:
		one, many = "line", "lines"
	case n.kind == textNode && n.form == codeText:
		one, many = "block", "blocks"
	case n.kind == textNode:
		one, many = "sentence", "sentences"
	case n.kind == tableNode:
		one, many = "row", "rows"
	case slices.ContainsFunc(n.children, func(child *node) bool { return child.kind != leafNode }):
		one, many = "part", "parts"
	case n.kind == arrayNode:
		one, many = "entry", "entries"
	}
	if n.count == 1 {
		return one
	}
	return many
}

// describeAge returns the part of a note that states for how many steps a value has been
// unchanged.
func describeAge(steps int) string {
	if steps == 1 {
		return "unchanged for 1 step"
	}
	return fmt.Sprintf("unchanged for %d steps", steps)
}
