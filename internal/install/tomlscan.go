package install

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"
)

// tomlItem is an expression of a TOML document: a table header or a key with its value.
type tomlItem struct {
	header bool
	// path is the full path from the root.
	path []string
	// start is the start of the line, and end is the end of the expression without the
	// line's comment and line break.
	start, end int
	// value is the start of the value of a key.
	value int
}

// isUnder reports whether the item is at the path or below it.
func (i tomlItem) isUnder(path []string) bool {
	return len(i.path) >= len(path) && slices.Equal(i.path[:len(path)], path)
}

// parseTOML parses a document. Its error is a *syntaxError.
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

// errTOMLForm is returned if an edit could change more than the entry.
var errTOMLForm = errors.New("the entry is written in a form that cannot be edited safely")

// errNothingToRestore is the error for a backup without the entry to restore.
var errNothingToRestore = errors.New("the backup has no entry to restore")

// scanTOML splits a document that parseTOML accepts into its expressions.
func scanTOML(src []byte) ([]tomlItem, error) {
	from := 0
	if bytes.HasPrefix(src, bom) {
		from = len(bom)
	}
	var parser unstable.Parser
	parser.Reset(src[from:])
	var items []tomlItem
	var table []string
	for parser.NextExpression() {
		node := parser.Expression()
		item := tomlItem{header: node.Kind != unstable.KeyValue}
		if item.header {
			table = nil
		}
		item.path = slices.Clone(table)
		at := 0 // the end of the key
		for key := node.Key(); key.Next(); {
			raw := key.Node().Raw
			if at == 0 {
				item.start = max(from, bytes.LastIndexByte(src[:from+int(raw.Offset)], '\n')+1)
			}
			item.path = append(item.path, string(key.Node().Data))
			at = from + int(raw.Offset+raw.Length)
		}
		if item.header {
			table = item.path
			item.end = at + bytes.IndexByte(src[at:], ']') + 1
			if node.Kind == unstable.ArrayTable {
				item.end++
			}
		} else {
			at += bytes.IndexByte(src[at:], '=') + 1
			item.value = len(src) - len(bytes.TrimLeft(src[at:], " \t"))
			item.end = from + int(node.Raw.Offset+node.Raw.Length)
		}
		items = append(items, item)
	}
	return items, parser.Error()
}
