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
	// Root is the document with its positions.
	Root *doc.Node
	// Canonical is the document as RFC 8785 JSON.
	Canonical []byte
}

// Parse reads a document. The diagnostics are what keeps it from loading, in the
// order of the document; the definition is nil if there is one.
func Parse(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	root, found := doc.Parse(file, data, doc.Limits{})
	if root == nil {
		return nil, found
	}
	workflow, more := steps.Parse(file, root)
	found = append(found, more...)
	if len(found) > 0 {
		doc.Sort(found)
		return nil, found
	}
	canonical := doc.Canonical(root)
	sum := sha256.Sum256(canonical)
	return &Definition{
		Dialect: guideway.DialectSteps,
		ID:      workflow.ID, Name: workflow.Name, Description: workflow.Description, Version: workflow.Version,
		Hash:  "sha256:" + hex.EncodeToString(sum[:]),
		Steps: workflow, File: file, Root: root, Canonical: canonical,
	}, nil
}

// Lint looks for what is legal in a definition and most likely not meant, in the
// order of the document.
func Lint(d *Definition) []guideway.Diagnostic {
	return steps.Lint(d.Steps, d.Root, d.File)
}
