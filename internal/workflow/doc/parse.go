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

// The default limits.
const (
	DefaultMaxBytes = 1 << 20
	DefaultMaxDepth = 64
	DefaultMaxNodes = 100_000
)

// Limits are the limits for one document. A zero field means the default.
type Limits struct {
	// MaxBytes limits the size of the text.
	MaxBytes int
	// MaxDepth limits the nesting of arrays and objects.
	MaxDepth int
	// MaxNodes limits the number of values after the expansion of YAML aliases.
	MaxNodes int
}

// withDefaults replaces zero fields with the defaults.
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

// The codes of diagnostics that are independent of the dialect.
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

// Parse parses a document. The extension of the name selects JSON (.json) or YAML (.yaml,
// .yml); for other names the first byte selects it. The node is nil if the text is not
// readable. Both results are set if the tree is complete but contains an error such as a
// duplicate key, whose first value is kept.
func Parse(file string, data []byte, limits Limits) (*Node, []guideway.Diagnostic) {
	limits = limits.withDefaults()
	r := reporter{file: file}
	data, ok := r.checkText(data, limits)
	if !ok {
		return nil, r.diagnostics
	}
	var root *Node
	if isYAML(file, data) {
		root = parseYAML(&r, data, limits)
	} else {
		root = parseJSON(&r, data, limits)
	}
	return root, r.diagnostics
}

// isYAML reports whether the document is YAML, by its extension or else by its first byte.
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

// checkText checks the size and the encoding, and removes the byte order mark.
func (r *reporter) checkText(data []byte, limits Limits) ([]byte, bool) {
	if len(data) > limits.MaxBytes {
		r.addDiagnostic(Diagnostic{
			Code:    CodeTooLarge,
			Message: fmt.Sprintf("the file is larger than the limit of %d bytes", limits.MaxBytes),
			Fix:     "split the definition, or move long texts out of it",
		})
		return nil, false
	}
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if len(bytes.TrimSpace(data)) == 0 {
		r.addDiagnostic(Diagnostic{
			Code:    CodeEmpty,
			Message: "the file is empty",
			Fix:     "write a definition into the file, or delete the file",
		})
		return nil, false
	}
	if bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		r.addDiagnostic(Diagnostic{
			Code:    CodeEncoding,
			Message: "the file is UTF-16, not UTF-8",
			Fix:     "save the file as UTF-8",
		})
		return nil, false
	}
	if i := bytes.IndexByte(data, 0); i >= 0 {
		line, column := position(data, i)
		r.addDiagnostic(Diagnostic{
			Code: CodeNUL, Line: line, Column: column,
			Message: "the file contains a NUL byte, which is not allowed in text",
			Fix:     "remove the NUL byte; if the file is UTF-16, save it as UTF-8",
		})
		return nil, false
	}
	if i := invalidUTF8(data); i >= 0 {
		line, column := position(data, i)
		r.addDiagnostic(Diagnostic{
			Code: CodeEncoding, Line: line, Column: column,
			Message: fmt.Sprintf("byte 0x%02x is not valid UTF-8", data[i]),
			Fix:     "save the file as UTF-8",
		})
		return nil, false
	}
	return data, true
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
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

// position converts an offset to line and column, both 1-based.
func position(data []byte, offset int) (line, column int) {
	before := data[:offset]
	return bytes.Count(before, []byte{'\n'}) + 1, offset - bytes.LastIndexByte(before, '\n')
}

// Diagnostic is a short name for guideway.Diagnostic.
type Diagnostic = guideway.Diagnostic

// maxDiagnostics limits the diagnostics of one document, because a hostile one could cause
// one for each byte.
const maxDiagnostics = 100

// reporter collects diagnostics. All of them are errors.
type reporter struct {
	file        string
	diagnostics []Diagnostic
}

// addDiagnostic adds a diagnostic unless the limit is reached.
func (r *reporter) addDiagnostic(d Diagnostic) {
	if len(r.diagnostics) >= maxDiagnostics {
		return
	}
	d.Severity, d.File = guideway.SeverityError, r.file
	if d.Code == CodeJSONSyntax {
		d.Message = "Invalid JSON syntax: " + d.Message
	}
	r.diagnostics = append(r.diagnostics, d)
}

// Sort sorts diagnostics by their position.
func Sort(found []guideway.Diagnostic) {
	slices.SortStableFunc(found, func(a, b guideway.Diagnostic) int {
		return cmp.Or(a.Line-b.Line, a.Column-b.Column)
	})
}

// pathSteps is the position of a reader: a key or an index for each level.
type pathSteps []pathStep

type pathStep struct {
	key   string
	index int
	array bool
	// unread is set if the key has not been read yet.
	unread bool
}

// toPointer returns the steps as a JSON pointer.
func (p pathSteps) toPointer() string {
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

// keySet finds duplicate keys of one object. Small objects are searched linearly.
type keySet struct {
	seen map[string]int
}

// findKey returns the index of an earlier member with the same key, or -1.
func (k *keySet) findKey(members []Member, key string) int {
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

// addDuplicateKey reports a duplicate key.
func (r *reporter) addDuplicateKey(to string, key string, line, column, firstLine int) {
	r.addDiagnostic(Diagnostic{
		Code: CodeDuplicateKey, Line: line, Column: column, Pointer: to,
		Message: fmt.Sprintf("the key %q is repeated in this object; it is first used on line %d", key, firstLine),
		Fix:     "keep one of the two members",
	})
}
