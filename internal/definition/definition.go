// Package definition turns the bytes of a document into a definition: parsed,
// checked against its dialect, and hashed.
package definition

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/definition/doc"
	"github.com/guideway-dev/guideway/internal/definition/phases"
	"github.com/guideway-dev/guideway/internal/definition/steps"
)

// Definition is a workflow that loads. It is immutable.
type Definition struct {
	// Dialect is the language of the document.
	Dialect guideway.Dialect
	// ID, Name, Description and Version are the document's own; Name is the
	// title of a phase workflow.
	ID, Name, Description, Version string
	// Hash is "sha256:" and the hash of Canonical in hexadecimal. It pins what
	// the document means: spaces, the order of keys and the format are not in it.
	Hash string
	// Steps is the workflow where the dialect is steps, Phases where it is
	// phases; the other is nil.
	Steps  *steps.Workflow
	Phases *phases.Workflow
	// File is where the document came from.
	File string
	// Source and Revision say which source of a catalog served it, and what of the
	// source it is; both are empty elsewhere.
	Source, Revision string
	// Canonical is the document as RFC 8785 JSON.
	Canonical string
}

// Parse reads a workflow. The diagnostics are what keeps it from loading, in the
// order of the document; the definition is nil if there is one. What does not
// keep it from loading is left to Lint, errors in patterns and schemas too. A
// document of another kind is an error here; ParseAs reads it.
func Parse(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, _, found := parseWorkflow(file, data)
	return d, found
}

// Check is Parse, and Lint if the document loads: all that there is to say of a
// workflow. A definition is fit for use if no finding is an error.
func Check(file string, data []byte) (*Definition, []guideway.Diagnostic) {
	d, root, found := parseWorkflow(file, data)
	if d == nil {
		return nil, found
	}
	return d, lint(d, root, phases.Layout{})
}

// parseWorkflow is Parse, which keeps the document with its positions out of what
// stays in memory.
func parseWorkflow(file string, data []byte) (*Definition, *doc.Node, []guideway.Diagnostic) {
	document, root, found := parse(file, data, As{})
	switch {
	case document == nil:
		return nil, nil, found
	case document.Workflow == nil:
		fix := "keep workflows apart from other documents: a workflow has 'steps', or 'phases' and 'initialPhase'"
		if document.Machine != nil || document.Roles != nil {
			fix = "keep agent machines, with their scripts and roles, in the directory machines of the source"
		}
		return nil, nil, []guideway.Diagnostic{{
			Severity: guideway.SeverityError, Code: CodeNoWorkflow, File: file, Line: root.Line, Column: root.Column,
			Message: fmt.Sprintf("This is %s, not a workflow.", withArticle(document.Kind)),
			Fix:     fix,
		}}
	}
	return document.Workflow, root, nil
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
func Lint(d *Definition, data []byte) []guideway.Diagnostic { return LintIn(d, data, phases.Layout{}) }

// LintIn is Lint where it is known what lies beside the definition.
func LintIn(d *Definition, data []byte, layout phases.Layout) []guideway.Diagnostic {
	root, _ := doc.Parse(d.File, data, doc.Limits{})
	if root != nil && string(doc.Canonical(root)) == d.Canonical {
		return lint(d, root, layout)
	}
	root, _ = doc.Parse("canonical.json", []byte(d.Canonical), doc.Limits{MaxBytes: len(d.Canonical)})
	found := lint(d, root, layout)
	for i := range found {
		found[i].Line, found[i].Column = 0, 0
	}
	return found
}

// lint asks the linter of the dialect.
func lint(d *Definition, root *doc.Node, layout phases.Layout) []guideway.Diagnostic {
	if d.Phases != nil {
		return phases.Lint(d.Phases, root, d.File, layout)
	}
	return steps.Lint(d.Steps, root, d.File)
}
