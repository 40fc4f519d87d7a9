package doc

import (
	"bytes"
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/guideway-dev/guideway"
)

// The limits that hold where Limits leaves a field zero.
const (
	DefaultMaxBytes = 1 << 20
	DefaultMaxDepth = 64
	DefaultMaxNodes = 100_000
)

// Limits bound what one document may cost to read. A zero field means the
// default.
type Limits struct {
	// MaxBytes bounds the text.
	MaxBytes int
	// MaxDepth bounds how deep arrays and objects nest.
	MaxDepth int
	// MaxNodes bounds the values, aliases of YAML expanded.
	MaxNodes int
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxNodes <= 0 {
		l.MaxNodes = DefaultMaxNodes
	}
	return l
}

// The codes of what can be wrong with a document, whatever its dialect.
const (
	CodeEmpty        = "file-empty"
	CodeTooLarge     = "file-too-large"
	CodeEncoding     = "file-encoding"
	CodeNUL          = "text-nul"
	CodeSurrogate    = "text-surrogate"
	CodeJSONSyntax   = "json-syntax"
	CodeDuplicateKey = "key-duplicate"
	CodeNumberRange  = "number-range"
	CodeDepth        = "depth-limit"
	CodeNodes        = "node-limit"
	CodeYAMLSyntax   = "yaml-syntax"
	CodeYAMLMany     = "yaml-documents"
	CodeYAMLMerge    = "yaml-merge"
	CodeYAMLTag      = "yaml-tag"
	CodeYAMLKey      = "yaml-key"
	CodeYAMLAlias    = "yaml-alias"
	CodeYAMLNumber   = "yaml-number"
)

// Parse reads a document. The name's extension tells JSON (.json) from YAML
// (.yaml, .yml); without one of these the text does. The node is nil where the
// text cannot be read; it is there, and the diagnostics are too, where the tree
// is whole but something in it is refused, such as a key that occurs twice: then
// the first stands.
func Parse(file string, data []byte, limits Limits) (*Node, []guideway.Diagnostic) {
	limits = limits.withDefaults()
	r := reporter{file: file}
	data, ok := r.text(data, limits)
	if !ok {
		return nil, r.found
	}
	var root *Node
	if isYAML(file, data) {
		root = parseYAML(&r, data, limits)
	} else {
		root = parseJSON(&r, data, limits)
	}
	return root, r.found
}

// isYAML decides by the extension, and by the first byte where that says
// nothing.
func isYAML(file string, data []byte) bool {
	switch strings.ToLower(filepath.Ext(file)) {
	case ".json":
		return false
	case ".yaml", ".yml":
		return true
	}
	trimmed := bytes.TrimLeft(data, " \t\r\n")
	return trimmed[0] != '{' && trimmed[0] != '['
}

// text checks the bytes as text and takes off the byte order mark.
func (r *reporter) text(data []byte, limits Limits) ([]byte, bool) {
	if len(data) > limits.MaxBytes {
		r.report(Diagnostic{
			Code:    CodeTooLarge,
			Message: fmt.Sprintf("the file is larger than %d bytes, which is the limit", limits.MaxBytes),
			Fix:     "split the definition, or move long texts out of it",
		})
		return nil, false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		r.report(Diagnostic{
			Code:    CodeEmpty,
			Message: "the file is empty",
			Fix:     "write a definition into it, or delete it",
		})
		return nil, false
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		r.report(Diagnostic{
			Code:    CodeEncoding,
			Message: "the file is UTF-16, not UTF-8",
			Fix:     "save it as UTF-8",
		})
		return nil, false
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		line, column := position(data, i)
		r.report(Diagnostic{
			Code: CodeNUL, Line: line, Column: column,
			Message: "the file holds a NUL byte, which no text has",
			Fix:     "check that it is the right file and save it as UTF-8",
		})
		return nil, false
	}
	if i := invalidUTF8(data); i >= 0 {
		line, column := position(data, i)
		r.report(Diagnostic{
			Code: CodeEncoding, Line: line, Column: column,
			Message: fmt.Sprintf("byte 0x%02x is not valid UTF-8", data[i]),
			Fix:     "save the file as UTF-8",
		})
		return nil, false
	}
	return data, true
}

// invalidUTF8 gives the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(data []byte) int {
	if utf8.Valid(data) {
		return -1
	}
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
	return -1
}

// position turns an offset into line and column, both 1-based.
func position(data []byte, offset int) (line, column int) {
	before := data[:offset]
	return bytes.Count(before, []byte{'\n'}) + 1, offset - bytes.LastIndexByte(before, '\n')
}

// Diagnostic saves the qualified name in a package that makes many.
type Diagnostic = guideway.Diagnostic

// maxFindings bounds what is said of one document: nobody reads more, and a
// hostile one could make as many as it has bytes.
const maxFindings = 100

// reporter collects findings. All of them are errors.
type reporter struct {
	file  string
	found []Diagnostic
}

// report adds a finding. The first ones stay.
func (r *reporter) report(d Diagnostic) {
	if len(r.found) >= maxFindings {
		return
	}
	d.Severity, d.File = guideway.SeverityError, r.file
	if d.Code == CodeJSONSyntax {
		d.Message = "Invalid JSON syntax: " + d.Message
	}
	r.found = append(r.found, d)
}

// Sort puts findings in the order of the document.
func Sort(found []guideway.Diagnostic) {
	slices.SortStableFunc(found, func(a, b guideway.Diagnostic) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}

// path is where a reader stands: a key or an index for each level.
type path []step

type step struct {
	key   string
	index int
	array bool
	// unread says that the key has not been read yet.
	unread bool
}

// pointer writes the path down.
func (p path) pointer() string {
	var to Pointer
	for _, s := range p {
		switch {
		case s.array:
			to = to.Index(s.index)
		case !s.unread:
			to = to.Key(s.key)
		}
	}
	return string(to)
}

// keys finds the keys that occur twice in one object. Small objects are
// compared one by one.
type keys struct {
	seen map[string]int
}

// find gives the index of the member with the key among those already read, or
// -1.
func (k *keys) find(members []Member, key string) int {
	if len(members) < 12 {
		for i := range members {
			if members[i].Key == key {
				return i
			}
		}
		return -1
	}
	if k.seen == nil {
		k.seen = make(map[string]int, 2*len(members))
		for i := range members {
			k.seen[members[i].Key] = i
		}
	}
	if i, ok := k.seen[key]; ok {
		return i
	}
	k.seen[key] = len(members)
	return -1
}

// duplicate reports a key that occurs twice.
func (r *reporter) duplicate(to string, key string, line, column, firstLine int) {
	r.report(Diagnostic{
		Code: CodeDuplicateKey, Line: line, Column: column, Pointer: to,
		Message: fmt.Sprintf("the key %q stands twice in this object, first on line %d", key, firstLine),
		Fix:     "keep one of the two",
	})
}
