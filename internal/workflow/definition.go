// Package workflow parses a document into a definition: validated against its dialect,
// and hashed.
package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
)

// Definition is a valid workflow. It is immutable.
type Definition struct {
	// Dialect is the dialect of the document.
	Dialect guideway.Dialect
	// ID, Name, Description and Version come from the document; Name is the title of a
	// phase workflow.
	ID, Name, Description, Version string
	// Hash is "sha256:" and the hexadecimal hash of Canonical. It pins the meaning of the
	// document, independent of white space, the order of keys and the format.
	Hash string
	// Steps is set in a definition of the steps dialect, Phases in a definition of the
	// phases dialect; the other field is nil.
	Steps  *steps.Workflow
	Phases *phases.Workflow
	// File is the path of the document.
	File string
	// Source and Revision are the catalog source and its revision; empty if the definition
	// does not come from a catalog.
	Source, Revision string
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// Parse parses a workflow. The diagnostics are the errors that prevent loading, in document
// order; the definition is nil if there are any. Other diagnostics come from Lint,
// including errors in patterns and schemas. A document of a different kind is an error; use
// ParseAs for it.
func Parse(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, _, found := parseWorkflow(file, data)
	return d, found
}

// Check parses a document like Parse, and runs Lint if it loads. A definition is usable if
// no diagnostic is an error.
func Check(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, root, found := parseWorkflow(file, data)
	if d == nil {
		return nil, found
	}
	return d, lintWorkflow(d, root, phases.Layout{})
}

// parseWorkflow is like Parse, but also returns the tree with its positions, which the
// definition does not keep in memory.
func parseWorkflow(file string, data []byte) (*Definition, *doc.Node, []guideway.Diagnostic) {
	document, root, found := parseDocument(file, data, As{})
	switch {
	case document == nil:
		return nil, nil, found
	case document.Workflow == nil:
		fix := "use a document with 'steps', or with 'phases' and 'initialPhase'; documents of other kinds are separate files"
		if document.Machine != nil || document.Roles != nil {
			fix = "store agent machines, with their scripts and roles, in the directory 'machines' of the source"
		}
		return nil, nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeNoWorkflow, File: file, Line: root.Line, Column: root.Column,
			Message: fmt.Sprintf("The document is %s, not a workflow.", withArticle(document.Kind)),
			Fix:     fix,
		}}
	}
	return document.Workflow, root, nil
}

// hashText returns Definition.Hash of a canonical text without copying the text.
func hashText(canonical string) string {
	h, part := sha256.New(), make([]byte, 4096)
	for canonical != "" {
		n := copy(part, canonical)
		h.Write(part[:n])
		canonical = canonical[n:]
	}
	return "sha256:" + hex.EncodeToString(h.Sum(nil))
}

// Lint reports legal but probably unintended parts of a definition, and the errors that do
// not prevent loading, in document order. data must be the bytes that the definition was
// parsed from; if they are missing or have another meaning, the diagnostics have pointers
// but no lines. The layout names the files in the directory of the definition.
func Lint(d *Definition, data []byte, layout phases.Layout) []guideway.Diagnostic {
	root, _ := doc.Parse(d.File, data, doc.Limits{})
	if root != nil && string(doc.Canonical(root)) == d.Canonical {
		return lintWorkflow(d, root, layout)
	}
	root, _ = doc.Parse("canonical.json", []byte(d.Canonical), doc.Limits{MaxBytes: len(d.Canonical)})
	found := lintWorkflow(d, root, layout)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}

// lintWorkflow calls the linter of the dialect.
func lintWorkflow(d *Definition, root *doc.Node, layout phases.Layout) []guideway.Diagnostic {
	if d.Phases != nil {
		return phases.Lint(d.Phases, root, d.File, layout)
	}
	return steps.Lint(d.Steps, root, d.File)
}
