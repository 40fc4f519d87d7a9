package shape

import (
	"fmt"
	"slices"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/spelling"
	"github.com/guideway-dev/guideway/internal/workflow/doc"
)

// Dialect contains the texts of one dialect. Its functions may be nil.
type Dialect struct {
	// Name is the name of the dialect.
	Name string
	// Aliases returns the dialect's names for a synonym.
	Aliases func(name string) []string
	// Sample returns an example value of a required member, or "".
	Sample func(key string) string
	// Empty and TooLong return the fix for a field whose text is empty or too long. The
	// argument is the name of the field. They return "" for the default fix.
	Empty, TooLong func(name string) string
}

// Report collects the diagnostics of one document. The zero value with File and Dialect set
// is ready to use.
type Report struct {
	File    string
	Dialect Dialect
	// Canonical is the document as returned by doc.Mark.
	Canonical string
	// Found are the diagnostics so far; Findings returns them in order.
	Found []guideway.Diagnostic

	// dropped counts the diagnostics beyond maxDiagnostics.
	dropped int
	// reported holds the keys that Once has seen.
	reported map[string]bool
}

// maxDiagnostics limits the diagnostics of one document, because a hostile one could cause
// one for each value.
const maxDiagnostics = 100

// Full reports whether the limit of diagnostics is reached.
func (r *Report) Full() bool { return len(r.Found) >= maxDiagnostics }

// Findings returns the diagnostics in document order. If diagnostics were dropped, it adds
// a last diagnostic of the given severity that states their number.
func (r *Report) Findings(severity guideway.Severity) []guideway.Diagnostic {
	doc.Sort(r.Found)
	if r.dropped == 0 {
		return r.Found
	}
	last := r.Found[len(r.Found)-1]
	return append(r.Found, guideway.Diagnostic{
		Severity: severity, Code: CodeMore, File: r.File, Line: last.Line, Column: last.Column,
		Message: fmt.Sprintf("The list of diagnostics is truncated: %d more.", r.dropped), Fix: "fix the diagnostics above first",
	})
}

// Errorf reports an error.
func (r *Report) Errorf(at Place, code, fix, format string, args ...any) {
	r.addDiagnostic(guideway.SeverityError, at, code, fix, format, args...)
}

// Warnf reports a warning.
func (r *Report) Warnf(at Place, code, fix, format string, args ...any) {
	r.addDiagnostic(guideway.SeverityWarning, at, code, fix, format, args...)
}

// addDiagnostic adds a diagnostic at a place.
func (r *Report) addDiagnostic(severity guideway.Severity, at Place, code, fix, format string, args ...any) {
	if r.Full() {
		r.dropped++
		return
	}
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	r.Found = append(r.Found, guideway.Diagnostic{
		Severity: severity, Code: code, File: r.File,
		Line: at.Line, Column: at.Column, Pointer: string(at.Pointer()),
		Message: message, Fix: fix,
	})
}

// Once reports whether it is called with the key for the first time.
func (r *Report) Once(what string) bool {
	if r.reported[what] {
		return false
	}
	if r.reported == nil {
		r.reported = map[string]bool{}
	}
	r.reported[what] = true
	return true
}

// Source returns the value as canonical JSON; "" if it is missing.
func (r *Report) Source(at Place) string { return at.Node.Source(r.Canonical) }

// MaxNames limits the names that a misspelled one is compared with.
const MaxNames = 200

// Closest returns the known word that is most similar to the text, or "".
func (r *Report) Closest(text string, known []string) string {
	if r.Dialect.Aliases != nil {
		for _, other := range r.Dialect.Aliases(text) {
			if other != text && slices.Contains(known, other) {
				return other
			}
		}
	}
	return spelling.Closest(text, known[:min(len(known), MaxNames)])
}

// Guess is like Suggest, for known words that are slow to collect: known is not called if
// the report is full.
func (r *Report) Guess(text string, known func() []string, other string) string {
	if r.Full() {
		return other
	}
	return r.Suggest(text, known(), other)
}

// Suggest returns a fix that suggests the most similar known word, or otherwise the given
// fix.
func (r *Report) Suggest(text string, known []string, other string) string {
	if guess := r.Closest(text, known); guess != "" {
		return fmt.Sprintf("did you mean '%s'?", guess)
	}
	return other
}

// The codes of diagnostics about the shape of a document. The published schemas report the
// same errors, except for CodeObject and CodeMore.
const (
	CodeRequired   = "field-missing"
	CodeUnexpected = "field-unknown"
	CodeType       = "field-type"
	CodeLength     = "text-length"
	CodePattern    = "text-pattern"
	CodeEnum       = "value-unknown"
	CodeRange      = "number-bounds"
	CodeUnique     = "list-repeats"
	CodeEmptyList  = "list-empty"
	// CodeObject reports a document that is not an object.
	CodeObject = "definition-object"
	// CodeMore ends a truncated list of diagnostics.
	CodeMore = "more-findings"
)
