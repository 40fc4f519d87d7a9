// Package validate parses and checks definitions from Go, as guideway validate does: step
// workflows, phase workflows and the documents that belong to them, hook graphs, and the
// configurations of agent machines.
//
// [Parse] returns a valid document or an error with all diagnostics, for programs that load
// definitions. [Safe] never returns an error and reports warnings too, for editors and
// reports.
package validate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Options describe a document. An empty Dialect or Kind is detected.
type Options struct {
	// File is the name of the document in diagnostics. Its extension selects JSON or YAML;
	// without a known extension, the text selects it.
	File string
	// Dialect is the dialect of the document.
	Dialect guideway.Dialect
	// Kind is the kind of the document: workflow (steps and phases), condition, state,
	// skill or activity (phases), graph or module (hooks), machine or roles (machines).
	Kind string
}

// Document is a valid document.
type Document struct {
	Dialect guideway.Dialect `json:"dialect"`
	Kind    string           `json:"kind"`
	// ID and Version come from the document. They are empty if its kind has none.
	ID      string `json:"id,omitempty"`
	Version string `json:"version,omitempty"`
	// Hash pins the meaning of the document. It does not depend on spaces, the order of
	// keys or the format.
	Hash string `json:"hash"`
	// Canonical is the document as RFC 8785 JSON.
	Canonical json.RawMessage `json:"canonical"`
}

// Result is the result of a validation.
type Result struct {
	// Document is nil if the document is not valid.
	Document *Document `json:"document,omitempty"`
	// Diagnostics are all diagnostics of the parser and the linter, in the order of the
	// document.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// Valid reports whether no diagnostic is an error.
func (r Result) Valid() bool { return r.Document != nil }

// Error is returned for an invalid document.
type Error struct {
	// Diagnostics are all diagnostics, warnings included.
	Diagnostics []guideway.Diagnostic
}

// Error returns the errors with their fixes, without the warnings.
func (e *Error) Error() string {
	var lines []string
	for _, d := range e.Diagnostics {
		if d.Severity == guideway.SeverityError {
			lines = append(lines, d.String())
		}
	}
	return fmt.Sprintf("the document is invalid:\n%s", strings.Join(lines, "\n"))
}

// Safe validates a document. Errors are in the result.
func Safe(data []byte, o Options) Result {
	d, found := workflow.CheckAs(o.File, data, workflow.As{Dialect: o.Dialect, Kind: phases.Kind(o.Kind)})
	r := Result{Diagnostics: found}
	if r.Diagnostics == nil {
		r.Diagnostics = []guideway.Diagnostic{}
	}
	for _, f := range found {
		if f.Severity == guideway.SeverityError {
			return r
		}
	}
	if d != nil {
		r.Document = &Document{
			Dialect: d.Dialect, Kind: string(d.Kind), ID: d.ID, Version: d.Version, Hash: d.Hash,
			Canonical: json.RawMessage(d.Canonical),
		}
	}
	return r
}

// Parse returns a valid document, or an *Error with all diagnostics.
func Parse(data []byte, o Options) (*Document, error) {
	r := Safe(data, o)
	if !r.Valid() {
		return nil, &Error{Diagnostics: r.Diagnostics}
	}
	return r.Document, nil
}

// Schema returns the published JSON Schema (draft-07) of a kind of document, or nil.
func Schema(dialect guideway.Dialect, kind string) []byte {
	return workflow.Schema(workflow.As{Dialect: dialect, Kind: phases.Kind(kind)})
}
