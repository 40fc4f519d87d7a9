// Package validate parses and checks definitions from Go, as guideway validate does:
// step workflows, phase workflows and the documents that belong to them, hook graphs,
// and the configurations of agent machines.
//
// [Parse] gives a document that is valid or an error with everything that is wrong with
// it, for programs that load definitions. [Safe] never errs and tells of warnings too,
// for editors and reports.
package validate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/workflow"
	"github.com/guideway-dev/guideway/internal/workflow/phases"
)

// Options say what a document is. What is empty is guessed.
type Options struct {
	// File is how findings name the document; its ending tells YAML from JSON
	// where the text does not.
	File string
	// Dialect is what the document is written in.
	Dialect guideway.Dialect
	// Kind is workflow, of steps or phases; condition, state, skill or activity, of
	// phases; graph or module, of hooks; machine or roles, of machines.
	Kind string
}

// Document is a document that is valid.
type Document struct {
	Dialect guideway.Dialect `json:"dialect"`
	Kind    string           `json:"kind"`
	// ID and Version are the document's own, empty where its kind has none.
	ID      string `json:"id,omitempty"`
	Version string `json:"version,omitempty"`
	// Hash pins what the document means: spaces, the order of keys and the
	// format are not in it.
	Hash string `json:"hash"`
	// Canonical is the document as RFC 8785 JSON.
	Canonical json.RawMessage `json:"canonical"`
}

// Result is what there is to say of a document.
type Result struct {
	// Document is nil if the document is not valid.
	Document *Document `json:"document,omitempty"`
	// Diagnostics are all findings, in the order of the document: what keeps it
	// from loading, or what a linter says of it.
	Diagnostics []guideway.Diagnostic `json:"diagnostics"`
}

// Valid says whether no finding is an error.
func (r Result) Valid() bool { return r.Document != nil }

// Error is a document that is not valid.
type Error struct {
	// Diagnostics are all findings, warnings included.
	Diagnostics []guideway.Diagnostic
}

// Error lists the findings that are errors, a line each and their fixes.
func (e *Error) Error() string {
	var lines []string
	for _, d := range e.Diagnostics {
		if d.Severity == guideway.SeverityError {
			lines = append(lines, d.String())
		}
	}
	return fmt.Sprintf("the definition is invalid:\n%s", strings.Join(lines, "\n"))
}

// Safe checks a document. It never fails: what is wrong is in the result.
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

// Parse gives a document that is valid. Any other is an *Error, with all that is
// wrong with it.
func Parse(data []byte, o Options) (*Document, error) {
	r := Safe(data, o)
	if !r.Valid() {
		return nil, &Error{Diagnostics: r.Diagnostics}
	}
	return r.Document, nil
}

// Schema gives the published JSON Schema (draft-07) of a kind of document, or nil
// where there is none.
func Schema(dialect guideway.Dialect, kind string) []byte {
	return workflow.Schema(workflow.As{Dialect: dialect, Kind: phases.Kind(kind)})
}
