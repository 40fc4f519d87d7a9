// Package definition turns the bytes of a document into a definition: parsed,
// checked against its dialect, and hashed.
package definition

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// Definition is a document that loads. It is immutable.
type Definition struct {
	// Dialect is the language of the document.
	Dialect guideway.Dialect
	// ID, Name, Description and Version are the document's own.
	ID, Name, Description, Version string
	// Hash is "sha256:" and the hash of Canonical in hexadecimal. It pins what
	// the document means: spaces, the order of keys and the format are not in it.
	Hash string
	// Steps is the workflow where the dialect is steps.
	Steps *steps.Workflow
	// File is where the document came from.
	File string
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// Parse reads a document. The diagnostics are what keeps it from loading, in the
// order of the document; the definition is nil if there is one. What does not
// keep it from loading is left to Lint, errors in patterns and schemas too.
func Parse(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, _, found := parse(file, data)
	return d, found
}

// Check is Parse, and Lint if the document loads: all that there is to say of a
// document. A definition is fit for use if no finding is an error.
func Check(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, root, found := parse(file, data)
	if d == nil {
		return nil, found
	}
	return d, steps.Lint(d.Steps, root, file)
}

// parse is Parse, which keeps the document with its positions out of what stays
// in memory.
func parse(file string, data []byte) (*Definition, *doc.Node, []guideway.Diagnostic) {
	root, found := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return nil, nil, found
	}
	workflow, more := steps.Parse(file, root)
	found = append(found, more...)
	if len(found) > 0 {
		doc.Sort(found)
		return nil, nil, found
	}
	return &Definition{
		Dialect: guideway.DialectSteps,
		ID:      workflow.ID, Name: workflow.Name, Description: workflow.Description, Version: workflow.Version,
		Hash:  hash(workflow.Canonical),
		Steps: workflow, File: file, Canonical: workflow.Canonical,
	}, root, nil
}

// hash is Definition.Hash of a canonical text, which it does not copy whole.
func hash(canonical string) string {
	h, part := sha256.New(), make([]byte, 4096)
	for canonical != "" {
		n := copy(part, canonical)
		h.Write(part[:n])
		canonical = canonical[n:]
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Lint looks for what is legal in a definition and most likely not meant, and for
// the errors that do not keep it from loading, in the order of the document. The
// data are those that the definition was parsed from; without them, or if they
// mean something else by now, the findings have pointers and no lines.
func Lint(d *Definition, data []byte) []guideway.Diagnostic {
	root, _ := doc.Parse(d.File, data, doc.Limits{})
	if root != nil && string(doc.Canonical(root)) == d.Canonical {
		return steps.Lint(d.Steps, root, d.File)
	}
	root, _ = doc.Parse("canonical.json", []byte(d.Canonical), doc.Limits{MaxBytes: len(d.Canonical)})
	found := steps.Lint(d.Steps, root, d.File)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}
